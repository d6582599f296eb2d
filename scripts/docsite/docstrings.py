"""Docstrings as Markdown: code spans, tables of options, links to other public names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_OPTION: Final = re.compile(r"^(?P<names>[a-z_][\w, ]*?)(?:  +(?P<text>\S.*))?$")
_CONTINUED: Final = re.compile(r"^ {8,}(?P<text>\S.*)$")


def to_markdown(doc: str, link: Callable[[str], str | None]) -> str:
    """A docstring as Markdown. ``link`` gives the address of a public name, or None."""
    blocks = [_block(block, link) for block in re.split(r"\n\s*\n", doc.strip("\n"))]
    return "\n\n".join(blocks)


def summary(doc: str, link: Callable[[str], str | None]) -> str:
    """The first sentence of a docstring, for a table."""
    first = " ".join(re.split(r"\n\s*\n", doc.strip())[0].split())
    sentence = re.split(r"(?<=[.:]) (?=[A-Z])", first)[0].rstrip(":")
    return _inline(sentence, link).replace("|", "\\|")


def _block(block: str, link: Callable[[str], str | None]) -> str:
    lines = block.split("\n")
    if all(line.startswith("    ") for line in lines):
        code = "\n".join(line[4:] for line in lines)
        language = "text" if "+--" in code else "python"
        return f"```{language}\n{code}\n```"
    if _is_table(lines):
        return "\n".join(f"- `{names}`: {_inline(text, link)}" for names, text in _options(lines))
    return _inline(block, link)


def _is_table(lines: list[str]) -> bool:
    return len(lines) > 1 and all(
        _CONTINUED.match(line) or ((found := _OPTION.match(line)) and _has_text(found, lines, line))
        for line in lines
    )


def _has_text(found: re.Match[str], lines: list[str], line: str) -> bool:
    following = lines[lines.index(line) + 1 : lines.index(line) + 2]
    return bool(found["text"]) or bool(following and _CONTINUED.match(following[0]))


def _options(lines: list[str]) -> list[tuple[str, str]]:
    options: list[tuple[str, str]] = []
    for line in lines:
        if continued := _CONTINUED.match(line):
            names, text = options[-1]
            options[-1] = (names, f"{text} {continued['text']}".strip())
        elif found := _OPTION.match(line):
            options.append((found["names"].replace(", ", "`, `"), found["text"] or ""))
    return options


def _inline(text: str, link: Callable[[str], str | None]) -> str:
    """Text with Markdown's code spans, each public name in one a link."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)
    parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(
        _span(part.strip("`"), link) if part.startswith("`") else _escaped(part) for part in parts
    )


def _span(code: str, link: Callable[[str], str | None]) -> str:
    code = " ".join(code.split())
    address = link(code)
    return f"[`{code}`]({address})" if address else f"`{code}`"


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")

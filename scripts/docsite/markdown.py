"""GitHub's Markdown: its links, headings and code blocks, and its form for the generator.

Pages are written for GitHub, where people read them too. The generator's dialect differs: it makes
other anchors, wants an empty line before a list, and gives the info string of a code block a
meaning of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^(#{1,6}) +(.+?) *#*$", re.MULTILINE)
_LINK: Final = re.compile(r"(\]\()([^)\s]+)(\))")
_LIST_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) ")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: its language, the rest of its info string, its code, and its line."""

    language: str
    info: str
    code: str
    line: int


def code_blocks(text: str) -> list[CodeBlock]:
    """The fenced code blocks of a page, in order."""
    blocks = []
    for match in _FENCE.finditer(text):
        language, _, info = match[2].strip().partition(" ")
        line = text.count("\n", 0, match.start()) + 1
        blocks.append(CodeBlock(language, info.strip(), match[3], line))
    return blocks


def without_code(text: str) -> str:
    """A page without its code blocks and code spans, each line where it was."""
    text = _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def links(text: str) -> list[str]:
    """The targets of a page's links, in order."""
    return [match[2] for match in _LINK.finditer(without_code(text))]


def title(text: str) -> str:
    """The text of a page's first heading, without marks."""
    match = _HEADING.search(_FENCE.sub("", text))
    return re.sub(r" \{#.*\}$|[`*]", "", match[2]) if match else ""


def summary(text: str) -> str:
    """The first sentence of a page's first paragraph, without links."""
    for paragraph in _FENCE.sub("", text).split("\n\n"):
        if paragraph.strip() and paragraph.lstrip("\n")[0] not in "#|-< ":
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            words = words.replace("**", "").removeprefix("Choice. ")
            return re.split(r"(?<=\.) (?=[A-Z`])", words)[0].rstrip(":")
    return ""


def anchors(text: str) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    bare = _FENCE.sub("", text)
    return list(_numbered(match[2] for match in _HEADING.finditer(bare)))


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _numbered(headings: Iterator[str]) -> Iterator[str]:
    """Anchors of headings; a repeated one gets a number."""
    seen: dict[str, int] = {}
    for heading in headings:
        anchor = slug(heading)
        seen[anchor] = seen.get(anchor, -1) + 1
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor


def for_generator(text: str, link: Callable[[str], str]) -> str:
    """The page in the generator's dialect; ``link`` translates the target of a link."""
    given = iter(anchors(text))
    parts = []
    end = 0
    for match in _FENCE.finditer(text):
        parts += [_prose(text[end : match.start()], link, given), _fence(match)]
        end = match.end()
    parts.append(_prose(text[end:], link, given))
    return "".join(parts)


def _fence(match: re.Match[str]) -> str:
    """A code block with its language alone, which the generator's colouring knows."""
    language = match[2].strip().partition(" ")[0] or "text"
    return f"{match[1]}{language}\n{match[3]}{match[1]}"


def _prose(text: str, link: Callable[[str], str], given: Iterator[str]) -> str:
    text = _LINK.sub(lambda match: match[1] + link(match[2]) + match[3], text)
    text = _HEADING.sub(lambda match: f"{match[1]} {match[2]} {{#{next(given)}}}\n", text)
    lines: list[str] = []
    for line in text.split("\n"):
        if _starts_list(lines[-1] if lines else "", line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _starts_list(previous: str, line: str) -> bool:
    starts = line.startswith("- ")  # a number at the start of a wrapped line is not a list's
    inside = _LIST_ITEM.match(previous) or previous.startswith(" ")
    return starts and bool(previous.strip()) and not inside

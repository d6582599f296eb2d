"""The pages of the Python reference: one for each public module, and one for each large class."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from docsite.docstrings import summary, to_markdown
from docsite.public_api import Member, PublicModule, PublicName, public_modules
from docsite.reachable import PAGE as PASSED_ON_PAGE
from docsite.reachable import passed_on_page

# A class with more members than this has a page of its own.
MEMBERS_ON_A_SHARED_PAGE: Final = 8
_WIDTH: Final = 72


def pages() -> dict[str, str]:
    """The Markdown of every page of the Python reference, by path."""
    made = {"reference/python/index.md": _index(), PASSED_ON_PAGE: passed_on_page()}
    for module in public_modules():
        folder = f"reference/python/{module.name}"
        made[f"{folder}/index.md"] = _module_page(module)
        made |= {
            f"{folder}/{each.name}.md": _class_page(each)
            for each in module.names
            if _is_large(each)
        }
    return made


def _is_large(name: PublicName) -> bool:
    return len(name.members) > MEMBERS_ON_A_SHARED_PAGE


def _address(name: PublicName) -> str:
    """The address of a name, from the page of a module or class."""
    page = f"{name.name}.md" if _is_large(name) else f"index.md#{name.path}"
    return f"../{name.module}/{page}"


def _linker(inside: PublicName | None = None) -> Callable[[str], str | None]:
    """Finds the address of a public name, ``Class.method`` or a method of the class ``inside``."""

    def link(code: str) -> str | None:
        if inside is not None and code in (inside.name, inside.path):
            return None
        if code.isalpha() and code.islower():
            return None  # a parameter more often than a function
        code = code.removesuffix("()")
        for module in public_modules():
            for each in module.names:
                if code in (each.name, each.path):
                    return _address(each)
                owner, _, member = code.rpartition(".")
                if owner in (each.name, each.path) and _has(each, member):
                    return f"{_address(each).partition('#')[0]}#{each.path}.{member}"
        return None

    return link


def _has(name: PublicName, member: str) -> bool:
    return any(each.name == member for each in name.members)


def _index() -> str:
    lines = [
        "# Python",
        "",
        "A name stands on the page of the module it is imported from. Names that are not here are",
        "not public, and may change in any release. [Values that you pass on](passed-on.md) lists",
        "classes that signatures name and that no program needs to know.",
        "",
        "| Module | What it holds |",
        "|---|---|",
    ]
    lines += [
        f"| [`{module.name}`]({module.name}/index.md) | {_summary_of(module)} |"
        for module in public_modules()
    ]
    return "\n".join(lines) + "\n"


def _summary_of(module: PublicModule) -> str:
    return summary(module.doc, lambda _: None)


def _module_page(module: PublicModule) -> str:
    parts = [f"# `{module.name}`", to_markdown(module.doc, _linker())]
    rows = ["| Name | What it is |", "|---|---|"]
    for each in module.names:
        shown = summary(each.doc, _linker(each))
        address = f"{each.name}.md" if _is_large(each) else f"#{each.path}"
        rows.append(f"| [`{each.name}`]({address}) | {shown} |")
    parts.append("\n".join(rows))
    for each in module.names:
        if not _is_large(each):
            parts.append(f"## `{each.name}` {{#{each.path}}}")
            parts += _body(each, "###")
    return "\n\n".join(part for part in parts if part) + "\n"


def _class_page(name: PublicName) -> str:
    parts = [f"# `{name.name}` {{#{name.path}}}"]
    parts.append(f"Import it from [`{name.module}`](index.md).")
    parts += _body(name, "##")
    return "\n\n".join(part for part in parts if part) + "\n"


def _body(name: PublicName, level: str) -> list[str]:
    link = _linker(name)
    parts = [_code(name.signatures), to_markdown(name.doc, link)]
    bases = [_base(base, link) for base in name.bases if base not in ("Protocol", "object")]
    if bases:
        parts.append("Base: " + ", ".join(bases))
    if any(base.startswith("OnDb[") for base in name.bases):
        parts.append("The signatures are those on a `Db`. On an `AsyncDb`, methods are awaited.")
    if name.fields:
        parts.append(_fields(name, link))
    for member in sorted(name.members, key=lambda each: each.kind == "property"):
        parts += _member(name, member, level, link)
    return parts


def _base(base: str, link: Callable[[str], str | None]) -> str:
    address = link(re.sub(r"\[.*", "", base))
    return f"[`{base}`]({address})" if address else f"`{base}`"


def _fields(name: PublicName, link: Callable[[str], str | None]) -> str:
    has_text = any(each.doc for each in name.fields)
    rows = ["| Field | Type | Default |", "|---|---|---|"]
    if has_text:
        rows = ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    for each in name.fields:
        cells = [f"`{each.name}`", _cell(each.signatures[0]), _cell(each.default or "")]
        if has_text:
            cells.append(to_markdown(each.doc, link).replace("\n", " ").replace("|", "\\|"))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(code: str) -> str:
    return f"`{code}`".replace("|", "\\|") if code else ""


def _member(
    name: PublicName, member: Member, level: str, link: Callable[[str], str | None]
) -> list[str]:
    heading = f"{level} `{name.name}.{member.name}` {{#{name.path}.{member.name}}}"
    prefix = {"async method": "async ", "classmethod method": "@classmethod\n"}
    prefix |= {"staticmethod method": "@staticmethod\n", "property": "@property\n"}
    code = _code(member.signatures, prefix.get(member.kind, ""))
    return [heading, code, to_markdown(member.doc, link)]


def _code(signatures: tuple[str, ...], prefix: str = "") -> str:
    if not signatures:
        return ""
    shown = "\n\n".join(prefix + _folded(each) for each in signatures)
    return f"```python\n{shown}\n```"


def _folded(signature: str) -> str:
    """A long signature with one parameter on each line."""
    if len(signature) <= _WIDTH or "(" not in signature:
        return signature
    start = signature.index("(")
    depth, cuts, end = 0, [start], len(signature)
    for position, character in enumerate(signature[start:], start):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 1:
            cuts.append(position)
        if depth == 0:
            end = position
            break
    parameters = [
        signature[first + 1 : last].strip()
        for first, last in zip(cuts, [*cuts[1:], end], strict=True)
    ]
    if parameters == [""]:
        return signature
    inside = "".join(f"    {each},\n" for each in parameters)
    return f"{signature[:start]}(\n{inside}{signature[end:]}"

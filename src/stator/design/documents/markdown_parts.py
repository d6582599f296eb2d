"""Parts of Markdown pages and comments: tables, code, and escaped text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def grid(header: Sequence[str], rows: Iterable[Iterable[str]], right: Sequence[int] = ()) -> str:
    rule = ["---:" if at in right else "---" for at in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *map(tuple, rows)))


def plain(text: str) -> str:
    """Escape text so that nothing in it starts a cell, a tag or a link."""
    for character in "\\`*_[]<>|":
        text = text.replace(
            character,
            f"\\{character}" if character not in "<>" else {"<": "&lt;", ">": "&gt;"}[character],
        )
    return " ".join(text.split())


def code(text: str) -> str:
    """Return code for a table cell.

    A bar would end the cell, so it is escaped. Code with a backtick gets a longer fence.
    """
    if not text:
        return ""
    one_line = " ".join(text.split()).replace("|", "\\|")
    return f"`` {one_line} ``" if "`" in one_line else f"`{one_line}`"

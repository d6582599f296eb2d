"""Small HTML tables by which a notebook shows a plan or a page of items."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

_LONGEST = 80


def html_table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table. All text is escaped, and long values are cut."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 3] + "..."
    return f"<td>{html.escape(text)}</td>"

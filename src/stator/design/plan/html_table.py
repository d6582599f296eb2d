"""Small HTML tables by which a notebook shows plans, items and reports.

A notebook calls ``_repr_html_`` of the last value of a cell.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

_LONGEST = 80


def html_table(
    caption: str,
    columns: Iterable[str],
    rows: Iterable[Iterable[Any]],
    *,
    longest: int | None = _LONGEST,
) -> str:
    """Return a table. All text is escaped, and values longer than ``longest`` are cut."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(value, longest)}</td>' for value in row)}</tr>" for row in rows
    )
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def html_facts(caption: str, facts: Iterable[tuple[str, Any]]) -> str:
    """Return a table with a row for each name and its value. Values are not cut."""
    body = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{_text(value, None)}</td></tr>"
        for name, value in facts
    )
    return f"<table><caption>{html.escape(caption)}</caption><tbody>{body}</tbody></table>"


def html_report(caption: str, data: Mapping[str, Any]) -> str:
    """Return the facts of a report, from the dictionary that its command prints as JSON."""
    return html_facts(caption, ((name.replace("_", " "), value) for name, value in data.items()))


def _text(value: Any, longest: int | None) -> str:
    text = "" if value is None else str(value)
    if longest is not None and len(text) > longest:
        text = text[: longest - 3] + "..."
    return html.escape(text)

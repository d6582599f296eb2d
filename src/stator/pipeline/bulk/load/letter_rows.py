"""Reads dead letters as rows, so that a repaired file of them can be loaded.

``job.dead_letters`` describes the letters. Each is read in the format of the input that its row
came from: as the fields of a row, or as a line of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from stator.pipeline.bulk.job.dead_letters import LetterContent, decode_content
from stator.pipeline.bulk.load.readers import RawRows, UnreadableRow

_MEMBERS = frozenset({"source", "row", "format", "content", "reason"})


def letter_rows(blocks: Iterable[RawRows]) -> Iterator[RawRows]:
    """Parse blocks of dead-letter lines and yield the rows that the letters contain.

    Each yielded block holds consecutive letters with the same format, columns and types.
    """
    for lines in blocks:
        group: RawRows | None = None
        for at, line in zip(lines.places, lines.lines or ()):
            row = _letter_row(line)
            if group is None or not _joins(group, row):
                if group is not None:
                    yield group
                group = _letter_group(row, lines.first_row + at, lines.share)
            _add_letter(group, row, lines.first_row + at)
        if group is not None:
            yield group


def is_letter(line: bytes) -> bool:
    """Whether a line of JSON has the members of a dead letter that a load wrote."""
    try:
        letter = orjson.loads(line)
    except ValueError:
        return False
    return isinstance(letter, dict) and letter.keys() - {"types"} == _MEMBERS


@dataclass(frozen=True, slots=True)
class _LetterRow:
    """The row that a dead letter contains: ``values`` by column, or a ``line`` of JSON.

    If the letter cannot be read, ``unreadable`` holds its content and the reason instead.
    """

    format: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    line: bytes = b""
    types: Mapping[str, str] = field(default_factory=dict)
    unreadable: tuple[Any, str] | None = None

    @property
    def is_line(self) -> bool:
        return self.format in ("jsonl", "dynamodb-json")


def _letter_row(line: bytes) -> _LetterRow:
    try:
        letter = orjson.loads(line)
        format_name, content = letter["format"], decode_content(letter["content"])
        types = letter.get("types") or {}
    except (ValueError, ArithmeticError, KeyError, TypeError, AttributeError):
        reason = "not a dead letter: an object with format and content is needed"
        return _LetterRow(unreadable=(LetterContent.of_line("jsonl", line), reason))
    if format_name in ("jsonl", "dynamodb-json"):
        return _LetterRow(format_name, line=_line(content, letter["content"]))
    if format_name in ("csv", "values") and isinstance(content, dict) and isinstance(types, dict):
        if format_name == "csv":
            content = {name: _cell(value) for name, value in content.items()}
        return _LetterRow(format_name, content, types=types)
    reason = "the dead letter's content is not a row: write it as an object of columns and values"
    return _LetterRow(unreadable=(LetterContent(str(format_name), content), reason))


def _line(content: Any, data: Any) -> bytes:
    if isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else orjson.dumps(data)


def _cell(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def _joins(group: RawRows, row: _LetterRow) -> bool:
    if row.unreadable is not None:
        return True
    if row.format != group.format:
        return False
    return row.is_line or (tuple(row.values) == group.names and row.types == group.types)


def _letter_group(row: _LetterRow, first_row: int, share: float) -> RawRows:
    names = () if row.is_line else tuple(row.values)
    kind = "csv" if row.format == "csv" else "any"
    group = RawRows(first_row, 0, names, kinds=(kind,) * len(names), share=share, rows=[])
    group.format, group.types = row.format, row.types
    if row.is_line or row.format is None:
        group.lines = []
    else:
        group.listed_columns = [[] for _ in names]
    return group


def _add_letter(group: RawRows, row: _LetterRow, at: int) -> None:
    place = at - group.first_row
    group.count = place + 1
    if row.unreadable is not None:
        group.unreadable.append(UnreadableRow(place, *row.unreadable))
        return
    assert group.rows is not None
    group.rows.append(place)
    if group.lines is not None:
        group.lines.append(row.line)
    else:
        for column, value in zip(group.columns, row.values.values()):
            column.append(value)

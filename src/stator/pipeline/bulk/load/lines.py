"""Encodes lines of JSON as items: plain JSON by the types of its values, DynamoDB JSON as it is.

A line of DynamoDB JSON is an item already, either bare or inside ``{"Item": ...}``, as in exports
to S3. The line is parsed only to find its key; its own bytes are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from stator.errors import RowRefused
from stator.formats.dynamodb_json import is_attribute_value, unwrap
from stator.formats.exact_json import loads_exact
from stator.formats.plain import ENCODERS, comparable, encode_value
from stator.pipeline.bulk.job.dead_letters import LetterContent
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow
from stator.pipeline.bulk.load.columns import Dead
from stator.pipeline.bulk.load.flat_rows import flattened, map_members
from stator.pipeline.bulk.load.readers import RawRows

dumps = orjson.dumps
_FAULTS = (RowRefused, TypeError, ValueError, ArithmeticError, RecursionError)


class LineEncoder:
    """Encodes lines of plain JSON as items, for a table with the key attributes in ``key``.

    ``kinds`` are the known types of attributes: key attributes, and types that the caller set.
    ``renamed`` holds the ``--map`` options. ``flatten`` turns nested objects into dotted names.
    """

    format = "jsonl"

    def __init__(
        self,
        key: tuple[str, ...],
        kinds: Mapping[str, str],
        renamed: Mapping[str, str],
        *,
        flatten: bool = False,
    ) -> None:
        self._flatten = flatten
        self._key = key
        self._encoders: dict[str, Callable[[Any], Any]] = {
            name: ENCODERS[kind] for name, kind in kinds.items()
        }
        self._kinds = dict(kinds)
        self._renamed = dict(renamed)

    def entries(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]:
        pending = []
        assert rows.lines is not None
        for at, line in zip(rows.places, rows.lines):
            try:
                key, item = self.item(line)
            except _FAULTS as error:
                dead(block, at, LetterContent.of_line(self.format, line), _reason(error))
                continue
            pending.append(PendingRow(key, item, at, block))
        return pending

    def item(self, line: bytes) -> tuple[Any, bytes]:
        row = loads_exact(line)
        if type(row) is not dict:
            raise RowRefused("a line must hold one JSON object")
        if self._flatten:
            row = flattened(row, self._renamed)
        if self._renamed:
            row = rename(row, self._renamed)
        encoders, item = self._encoders, {}
        for name, value in row.items():
            own = encoders.get(name)
            if own is None:
                item[name] = encode_value(value)
            elif value is not None:
                item[name] = _encoded(name, own, value)
        return self._keyed(item), dumps(item)

    def _keyed(self, item: dict[str, Any]) -> Any:
        for name in self._key:
            value = item.get(name)
            if value is None:
                raise RowRefused(f"the key attribute {name} is missing")
            kind = self._kinds.get(name)
            if kind is not None and kind not in value:
                raise RowRefused(
                    f"the key attribute {name} has type {kind} in the table,"
                    f" but is {value!r:.60} here"
                )
        found = tuple(comparable(item[name]) for name in self._key)
        return found[0] if len(found) == 1 else found


class DynamoDbLineEncoder(LineEncoder):
    """Encodes lines that already are items in DynamoDB JSON."""

    format = "dynamodb-json"

    def item(self, line: bytes) -> tuple[Any, bytes]:
        row = orjson.loads(line)
        if type(row) is not dict:
            raise RowRefused("a line must hold one item")
        item, is_wrapped = unwrap(row)
        if not all(is_attribute_value(value) for value in item.values()):
            raise RowRefused(
                'expected an item in DynamoDB JSON, for example {"Item": {"pk": {"S": "user-1"}}}'
            )
        if self._flatten:
            item = flattened(item, self._renamed, map_members)
        if self._renamed or self._flatten:
            item = rename(item, self._renamed)
            return self._keyed(item), dumps(item)
        return self._keyed(item), dumps(item) if is_wrapped else line.strip()


def rename(row: dict[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return a row with attributes renamed as in ``renamed``; an empty new name drops an attribute.

    Raises RowRefused if two attributes get the same name, or if one has an empty name that
    ``renamed`` does not mention.
    """
    result: dict[str, Any] = {}
    for name, value in row.items():
        target = renamed.get(name, name)
        if not name and name not in renamed:
            raise RowRefused("a field has no name: drop it with --map =")
        if target in result:
            raise RowRefused(f"two fields become {target}: drop one with --map {target}=")
        if target:
            result[target] = value
    return result


def _encoded(name: str, encode: Callable[[Any], Any], value: Any) -> Any:
    try:
        return encode(value)
    except RowRefused as error:
        raise RowRefused(f"{name}: {error.message}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, RowRefused):
        return error.message
    return f"not JSON: {error}" if isinstance(error, ValueError) else str(error)

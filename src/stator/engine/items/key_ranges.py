"""Ranges of storage keys, from key conditions and starting keys."""

from __future__ import annotations

from dataclasses import dataclass

from stator.engine import keyspace
from stator.engine.tables.item_keys import (
    MISMATCH,
    check_index_keys,
    check_item_key,
    check_no_empty_key,
)
from stator.engine.tables.key_schema import KeyAttribute, KeySchema
from stator.engine.tables.table import Index, Table
from stator.errors import ValidationFailed
from stator.expr.compare import begins_with, compare
from stator.expr.key_condition import KeyTest
from stator.model.values import INVALID, Item
from stator.storage.protocol import after_prefix

BAD_START = "The provided starting key is invalid"


@dataclass(slots=True, init=False)
class Range:
    low: bytes
    high: bytes

    def __init__(self, low: bytes, high: bytes) -> None:
        self.low = low
        self.high = high


def query_range(schema: KeySchema, prefix: bytes, tests: dict[str, KeyTest]) -> Range:
    """Return the range of storage keys, within one partition, that the key tests select."""
    _check_tests(schema, tests)
    keys: Item = {name: tests[name].values[0] for name, _ in schema.partition}
    check_no_empty_key(
        schema, {name: test.values[0] for name, test in tests.items() if test.operator == "="}
    )
    low = prefix + schema.partition_bytes(keys)
    for attribute in schema.sort:
        test = tests.get(attribute.name)
        if test is None:
            break
        if test.operator != "=":
            return _bounded(low, attribute, test)
        low += keyspace.closed(_raw(attribute, test, 0))
    return Range(low, after_prefix(low))


def _raw(attribute: KeyAttribute, test: KeyTest, at: int) -> bytes:
    return keyspace.RAW[attribute.kind](test.values[at][attribute.kind])


def _bounded(base: bytes, attribute: KeyAttribute, test: KeyTest) -> Range:
    raw = _raw(attribute, test, 0)
    value = base + keyspace.closed(raw)
    end = after_prefix(base)
    match test.operator:
        case "<":
            return Range(base, value)
        case "<=":
            return Range(base, after_prefix(value))
        case ">":
            return Range(after_prefix(value), end)
        case ">=":
            return Range(value, end)
        case "BETWEEN":
            return Range(value, after_prefix(base + keyspace.closed(_raw(attribute, test, 1))))
    start = base + keyspace.escape(raw)
    return Range(start, after_prefix(start))


def _check_tests(schema: KeySchema, tests: dict[str, KeyTest]) -> None:
    if len(tests) > len(schema.attributes):
        raise ValidationFailed(
            f"The number of query conditions ({len(tests)}) exceeds the number of key attributes "
            f"defined in the schema ({len(schema.attributes)})"
        )
    if len(schema.partition) > 1:
        _check_equalities(schema, tests)
    for name, kind in schema.partition:
        _check_present(tests, name)
        _check_kind(tests[name], kind)
        if tests[name].operator != "=":
            raise ValidationFailed("Query key condition not supported")
    unknown = [name for name in tests if name not in schema.names]
    if unknown and schema.sort:
        _check_present(
            tests, next((name for name, _ in schema.sort if name not in tests), schema.sort[0].name)
        )
    if unknown:
        raise ValidationFailed("Query key condition not supported")
    _check_sort(schema, tests)


def _check_equalities(schema: KeySchema, tests: dict[str, KeyTest]) -> None:
    """Check that every attribute of a multi-attribute partition key is compared for equality.

    The message is DynamoDB Local's. For a partition key of one attribute, AWS has older messages,
    which ``_check_tests`` raises.
    """
    missing = [
        name
        for name, _ in schema.partition
        if (test := tests.get(name)) is None or test.operator != "="
    ]
    if missing:
        raise ValidationFailed(
            f"HASH key attributes {', '.join(missing)} must have equality conditions specified in "
            "the query"
        )


def _check_present(tests: dict[str, KeyTest], name: str) -> None:
    if name not in tests:
        raise ValidationFailed(f"Query condition missed key schema element: {name}")


def _check_kind(test: KeyTest, kind: str) -> None:
    if any(kind not in value for value in test.values) or (
        test.operator == "begins_with" and kind == "N"
    ):
        raise ValidationFailed(f"{INVALID}Condition parameter type does not match schema type")


def _check_sort(schema: KeySchema, tests: dict[str, KeyTest]) -> None:
    """Check the tests of an index's sort attributes.

    The tests must begin with the first attribute and leave none out. All tests but the last must be
    equalities.
    """
    open_ended: list[str] = []
    for name, kind in schema.sort:
        test = tests.get(name)
        if test is not None:
            _check_kind(test, kind)
            if open_ended:
                raise ValidationFailed(
                    f"RANGE key attributes {', '.join(open_ended)} must have equality conditions "
                    "specified in the query because a condition is present on key attribute "
                    f"{name}"
                )
        if test is None or test.operator != "=":
            open_ended.append(name)


# -- starting keys


def start_names(table: Table, index: Index | None) -> set[str]:
    """Return the attributes of an ExclusiveStartKey: the keys of the table and of the index."""
    return {*table.schema.names, *(index.schema.names if index is not None else ())}


def start_entry(table: Table, index: Index | None, start: Item) -> bytes:
    """Return the storage key of the entry that an ExclusiveStartKey names.

    The caller has checked ``start``.
    """
    if index is None:
        return table.encode_key(start)
    entry = index.entry_key(start, table.encode_key(start))
    assert entry is not None
    return entry


def check_query_start(table: Table, index: Index | None, start: Item) -> None:
    if set(start) != start_names(table, index):
        raise ValidationFailed(BAD_START)
    schema = table.schema if index is None else index.schema
    for name, kind in schema.attributes:
        if kind not in start[name]:
            raise ValidationFailed(MISMATCH if index is None else f"{BAD_START}: {MISMATCH}")
    if not table.schema.covers(start):
        raise ValidationFailed(f"{BAD_START}: {MISMATCH}")
    _check_start_values(table, index, start)


def _check_start_values(table: Table, index: Index | None, start: Item) -> None:
    """Refuse a starting key with an empty or oversized value, by the same rules as for an item."""
    try:
        check_item_key(table.schema, start)
        if index is not None:
            check_index_keys([index], start)
    except ValidationFailed as error:
        raise ValidationFailed(f"{BAD_START}: {error.message}") from None


def check_query_boundaries(schema: KeySchema, start: Item, tests: dict[str, KeyTest]) -> None:
    for name, _ in schema.partition:
        if start[name] != tests[name].values[0]:
            raise ValidationFailed(
                "The provided starting key is outside query boundaries based on provided conditions"
            )
    for name, _ in schema.sort:
        test = tests.get(name)
        if test is not None and not _holds(test, start[name]):
            raise ValidationFailed(
                "The provided starting key does not match the range key predicate"
            )


def _holds(test: KeyTest, value: dict[str, str]) -> bool:
    if test.operator == "begins_with":
        return begins_with(value, test.values[0])
    if test.operator == "BETWEEN":
        return compare(">=", value, test.values[0]) and compare("<=", value, test.values[1])
    return compare(test.operator, value, test.values[0])


def check_scan_start(table: Table, index: Index | None, start: Item) -> None:
    if index is None and not start.keys() >= set(table.schema.names):
        raise ValidationFailed(f"{BAD_START}: {MISMATCH}")
    if set(start) != start_names(table, index):
        raise ValidationFailed(BAD_START)
    schemas = [table.schema] if index is None else [table.schema, index.schema]
    if not all(schema.covers(start) for schema in schemas):
        raise ValidationFailed(f"{BAD_START}: {MISMATCH}")
    _check_start_values(table, index, start)

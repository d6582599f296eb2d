"""The plan of a SELECT: which ranges of keys it reads, in which order, and what it filters.

The idea. A WHERE clause is reduced to boxes (see ``keys.py``): parts of the table that together
hold every item it can be true for. If each box names a partition, the statement runs as one Query
or several; otherwise it runs as a Scan. Ranges that touch are joined, so that no item is read
twice. Every range of a Query lies in one partition.

    WHERE pk IN ['b', 'a'] AND sk > 5 AND x = 1     ranges (a, >5), (b, >5), filter x = 1
    WHERE pk = 'a' AND sk = 1 OR pk = 'b'           ranges (a, =1), (b), filter: the whole clause
    WHERE x = 1                                     the whole table, filter x = 1

Order. Ranges are read one after the other, by partition key. ORDER BY reverses the partitions, the
sort key, or both. If it starts with the sort key, the partitions are merged by it.

A page ends with the key of its last item. With the same ranges in the same order, this key is
enough to continue.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stator.engine import keyspace
from stator.engine.items.key_ranges import Range, query_range
from stator.engine.items.stale_reader import EntryReader
from stator.engine.partiql.keys import (
    KeyBox,
    all_of,
    boxes,
    check_compared_kinds,
    conjuncts,
    key_test,
)
from stator.engine.tables.key_schema import KeySchema
from stator.errors import ValidationFailed
from stator.expr.compare import sort_value
from stator.expr.key_condition import KeyTest
from stator.expr.tree import And, Compare, Condition, In, Literal, Not, Or, Path, attribute_names
from stator.model.values import Value

OVERLAPPING: Final = "Overlapping conditions with range keys are not supported in where clause"
_NO_HASH_KEY: Final = (
    "Must have at least one non-optional hash key condition in WHERE clause when using "
    "ORDER BY clause."
)


@dataclass(slots=True)
class Span:
    """A range of storage keys that a SELECT reads: a part of one partition, or all partitions.

    ``partition`` is the partition key's value, and ``sort_at`` the offset of the sort key in each
    storage key. If the range spans all partitions, they are None and 0.
    """

    range: Range
    partition: Value | None
    sort_at: int


@dataclass(slots=True)
class SelectPlan:
    spans: list[Span]
    filter: Condition | None
    # Whether the whole clause fixes the index's key. Only then does AWS refuse filters on
    # attributes that the index does not project.
    keyed: bool
    backward: bool = False
    merged: bool = False


def make_plan(
    schema: KeySchema, prefix: bytes, where: Condition | None, order: tuple[tuple[str, bool], ...]
) -> SelectPlan:
    found = [KeyBox()] if where is None else boxes(where, schema)
    is_scan = any(box.partition is None for box in found)
    if where is not None:
        check_compared_kinds(where, schema, keyed=not is_scan)
    _check_order(schema, order, is_scan)
    if is_scan:
        return SelectPlan(
            [Span(Range(*keyspace.segment_bounds(prefix, 0, 1)), None, 0)], where, keyed=False
        )
    if isinstance(where, Or):
        _check_overlap(schema, prefix, where)
    rest = [term for term in conjuncts(where) if not _served(term, schema)]
    plan = SelectPlan(_spans(schema, prefix, found), all_of(rest), keyed=not isinstance(where, Or))
    _turn(plan, schema, dict(order), order[0][0] if order else None)
    return plan


def _check_order(schema: KeySchema, order: tuple[tuple[str, bool], ...], is_scan: bool) -> None:
    for name, _ in order:
        if name not in schema.names:
            raise ValidationFailed(
                f"Variable reference {name} in ORDER BY clause must be part of the primary key"
            )
    if order and is_scan:
        raise ValidationFailed(_NO_HASH_KEY)


def _turn(
    plan: SelectPlan, schema: KeySchema, directions: dict[str, bool], first: str | None
) -> None:
    plan.spans.sort(
        key=lambda span: sort_value(span.partition or {"S": ""}),
        reverse=directions.get(schema.partition[0].name, False),
    )
    if schema.sort and directions.get(schema.sort[0].name, False):
        plan.backward = True
        _reverse_within_partitions(plan.spans)
    plan.merged = first is not None and bool(schema.sort) and first == schema.sort[0].name


def _reverse_within_partitions(spans: list[Span]) -> None:
    start = 0
    for at in range(1, len(spans) + 1):
        if at == len(spans) or spans[at].partition != spans[start].partition:
            spans[start:at] = reversed(spans[start:at])
            start = at


# -- ranges


def _spans(schema: KeySchema, prefix: bytes, found: list[KeyBox]) -> list[Span]:
    """Turn key boxes into ranges of storage keys, and join the ranges that touch or overlap."""
    spans = sorted((_span(schema, prefix, box) for box in found), key=lambda span: span.range.low)
    joined: list[Span] = []
    for span in spans:
        if span.range.low >= span.range.high:
            continue
        if joined and span.range.low <= joined[-1].range.high:
            joined[-1].range.high = max(joined[-1].range.high, span.range.high)
        else:
            joined.append(span)
    return joined


def _span(schema: KeySchema, prefix: bytes, box: KeyBox) -> Span:
    name = schema.partition[0].name
    assert box.partition is not None
    whole = KeyTest("=", (box.partition,))
    span = query_range(schema, prefix, {name: whole})
    sort_at = len(span.low)
    for test in box.tests:
        part = query_range(schema, prefix, {name: whole, schema.sort[0].name: test})
        span = Range(max(span.low, part.low), min(span.high, part.high))
    return Span(span, box.partition, sort_at)


def _served(term: Condition, schema: KeySchema) -> bool:
    """Whether the ranges alone guarantee a term, so that no filter needs to test it."""
    match term:
        case In(Path((name,)), options):
            return name in schema.names and all(isinstance(option, Literal) for option in options)
        case Compare() if (tested := key_test(term)) is not None and tested[0] == schema.partition[
            0
        ].name:
            return tested[1].operator == "="
    tested = key_test(term)
    return tested is not None and bool(schema.sort) and tested[0] == schema.sort[0].name


# -- alternatives that overlap


def _check_overlap(schema: KeySchema, prefix: bytes, where: Or) -> None:
    """Refuse an OR if two of its terms can select the same sort key of the same partition.

    Terms that negate a test of the sort key are not compared. Captured from AWS (eu-west-2 and
    us-east-1, October 2026), within one partition: AWS refuses ``sk = '2' OR x = '1'``. It runs
    ``sk = '2' OR NOT sk = '1'`` and ``sk = '2' OR sk <> '1'``.
    """
    if not schema.sort:
        return
    sort_name = schema.sort[0].name
    tested = [
        box
        for branch in where.operands
        if not _negates(branch, sort_name)
        for box in boxes(branch, schema)
    ]
    spans = [_span(schema, prefix, box).range for box in tested]
    # Two different ranges of one partition can only overlap if a sort key narrows at least one.
    ranges = sorted({(span.low, span.high) for span in spans if span.low < span.high})
    if any(low < previous_high for (_, previous_high), (low, _) in pairwise(ranges)):
        raise ValidationFailed(OVERLAPPING)


def _negates(branch: Condition, sort_name: str) -> bool:
    match branch:
        case And(operands):
            return any(_negates(operand, sort_name) for operand in operands)
        case Not(operand):
            return sort_name in attribute_names(operand)
        case Compare("<>", _, _):
            return sort_name in attribute_names(branch)
    return False


# -- the walk


def walk(storage: EntryReader, plan: SelectPlan, after: bytes | None) -> Iterator[bytes]:
    """Yield the records of a plan in its order, from the start or after the key ``after``."""
    if plan.merged and len(plan.spans) > 1:
        return _merged(storage, plan, after)
    return _in_turn(storage, plan, after)


def place_of(plan: SelectPlan, key: bytes) -> int | None:
    """Return the index of the plan's range that holds a key, or None if no range does."""
    return next(
        (at for at, span in enumerate(plan.spans) if span.range.low <= key < span.range.high), None
    )


def _in_turn(storage: EntryReader, plan: SelectPlan, after: bytes | None) -> Iterator[bytes]:
    first = 0 if after is None else place_of(plan, after)
    assert first is not None
    for at, span in enumerate(plan.spans[first:]):
        low, high = span.range.low, span.range.high
        if at == 0 and after is not None:
            low, high = (low, after) if plan.backward else (after + b"\0", high)
        if low < high:
            yield from storage.values(low, high, reverse=plan.backward)


def _merged(storage: EntryReader, plan: SelectPlan, after: bytes | None) -> Iterator[bytes]:
    """Yield the records of all ranges merged by sort key.

    Records with equal sort keys come in the order of their ranges.
    """
    streams = [
        _by_sort_key(storage, span, _remaining(plan, at, after), plan.backward)
        for at, span in enumerate(plan.spans)
    ]
    merged = heapq.merge(*streams, key=lambda pair: pair[0], reverse=plan.backward)
    return (record for _, record in merged)


def _remaining(plan: SelectPlan, at: int, after: bytes | None) -> Range:
    """Return the part of range ``at`` that a merged walk still has to read.

    A merged walk reads all ranges together, by sort key. ``after`` is the last key it has read, or
    None at the start.
    """
    span = plan.spans[at]
    low, high = span.range.low, span.range.high
    if after is None:
        return Range(low, high)
    last = place_of(plan, after)
    assert last is not None
    here = low[: span.sort_at] + after[plan.spans[last].sort_at :]
    if plan.backward:
        return Range(low, min(high, here if at <= last else here + b"\0"))
    return Range(max(low, here + b"\0" if at <= last else here), high)


def _by_sort_key(
    storage: EntryReader, span: Span, left: Range, backward: bool
) -> Iterator[tuple[bytes, bytes]]:
    if left.low < left.high:
        for key, record in storage.scan(left.low, left.high, reverse=backward):
            yield key[span.sort_at :], record

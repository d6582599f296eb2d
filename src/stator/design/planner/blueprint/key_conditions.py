"""Key attributes and key conditions of the chosen paths.

A query names the partition in full and selects at most one range of sort keys. ``$`` is the
character after ``#``, so ``ORDER$`` is above every key that starts with ``ORDER#``. With the sort
key ``ORDER#{placed_at}#{order_id}``:

| asked | key condition |
|---|---|
| nothing more | ``begins_with(SK, "ORDER#")`` |
| placed_at from a | ``SK BETWEEN "ORDER#a" AND "ORDER$"`` |
| placed_at before b | ``SK BETWEEN "ORDER#" AND "ORDER#b"``: no key is ``ORDER#b``, ``#`` follows |
| placed_at up to b | ``SK BETWEEN "ORDER#" AND "ORDER#b$"`` |
| placed_at after a | ``SK BETWEEN "ORDER#a$" AND "ORDER$"`` |

If the compared part is the last of the key, "before b" uses the value just below b. If no such
value is known, a filter is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stator.design.entities.conditions import Comparison
from stator.design.entities.entity import Entity
from stator.design.plan import key_text as keys
from stator.design.plan.plan import (
    KeyConditionPart,
)
from stator.design.plan.templates import Part, PlannedKeyAttribute, Template, text, wire_value
from stator.design.planner.cost_model import Placement
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.keys.key_parts import (
    PAST_EVERYTHING,
    constant_text,
    field_part,
    partition_parts,
    sort_parts,
    tidy,
    value_encoding,
)
from stator.design.planner.needs.need import FieldSpan, Need, ValueSource
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.served_need import ServedNeed


@dataclass(frozen=True)
class Slot:
    """An index or the table's own key, with the names of its key attributes.

    ``index`` is None for the table's own key.
    """

    index: str | None
    kind: str
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    native: bool


# --- the key attributes of items ------------------------------------------------------------------


def key_attributes(
    placement: Placement, slot: Slot, labels: KeyLabels
) -> list[PlannedKeyAttribute]:
    """Return the key attributes that items carry for this placement."""
    path = placement.path
    if slot.native:
        names = [*slot.partition, *slot.sort]
        return [
            PlannedKeyAttribute(
                name,
                Template((field_part(path.entity, name),), native=True),
                slot.index,
                is_sort=name in slot.sort,
            )
            for name in names
        ]
    when = tuple(
        (
            Template((field_part(path.entity, name),)),
            constant_text(path.entity, name, source),
        )
        for name, source in path.constants
    )
    found = [
        PlannedKeyAttribute(
            name, Template(sort_parts(path, labels), path.sorts_natively), slot.index, when, True
        )
        for name in slot.sort
    ]
    if slot.kind != "LSI":
        parts, native = partition_parts(path, labels), partitions_natively(path)
        found.insert(
            0,
            PlannedKeyAttribute(slot.partition[0], Template(parts, native), slot.index, when),
        )
    return found


def partitions_natively(path: AccessPath) -> bool:
    """Whether the path is handwritten, and its partition key is a field itself."""
    return path.handwritten is not None and path.handwritten.native_partition


# --- key conditions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyConditionTemplate:
    """A key condition, the comparisons that a filter checks, and the number of shards to query."""

    tests: tuple[KeyConditionPart, ...]
    filters: tuple[Comparison, ...]
    shards: int


def condition_for(
    served: ServedNeed, slot: Slot, base: Placement, labels: KeyLabels
) -> KeyConditionTemplate:
    if slot.native:
        return _native_condition(served, slot)
    path = served.path
    need = served.need
    known = {
        name: source
        for name in (*need.equal, *path.parts, *base.path.parts)
        if (source := need.source(name)) is not None and not source.options
    }
    known |= {name: source for name, source in need.equal.items() if source.is_absent}
    # A local index has the table's partition.
    head = base.path if slot.kind == "LSI" else path
    if partitions_natively(head) or (slot.kind == "LSI" and base.is_native):
        [name] = head.partition
        value, shards = _native_value(served.need.entity, name, known[name]), 1
    else:
        parts = _bound(partition_parts(head, labels), known)
        value = Template(parts)
        shards = next((part.shards for part in parts if part.kind == "shard" and not part.of), 1)
    tests = [KeyConditionPart(slot.partition[0], "=", (value,))]
    if path.sorts_natively:
        return KeyConditionTemplate((*tests, *_native_sort(served, path.sort)), (), shards)
    if not slot.sort:
        return KeyConditionTemplate(tuple(tests), (), shards)
    sort, filters = _sort_tests(slot.sort[0], sort_parts(path, labels), known, served.span)
    return KeyConditionTemplate((*tests, *sort), filters, shards)


def group_partition(path: AccessPath, member: Need, labels: KeyLabels) -> tuple[Part, ...]:
    """Return the partition key for a query over several entities.

    The shard number is left open, because the reader queries every shard.
    """
    parts = partition_parts(path, labels)
    return tuple(
        replace(part, of=()) if part.kind == "shard" else _bind(part, member.equal)
        for part in parts
    )


def _bound(parts: tuple[Part, ...], known: Mapping[str, ValueSource]) -> tuple[Part, ...]:
    return tidy([_bind(part, known) for part in parts])


def _bind(part: Part, known: Mapping[str, ValueSource]) -> Part:
    if part.kind == "shard":
        # An adaptive shard depends on the traffic as well, not on the identity alone.
        complete = not part.adaptive and all(each.name in known for each in part.of)
        return replace(part, of=tuple(_bind(each, known) for each in part.of) if complete else ())
    return part if part.kind == "text" else _value(part, known[part.name])


def _value(part: Part, source: ValueSource, step: int = 0) -> Part:
    encoding = value_encoding(part, source)
    if source.param is not None:
        return Part("param", source.param, encoding, inverted=part.inverted, step=step)
    return text(
        keys.encode(encoding, _stepped(part, source.constant, step), inverted=part.inverted)
    )


def _stepped(part: Part, value: Any, step: int) -> Any:
    found = keys.encoding_named(part.encoding).step
    return found(keys.plain(value), step) if step and found else value


def _sort_tests(
    attribute: str,
    parts: tuple[Part, ...],
    known: Mapping[str, ValueSource],
    span: FieldSpan | None,
) -> tuple[list[KeyConditionPart], tuple[Comparison, ...]]:
    at = next(
        (at for at, part in enumerate(parts) if part.kind == "field" and part.name not in known),
        len(parts),
    )
    head = [_bind(part, known) for part in parts[:at]]
    if at == len(parts):
        return [KeyConditionPart(attribute, "=", (Template(tidy(head)),))], ()
    if span is None or span.field != parts[at].name:
        return (
            [KeyConditionPart(attribute, "begins_with", (Template(tidy(head)),))] if head else []
        ), ()
    if span.prefix is not None:
        return [
            KeyConditionPart(
                attribute,
                "begins_with",
                (Template(tidy([*head, _value(parts[at], span.prefix)])),),
            )
        ], ()
    return _range_tests(attribute, head, parts[at], span, last=at == len(parts) - 1)


def _range_tests(
    attribute: str, head: list[Part], part: Part, span: FieldSpan, *, last: bool
) -> tuple[list[KeyConditionPart], tuple[Comparison, ...]]:
    """Return the key condition of a range, and the comparisons that a filter must check.

    ``part`` is the compared part of the key, and ``head`` has the parts before it. ``last`` means
    that ``part`` ends the key. A key can then be equal to a bound. To exclude the upper bound, the
    condition uses the value just below it, or else a filter.
    """
    low, low_in, high, high_in = span.low, span.low_inclusive, span.high, span.high_inclusive
    if part.inverted:
        low, low_in, high, high_in = high, high_in, low, low_in
    after = text(keys.AFTER)
    filters: tuple[Comparison, ...] = ()
    bottom = None if low is None else [*head, _value(part, low), *([] if low_in else [after])]
    top = None
    if high is not None and high_in:
        top = [*head, _value(part, high), after]
    elif (
        high is not None and last and keys.encoding_named(part.encoding).step and not part.inverted
    ):
        top = [*head, _value(part, high, step=-1), after]
    elif high is not None:
        top = [*head, _value(part, high)]
        filters = span.tests if last else ()
    if head:
        bottom = bottom or head
        top = top or _end_of(head)
    if bottom and top:
        return [
            KeyConditionPart(attribute, "BETWEEN", (Template(tidy(bottom)), Template(tidy(top))))
        ], filters
    if bottom:
        return [KeyConditionPart(attribute, ">=", (Template(tidy(bottom)),))], filters
    assert top is not None
    return [KeyConditionPart(attribute, "<=", (Template(tidy(top)),))], filters


def _end_of(head: list[Part]) -> list[Part]:
    """Return parts whose text is greater than every key that starts with ``head``."""
    *rest, final = head
    if final.kind == "text" and final.value.endswith(keys.SEPARATOR):
        return [*rest, text(final.value[:-1] + keys.AFTER)]
    return [*head, text(PAST_EVERYTHING)]


def _native_condition(served: ServedNeed, slot: Slot) -> KeyConditionTemplate:
    """Return the key condition of a native key, whose attributes are fields themselves.

    It has equalities, followed by at most one range.
    """
    need = served.need
    tests = [
        KeyConditionPart(name, "=", (_native_value(need.entity, name, need.equal[name]),))
        for name in slot.partition
    ]
    return KeyConditionTemplate((*tests, *_native_sort(served, slot.sort)), (), 1)


def _native_sort(served: ServedNeed, sort: tuple[str, ...]) -> list[KeyConditionPart]:
    """Return the conditions on sort keys that are fields themselves."""
    need = served.need
    tests = [
        KeyConditionPart(name, "=", (_native_value(need.entity, name, need.equal[name]),))
        for name in sort
        if name in served.prefix
    ]
    if served.span is not None:
        tests.append(_native_range(need.entity, served.span))
    return tests


def _native_value(entity: type[Entity], name: str, source: ValueSource, step: int = 0) -> Template:
    part = field_part(entity, name)
    encoding = value_encoding(part, source)
    if source.param is not None:
        return Template((Part("param", source.param, encoding, step=step),), native=True)
    [content] = wire_value(
        encoding, _stepped(part, source.constant, step), f"{entity.__name__}.{part.name}"
    ).values()
    return Template((Part("text", str(content), part.encoding),), native=True)


def _native_range(entity: type[Entity], span: FieldSpan) -> KeyConditionPart:
    name = span.field
    if span.prefix is not None:
        return KeyConditionPart(name, "begins_with", (_native_value(entity, name, span.prefix),))
    if span.low is not None and span.high is not None:
        low = _native_value(entity, name, span.low, 0 if span.low_inclusive else 1)
        high = _native_value(entity, name, span.high, 0 if span.high_inclusive else -1)
        return KeyConditionPart(name, "BETWEEN", (low, high))
    if span.low is not None:
        return KeyConditionPart(
            name, ">=" if span.low_inclusive else ">", (_native_value(entity, name, span.low),)
        )
    assert span.high is not None
    return KeyConditionPart(
        name, "<=" if span.high_inclusive else "<", (_native_value(entity, name, span.high),)
    )

"""Needs from traced patterns.

``need_of`` sorts the comparisons of a pattern into those that a key can answer and those that are
left to a filter. ``group_of`` finds the values that a pattern over several entities compares with
fields of each of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.derived_parts import PartComparison
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Choice, Maybe
from stator.design.patterns.ask import Ask
from stator.design.patterns.condition_contents import references
from stator.design.patterns.pattern import Pattern
from stator.design.planner.needs.need import (
    FieldSpan,
    Need,
    TogetherGroup,
    ValueSource,
    equals,
    key_encoding,
    source_of,
)
from stator.errors import DesignError, PatternRefused

LISTED_VALUES: Final = 5
"""The assumed number of values in a list argument. Each gets a query."""

MOST_VALUES: Final = 25
"""Up to this many values get one query each; more become a filter."""


def need_of(pattern: Pattern[..., Any], target: type[Entity]) -> Need:
    """Return what a pattern requires of one of its targets."""
    ask, known = pattern.trace(), info(target)
    if pattern.traffic.shards is not None and len(ask.targets) > 1:
        raise DesignError(
            f'{pattern.name}: shards="adaptive" is for patterns over one entity',
            hint="declare one pattern for each entity, or leave out shards=",
        )
    equal, equal_tests, spans, filters = _sorted_tests(ask, target, known)
    need = Need(
        name=pattern.name,
        entity=target,
        equal=equal,
        equal_tests=equal_tests,
        spans=spans,
        order=_order(pattern, ask, target, known, spans),
        then=_then(pattern, ask, known),
        descending=ask.descending,
        against=ask.against,
        filters=filters,
        limit=ask.limit,
        consistent=pattern.traffic.consistent,
        is_count=ask.is_count,
        hides=ask.hides(target),
        expires=next((each.name for each in known.fields.values() if each.role == "ttl"), None),
        rps=pattern.traffic.rps,
        day_share=1.0 if pattern.traffic.window is None else pattern.traffic.window.share,
        is_whole=ask.limit is None and len(ask.targets) == 1 and not pattern.traffic.paged,
        adaptive=pattern.traffic.shards == "adaptive",
    )
    return replace(need, selects=_selected(ask, known, need))


def _selected(ask: Ask, known: EntityInfo, need: Need) -> frozenset[str]:
    if not ask.only or len(ask.targets) > 1:
        return frozenset()
    hiding = (each.name for each in known.fields.values() if each.role in ("ttl", "soft_delete"))
    order = () if need.order is None else (need.order, *need.then)
    return frozenset({*ask.only, *hiding, *order})


def _sorted_tests(
    ask: Ask, target: type[Entity], known: EntityInfo
) -> tuple[
    dict[str, ValueSource], dict[str, Comparison], tuple[FieldSpan, ...], tuple[Condition, ...]
]:
    equal: dict[str, ValueSource] = {}
    equal_tests: dict[str, Comparison] = {}
    ranges: dict[str, list[Comparison]] = {}
    filters: list[Condition] = []
    for test in ask.tests:
        if not issubclass(target, test.field.owner):
            continue
        name = test.field.name
        if isinstance(test, PartComparison):
            name = str(test.derived)
            if key_encoding(known, name) is not None and name not in equal:
                source = replace(source_of(test.values[0]), part=test.part)
                equal[name], equal_tests[name] = source, test
            else:
                filters.append(test)
        elif _asks_for_none(test, ask, known) and name not in equal:
            equal[name], equal_tests[name] = ValueSource(is_absent=True), test
        elif (
            any(isinstance(value, FieldRef) or value is None for value in test.values)
            or not key_encoding(known, name)
            or test.operator == "not_exists"
        ):
            filters.append(test)
        elif test.operator == "=" and name not in equal:
            equal[name], equal_tests[name] = source_of(test.values[0]), test
        elif test.operator == "in" and name not in equal and _may_be_asked_one_by_one(test, ask):
            equal[name], equal_tests[name] = (
                ValueSource(options=tuple(map(source_of, test.values))),
                test,
            )
        elif test.operator == "in_list" and name not in equal and len(ask.targets) == 1:
            equal[name], equal_tests[name] = (
                replace(source_of(test.values[0]), listed=_listed(known, name)),
                test,
            )
        elif test.operator in ("=", "in", "in_list"):
            filters.append(test)
        else:
            ranges.setdefault(name, []).append(test)
    spans: list[FieldSpan] = []
    for name, tests in ranges.items():
        merged, rest = _merged(name, tests, known)
        filters += rest
        spans += [merged] if merged is not None else []
    filters += [
        each
        for each in ask.filters
        if all(issubclass(target, one.owner) for one in references(each))
    ]
    return equal, equal_tests, tuple(spans), tuple(filters)


def _asks_for_none(test: Comparison, ask: Ask, known: EntityInfo) -> bool:
    """Whether a test asks for items in which a field is None, and an index can hold these alone.

    The index holds the items that lack the field's attribute. It is impossible if the field stores
    None as NULL, because then no item lacks the attribute.
    """
    is_none = test.operator == "not_exists" or (test.operator == "=" and test.values[0] is None)
    declared = known.fields.get(test.field.name)
    if not is_none or declared is None or len(ask.targets) > 1:
        return False
    shape = declared.shape
    return (
        isinstance(shape, Maybe)
        and not shape.kept
        and declared.role not in ("soft_delete", "large")
        and key_encoding(known, test.field.name) is not None
    )


def _listed(known: EntityInfo, name: str) -> int:
    """Return the assumed number of values in a list argument that is compared with a field."""
    shape = known.fields[name].shape
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return min(LISTED_VALUES, len(inner.values)) if isinstance(inner, Choice) else LISTED_VALUES


def _may_be_asked_one_by_one(test: Comparison, ask: Ask) -> bool:
    """Whether an ``is_in`` test can become one query for each of its values.

    This requires few values, and a pattern over a single entity.
    """
    return len(ask.targets) == 1 and 1 <= len(test.values) <= MOST_VALUES


def _merged(
    name: str, tests: list[Comparison], known: EntityInfo
) -> tuple[FieldSpan | None, list[Comparison]]:
    """Merge the comparisons of one field into one span.

    Returns the span and the comparisons that do not fit into it. The span is None if none fits.
    """
    span, rest = FieldSpan(name), []
    encoding = key_encoding(known, name)
    for test in tests:
        values = [source_of(value) for value in test.values]
        match test.operator:
            case "begins_with" if (
                span == FieldSpan(name) and encoding is not None and encoding.name == "str"
            ):
                span = replace(span, prefix=values[0])
            case ">=" | ">" if span.low is None and span.prefix is None:
                span = replace(span, low=values[0], low_inclusive=test.operator == ">=")
            case "<=" | "<" if span.high is None and span.prefix is None:
                span = replace(span, high=values[0], high_inclusive=test.operator == "<=")
            case "between" if span.low is None and span.high is None and span.prefix is None:
                span = replace(span, low=values[0], high=values[1])
            case _:
                rest.append(test)
                continue
        span = replace(span, tests=(*span.tests, test))
    return (span if span.tests else None), rest


def _order(
    pattern: Pattern[..., Any],
    ask: Ask,
    target: type[Entity],
    known: EntityInfo,
    spans: tuple[FieldSpan, ...],
) -> str | None:
    if ask.order is not None:
        if not issubclass(target, ask.order.owner):
            return (
                ask.order.name if len(ask.targets) > 1 and ask.order.name in known.fields else None
            )
        if len(ask.order.path) > 1 or not key_encoding(known, ask.order.name):
            raise DesignError(
                f"{pattern.where}: {pattern.name} orders by {ask.order!r}, which no key can hold",
                hint="order by a field of the entity itself that has one plain value",
            )
        return ask.order.name
    if not ask.by_time:
        return None
    candidates = [span.field for span in spans] or [
        name for name, each in known.fields.items() if each.role == "created"
    ]
    if not candidates:
        candidates = [
            name
            for name, each in known.fields.items()
            if each.role in (None, "ident")
            and (found := key_encoding(known, name))
            and found.name == "datetime"
        ]
    if len(candidates) == 1:
        return candidates[0]
    if len(ask.targets) > 1:
        return None
    which = "newest" if ask.descending else "oldest"
    raise DesignError(
        f"{pattern.where}: {pattern.name} asks for the {which} first, but {known.name} "
        f"does not have exactly one time field",
        hint=f"name the field: .{which}_first({known.name}.some_time)",
    )


def _then(pattern: Pattern[..., Any], ask: Ask, known: EntityInfo) -> tuple[str, ...]:
    for each in ask.then:
        if len(each.path) > 1 or not key_encoding(known, each.name):
            raise DesignError(
                f"{pattern.where}: {pattern.name} orders by {each!r}, which no key can hold",
                hint="order by fields of the entity itself that have one plain value",
            )
    return tuple(each.name for each in ask.then)


def group_of(pattern: Pattern[..., Any]) -> TogetherGroup:
    """Return the group of a pattern over several entities.

    Fields of different entities belong together if they are compared with the same value.
    """
    ask = pattern.trace()
    members = [need_of(pattern, target) for target in ask.targets]
    if ask.by_time and all(member.order is None for member in members):
        first, which = info(ask.targets[0]).name, "newest" if ask.descending else "oldest"
        raise DesignError(
            f"{pattern.where}: {pattern.name} asks for the {which} first, but none of its entities "
            f"has exactly one time field",
            hint=f"name the field: .{which}_first({first}.some_time)",
        )
    shared: list[tuple[str, ...]] = []
    filled = [dict(member.equal) for member in members]
    tests = [dict(member.equal_tests) for member in members]
    for same in dict.fromkeys(
        source.same for member in members for source in member.equal.values()
    ):
        columns = [_field_for(same, at, members) for at in range(len(members))]
        if all(column is not None for column in columns):
            shared.append(tuple(str(column) for column in columns))
            _check_link(
                pattern, [(member.entity, str(column)) for member, column in zip(members, columns)]
            )
            source, test = next(
                (each, member.equal_tests[name])
                for member in members
                for name, each in member.equal.items()
                if each.same == same
            )
            for at, column in enumerate(columns):
                filled[at].setdefault(str(column), source)
                tests[at].setdefault(
                    str(column), equals(members[at].entity, str(column), test.values[0])
                )
    if not shared:
        names = " and ".join(info(target).name for target in ask.targets)
        raise DesignError(
            f"{pattern.where}: {pattern.name} reads {names} together, but compares no field that "
            f"all of them have",
            hint="compare a field that each of them has, for example "
            ".where(User.user_id == user_id, Order.user_id == user_id)",
        )
    needs = tuple(
        replace(member, equal=equal, equal_tests=compared)
        for member, equal, compared in zip(members, filled, tests)
    )
    return TogetherGroup(pattern.name, needs, tuple(shared), pattern.traffic.rps, pattern)


def _field_for(same: str, at: int, members: list[Need]) -> str | None:
    """Return the field of ``members[at]``, the need of one entity, that corresponds to a value.

    The needs belong to a pattern over several entities, and ``same`` stands for the value (see
    ``ValueSource.same``). The result is the field that the need compares with the value. If there
    is none, it is a field of the name that another member compares with the value. Returns None if
    the entity has no such field.
    """
    own = [name for name, source in members[at].equal.items() if source.same == same]
    if own:
        return own[0]
    known = info(members[at].entity)
    names = [
        name for member in members for name, source in member.equal.items() if source.same == same
    ]
    return next(
        (name for name in names if name not in members[at].equal and key_encoding(known, name)),
        None,
    )


def _check_link(pattern: Pattern[..., Any], columns: list[tuple[type[Entity], str]]) -> None:
    """Refuse fields of different types: their key texts differ, so they never share a partition."""
    shown: dict[str, str] = {}
    for entity, name in columns:
        encoding = key_encoding(info(entity), name)
        assert encoding is not None
        kind = encoding.name.rpartition(".")[2]  # a part has one text, whatever it is computed from
        shown.setdefault(kind, f"{info(entity).name}.{name} ({encoding.name})")
    if len(shown) > 1:
        [first, second, *_] = shown.values()
        raise PatternRefused(
            pattern.name,
            f"{pattern.where}: {pattern.name} compares {first} and {second} with the same value, "
            f"but fields of different types are written differently in keys and never match",
            hint="give both fields the same type, or read the entities in two patterns",
        )

"""Needs: patterns in one common form that says what each of them requires of a key.

A ``Need`` is about one entity. It has fields that equal a value, ranges of fields, an order, and
filters for all other conditions. A pattern over several entities is a ``TogetherGroup`` of needs
that one partition must serve. Updates and deletes know an item's identity and must find its key.
That is a need, too. It costs nothing if the base key can be computed from the identity.

Values are not known yet. A ``ValueSource`` says where a value will come from: an argument of the
pattern, or a constant in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any, Final, Literal

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.derived_parts import PartComparison, derived_part, source_field
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.patterns.pattern import Ask, DeclaredWrite, Param, Pattern, references
from stator.design.plan import key_text as keys
from stator.design.planner.distinct_values import Guess
from stator.errors import DesignError, PatternRefused

LISTED_VALUES: Final = 5
"""The assumed number of values in a list argument. Each gets a query."""

MOST_VALUES: Final = 25
"""Up to this many values get one query each; more become a filter."""


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where a compared value comes from: the argument ``param``, or else ``constant``.

    With ``options``, the value is one of several. With ``listed``, the argument is a list, and the
    value is any of its members; ``listed`` is their estimated number. ``is_absent`` means that the
    field has no value.
    """

    param: str | None = None
    constant: Any = None
    options: tuple[ValueSource, ...] = ()
    listed: int = 0
    is_absent: bool = False
    part: str = ""
    """The derived part that the value is, such as ``month``; empty for a whole value."""

    @property
    def is_constant(self) -> bool:
        return self.param is None and not self.options

    @property
    def is_many(self) -> bool:
        return bool(self.options or self.listed)

    @property
    def same(self) -> str:
        """A text that is equal for two sources of the same value.

        For ``options``, it is equal for the same options in the same order.
        """
        if self.options:
            return f"one of {', '.join(each.same for each in self.options)}"
        if self.is_absent:
            return "no value"
        return f":{self.param}" if self.param is not None else repr(keys.plain(self.constant))


def source_of(value: Any) -> ValueSource:
    return (
        ValueSource(param=value.name) if isinstance(value, Param) else ValueSource(constant=value)
    )


@dataclass(frozen=True, slots=True)
class FieldSpan:
    """The range of values that a need allows for one field, merged from its comparisons."""

    field: str
    low: ValueSource | None = None
    low_inclusive: bool = True
    high: ValueSource | None = None
    high_inclusive: bool = True
    prefix: ValueSource | None = None
    tests: tuple[Comparison, ...] = ()
    part: str = ""
    """The derived part that ``prefix`` selects (``month_of(at)``); empty for begins_with."""


@dataclass(frozen=True, slots=True)
class Selectivity:
    """How many items pass the conditions of a need, as ``planner.selectivity`` computes."""

    equal: float = 1.0
    """The number of items that have all values compared for equality."""
    spans: Mapping[str, float] = field(default_factory=dict)
    """The share of items in the range of each field."""
    filter_shares: tuple[float, ...] = ()
    """The share of items that pass each of the need's filters."""
    result: float = 1.0
    """The number of items that pass every condition."""
    excess: float = 1.0
    """How many times larger ``returns=`` is than what the volumes allow."""
    guesses: tuple[Guess, ...] = ()
    said: float | None = None
    """The share of items that have all compared values. Set only if ``returns=`` decides it."""


@dataclass(frozen=True, slots=True)
class PartTest:
    """A test that a derived part, such as ``month_of(placed_at)``, equals a value."""

    name: str
    source: ValueSource


@dataclass(frozen=True)
class Need:
    """The requirements of one pattern on one entity."""

    name: str
    entity: type[Entity]
    equal: dict[str, ValueSource]
    spans: tuple[FieldSpan, ...] = ()
    order: str | None = None
    then: tuple[str, ...] = ()
    descending: bool = False
    against: tuple[str, ...] = ()
    """The fields in ``then`` that run in the other direction than ``order``."""
    filters: tuple[Condition, ...] = ()
    limit: int | Param | None = None
    consistent: bool = False
    is_count: bool = False
    hides: str | None = None
    """The ``soft_delete()`` field, if items that have it set are left out of the result."""
    selects: frozenset[str] = frozenset()
    """The fields that an index must hold so that no item has to be fetched from the table.

    This includes the fields that a pattern with ``only`` returns, and fields that order or hide
    items. Empty if the pattern returns whole items.
    """
    only_key: bool = False
    """The item itself is not wanted: an update or delete looks up its key."""
    rps: float = 1.0
    equal_tests: dict[str, Comparison] = field(default_factory=dict)
    declared: float | None = None
    """The number of items that one call returns, as ``returns=`` declares it."""
    limit_items: int | None = None
    """The limit as a number. None if nothing limits what is read."""
    numbers: Selectivity = field(default_factory=lambda: Selectivity())
    is_whole: bool = False
    """Each call reads the whole result: the pattern has no limit, and nothing reads it in pages."""
    may_sort: bool = False
    """The whole result is known to be small, so that the client can sort it in memory."""
    leg_of: str | None = None
    """The pattern over several entities that this need is a leg of.

    A leg costs something only if the pattern sends one request for each entity.
    """
    fractions: dict[frozenset[str], float] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """A cache of ``selectivity.fraction``."""

    @cached_property
    def keyed(self) -> frozenset[str]:
        """The fields whose values a key can hold: fields that equal a value other than None."""
        return frozenset(name for name, source in self.equal.items() if not source.is_absent)

    @cached_property
    def sequence(self) -> tuple[str, ...]:
        """The fields that order the items. Fields that equal a value do not order anything."""
        fields = () if self.order is None else (self.order, *self.then)
        return tuple(name for name in fields if name not in self.equal)

    @cached_property
    def descends(self) -> tuple[str, ...]:
        """The fields of the order that descend."""
        return tuple(
            name for name in self.sequence if self.descending is not (name in self.against)
        )

    @cached_property
    def is_mixed(self) -> bool:
        """Whether some fields of the order ascend, and others descend."""
        return bool(self.against) and len(self.descends) not in (0, len(self.sequence))

    def source(self, name: str) -> ValueSource | None:
        """Return where the value of a field or derived part comes from, or None if it is unknown.

        The value of a derived part is also known if the need compares its field, or a finer part of
        the field, with a single value.
        """
        found = self.equal.get(name)
        if found is not None:
            return None if found.is_absent else found
        part = derived_part(name)
        if part is None:
            return None
        known = [part.field, *(each.name for each in self.parts_of(part.field))]
        for each in known:
            own, source = derived_part(each), self.equal.get(each)
            is_one = source is not None and not source.is_absent and not source.is_many
            if is_one and (own is None or own.is_finer(part)):
                return source
        return None

    @cached_property
    def has_parts(self) -> bool:
        return any(derived_part(name) is not None for name in self.equal)

    def parts_of(self, field: str) -> list[PartTest]:
        """Return the derived parts of a field that the need compares, the finest first."""
        if not self.has_parts:
            return []
        parts = [(part, name) for name in self.equal if (part := derived_part(name)) is not None]
        own = [(part.length, name) for part, name in parts if part.field == field]
        return [PartTest(name, self.equal[name]) for _, name in sorted(own, reverse=True)]

    def options(self, fields: Iterable[str]) -> int:
        """Return how many combinations of values the need accepts for these fields.

        Only an ``is_in`` test accepts several values. Fields without an equality test are ignored.
        """
        sources = [self.equal[name] for name in fields if name in self.equal]
        return math.prod(len(source.options) or source.listed or 1 for source in sources)

    @property
    def wanted(self) -> float:
        """The number of items one call is expected to return."""
        limit = self.limit_items
        return self.numbers.result if limit is None else min(self.numbers.result, float(limit))


@dataclass(frozen=True)
class TogetherGroup:
    """Needs of several entities that a pattern reads together.

    Either one query of one partition serves all the needs, or one request for each entity does.
    Each entry of ``shared`` stands for one value that every member compares a field with. The entry
    lists these fields in the order of ``members``.
    """

    name: str
    members: tuple[Need, ...]
    shared: tuple[tuple[str, ...], ...]
    rps: float
    pattern: Pattern[..., Any]

    @property
    def is_limited(self) -> bool:
        return self.members[0].limit is not None

    def partition_of(self, entity: type[Entity], chosen: tuple[int, ...]) -> tuple[str, ...]:
        at = next(at for at, member in enumerate(self.members) if member.entity is entity)
        return tuple(self.shared[each][at] for each in chosen)


def key_encoding(known: EntityInfo, name: str) -> keys.Encoding | None:
    """Return how a field or derived part is written in a key, or None if no key can hold it."""
    part = None if name in known.fields else derived_part(name)
    if part is not None:
        whole = key_encoding(known, part.field)
        return None if whole is None else keys.part_encoding(whole, part.part)
    declared = known.fields.get(name)
    if declared is None or declared.role == "large":
        return None
    return keys.encoding_of(declared.shape)


def fields_of(need: Need, filters: Iterable[Condition]) -> frozenset[str]:
    """Return the fields that an index must project to check ``filters``, conditions of a need."""
    names = frozenset(
        reference.name for condition in filters for reference in references(condition)
    )
    # DynamoDB counts what the index shows. Other reads look at the whole item.
    return names | {need.hides} if need.is_count and need.hides is not None else names


def is_period(known: EntityInfo, name: str) -> bool:
    """Whether a name stands for a day or another period, shared by all items of one moment."""
    part = None if name in known.fields else derived_part(name)
    if part is not None:
        return part.is_time
    shape = known.fields[name].shape
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, Scalar) and inner.python is date


def is_optional(known: EntityInfo, name: str) -> bool:
    return isinstance(known.fields[source_field(name)].shape, Maybe)


# --- from traces to needs -------------------------------------------------------------------------


def need_of(pattern: Pattern[..., Any], target: type[Entity]) -> Need:
    """Return what a pattern requires of one of its targets."""
    ask, known = pattern.trace(), info(target)
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
        rps=pattern.traffic.rps,
        is_whole=ask.limit is None and len(ask.targets) == 1 and not pattern.traffic.paged,
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
    """Whether a test asks for items without a value that a sparse index could hold.

    Such an index is impossible if the field stores None as NULL, because then every item has the
    attribute.
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


# --- several entities together --------------------------------------------------------------------


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


def equals(entity: type[Entity], name: str, value: Any) -> Comparison:
    """Return the comparison of a field, or of a derived part, with a value."""
    part = derived_part(name)
    if part is None:
        return Comparison(FieldRef(entity, (name,)), "=", (value,))
    return PartComparison(FieldRef(entity, (part.field,)), "part", (value,), part.part)


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


def looked_up_by_guard(need: Need) -> str | None:
    """Return the ``unique()`` field whose guard leads to the need's item, or None.

    The need must compare that field, and nothing else, with one argument.
    """
    if len(need.equal) != 1 or need.spans or need.filters or need.is_count or need.leg_of:
        return None
    [(name, source)] = need.equal.items()
    declared = info(need.entity).fields.get(name)
    is_unique = declared is not None and declared.role == "unique"
    return name if is_unique and source.param is not None and not source.is_many else None


# --- writes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemWrite:
    """A write to one item of an entity, and how often it happens each second.

    An update changes ``fields``. ``before`` and ``after`` are the declared states of the item.
    """

    kind: Literal["create", "update", "delete"]
    rate: float
    fields: frozenset[str] = frozenset()
    before: tuple[Comparison, ...] = ()
    after: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class WriteRates:
    """The writes to an entity. Writes with the same effect are added up to one."""

    writes: tuple[ItemWrite, ...] = ()

    @cached_property
    def creates(self) -> float:
        return sum(each.rate for each in self.writes if each.kind == "create")

    @cached_property
    def deletes(self) -> float:
        return sum(each.rate for each in self.writes if each.kind == "delete")

    @cached_property
    def updates(self) -> tuple[tuple[frozenset[str], float], ...]:
        """Updates per second, by the fields they change."""
        found: dict[frozenset[str], float] = {}
        for each in self.writes:
            if each.kind == "update":
                found[each.fields] = found.get(each.fields, 0.0) + each.rate
        return tuple(sorted(found.items(), key=lambda each: sorted(each[0])))

    @property
    def by_key(self) -> float:
        """Updates and deletes per second. These writes must find their item by its key."""
        return self.deletes + sum(rate for _, rate in self.updates)


def item_write(change: DeclaredWrite, rate: float) -> ItemWrite:
    """Return a declared write as a write to one item.

    An update also changes the fields that every update changes. A soft delete is an update.
    """
    known = info(change.entity)
    always = {name for name, each in known.fields.items() if each.role in ("version", "updated")}
    marks = {name for name, each in known.fields.items() if each.role == "soft_delete"}
    if change.kind == "delete" and marks:
        return ItemWrite("update", rate, frozenset(marks | always), change.before)
    fields = frozenset(change.fields) | always if change.kind == "update" else frozenset[str]()
    return ItemWrite(change.kind, rate, fields, change.before, change.after)


def rates_of(entity: type[Entity], changes: Iterable[tuple[DeclaredWrite, float]]) -> WriteRates:
    found: dict[tuple[object, ...], ItemWrite] = {}
    for change, rate in changes:
        if change.entity is not entity:
            continue
        each = item_write(change, rate)
        states = [tuple(map(repr, states)) for states in (each.before, each.after)]
        key = each.kind, tuple(sorted(each.fields)), *states
        before = found.get(key)
        found[key] = each if before is None else replace(before, rate=before.rate + rate)
    return WriteRates(tuple(found[key] for key in sorted(found, key=repr)))


def mutable_fields(entity: type[Entity], rates: WriteRates) -> frozenset[str]:
    """Return the fields that some declared write changes. A base key must not hold them."""
    known = info(entity)
    changed = {name for fields, _ in rates.updates for name in fields}
    roles = {
        name
        for name, each in known.fields.items()
        if each.role in ("version", "updated", "counter", "ttl", "soft_delete")
    }
    for name in known.identity:
        if name in changed:
            raise DesignError(
                f"{known.name}.{name} is part of the identity, but a write pattern changes it",
                hint="delete the item and create another, or mark another field with ident()",
            )
    return frozenset(changed | roles)


def identity_need(entity: type[Entity], rates: WriteRates) -> Need | None:
    """Return the need of updates and deletes to find an item's key from its identity.

    Returns None if no declared write updates or deletes items.
    """
    if rates.by_key <= 0:
        return None
    equal = {name: ValueSource(param=name) for name in info(entity).identity}
    return Need(f"writes to {info(entity).name}", entity, equal, only_key=True, rps=rates.by_key)

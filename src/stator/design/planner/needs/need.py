"""A need: what one pattern requires of the key of one entity.

It has fields that equal a value, ranges of fields, an order, and filters for all other conditions.
A pattern over several entities is a ``TogetherGroup`` of needs that one partition must serve.
Updates and deletes know an item's identity and must find its key. That is a need, too. It costs
nothing if the base key can be computed from the identity.

Values are not known yet. A ``ValueSource`` says where a value will come from: an argument of the
pattern, or a constant in it. ``traced_needs`` makes needs from patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.derived_parts import PartComparison, derived_part, source_field
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Maybe
from stator.design.patterns.condition_contents import references
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import Pattern
from stator.design.plan import key_text as keys
from stator.design.planner.distinct_values import Guess


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
    expires: str | None = None
    """The ``ttl()`` field, if items past it are left out of the result."""
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
    day_share: float = 1.0
    """The share of the day in which the pattern runs."""
    adaptive: bool = False
    """The shards of the index's key values follow the traffic: ``@read(shards="adaptive")``."""
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

    @property
    def shown_to_count(self) -> frozenset[str]:
        """The fields by which a count leaves out deleted and expired items. Empty for reads."""
        hiding = (self.hides, self.expires) if self.is_count else ()
        return frozenset(name for name in hiding if name is not None)

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

    @property
    def busy_rps(self) -> float:
        """Calls a second while the pattern runs."""
        return self.rps / self.day_share

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
    return names | need.shown_to_count


def is_optional(known: EntityInfo, name: str) -> bool:
    return isinstance(known.fields[source_field(name)].shape, Maybe)


def equals(entity: type[Entity], name: str, value: Any) -> Comparison:
    """Return the comparison of a field, or of a derived part, with a value."""
    part = derived_part(name)
    if part is None:
        return Comparison(FieldRef(entity, (name,)), "=", (value,))
    return PartComparison(FieldRef(entity, (part.field,)), "part", (value,), part.part)


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

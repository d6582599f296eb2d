"""How a path serves a need.

A path serves a need when

1. every field of the partition is compared for equality, or with one of a few values (one query
   each);
2. the sort tuple begins with other fields that are compared for equality; any further ones become
   a filter;
3. the requested order is the next field of the sort tuple, and a range on that field becomes a
   range of the key; a small result that is read whole may be sorted in memory instead;
4. all other comparisons become a filter; a call then pays for all items under the key.

So the path (user; status, placed_at) serves the needs (user), (user, status) and (user, status,
placed_at from .. to) alike. Sharing paths is what makes layouts cheap.

A derived part (``month_of(placed_at)``) is one more name in these tuples. Its value is known if a
pattern compares the derived part, its field, or a finer part of the field. A derived part is also
the start of its field's text. So if the field itself is next in the sort tuple, a range of the key
serves the derived part, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import info
from stator.design.planner.estimates import KEPT_BY_FILTER, Estimates
from stator.design.planner.needs.need import FieldSpan, Need, fields_of, is_optional, key_encoding
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.selectivity import fraction


@dataclass(frozen=True, slots=True)
class ServedNeed:
    """How a path serves a need: which comparisons the key answers, and which a filter must check.

    ``amplification`` is the number of items under the key for each item that passes the filter.
    """

    path: AccessPath
    need: Need
    prefix: tuple[str, ...]
    span: FieldSpan | None
    left_equal: tuple[str, ...]
    left_spans: tuple[FieldSpan, ...]
    amplification: float
    whole_key: bool
    """Whether all fields of the key are known; with the base key, that is a GetItem."""
    filters: tuple[Condition, ...] = ()
    """The conditions left to a filter, without conditions that every item on the path meets."""
    in_memory: bool = False
    """The path does not hold the requested order, so the client sorts what it reads."""

    @property
    def filter_fields(self) -> frozenset[str]:
        return (
            fields_of(self.need, self.filters)
            | set(map(source_field, self.left_equal))
            | {span.field for span in self.left_spans}
        )

    @property
    def queries(self) -> int:
        """The number of queries that a call makes, not counting shards.

        If ``is_in`` allows several values for key fields, there is one query for each combination.
        """
        return self.need.options((*self.path.partition, *self.prefix))

    @property
    def identifies(self) -> bool:
        """Whether each query finds at most one item."""
        asked = {*self.path.partition, *self.prefix}
        equal = self.need.equal
        return all(
            name in equal and (name in asked or not equal[name].is_many)
            for name in info(self.need.entity).identity
        )

    def one_by_one(self) -> Iterable[ServedNeed]:
        """Yield one served need for each query, with one value in place of each ``is_in`` test."""
        equal = self.need.equal
        fields = [
            name
            for name in (*self.path.partition, *self.prefix)
            if name in equal and equal[name].options
        ]
        for chosen in product(*(self.need.equal[name].options for name in fields)):
            yield replace(
                self, need=replace(self.need, equal=self.need.equal | dict(zip(fields, chosen)))
            )

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields and derived parts whose values the key condition fixes."""
        known = (*(name for name, _ in self.path.constants), *self.path.partition, *self.prefix)
        part = self.span.part if self.span is not None else ""
        return (*known, part) if part else known

    @property
    def is_blunt(self) -> bool:
        """Whether the key condition must include a bound that the range excludes.

        This concerns a string key that ends with the ranged field: it can exclude the upper bound
        only if the next value below that bound is known. An inverted key cannot exclude the lower
        bound. A filter then drops the items at the bound.
        """
        span = self.span
        if span is None or span.field != self.path.sort[-1]:
            return False
        is_turned = self.path.turns(span.field)
        bound, included = (
            (span.low, span.low_inclusive) if is_turned else (span.high, span.high_inclusive)
        )
        if bound is None or included:
            return False
        encoding = key_encoding(info(self.need.entity), span.field)
        return is_turned or encoding is None or encoding.step is None


def serve(path: AccessPath, need: Need, estimates: Estimates) -> ServedNeed | None:
    """Return how ``path`` serves ``need``, or None if it does not."""
    keyed, sequence = need.keyed, need.sequence
    if path.parts:
        keyed |= {name for name in path.parts if need.source(name) is not None}
    if not _holds_constants(path, need) or not keyed.issuperset(path.partition):
        return None
    known = {*path.partition, *(name for name, _ in path.constants)}
    at = 0
    while at < len(path.sort) and path.sort[at] in keyed:
        at += 1
    prefix, following = path.sort[:at], path.sort[at] if at < len(path.sort) else None
    in_memory = bool(sequence) and not (
        path.sort[at : at + len(sequence)] == sequence and _same_directions(path, need)
    )
    if in_memory and not need.may_sort:
        return None
    if not _holds_all(path, need):
        return None
    span = next((each for each in need.spans if each.field == following), None)
    if span is None and following is not None:
        span = _span_of_part(need, following, known.union(prefix))
    held = known.union(prefix, () if span is None else (span.part,))
    left_equal = tuple(name for name in need.equal if name not in held)
    left_spans = tuple(each for each in need.spans if each is not span)
    found = ServedNeed(
        path, need, prefix, span, left_equal, left_spans,
        _amplification(need, held, left_equal, left_spans, estimates),
        at == len(path.sort) and not left_equal,
        tuple(
            each
            for each in (*need.filters, *(with_order(need) if in_memory else ()))
            if not _guarantees(path, each)
        ),
        in_memory,
    )  # fmt: skip
    if in_memory and _could_be_keyed(found):
        return None
    return found


def with_order(need: Need) -> Iterable[Comparison]:
    """Yield an ``exists()`` condition for each optional field of a need's order.

    A key that holds the order leaves out items without these fields. If the client sorts instead,
    these conditions leave out the same items. Fields that the need tests already are skipped.
    """
    required = required_fields(need)
    for name in need.sequence:
        if is_optional(info(need.entity), name) and name not in required:
            yield Comparison(FieldRef(need.entity, (name,)), "exists", ())


def _could_be_keyed(served: ServedNeed) -> bool:
    """Whether another path's key could answer a condition that this path leaves to a filter.

    In that case, the client does not sort for the need. A path that needs both a filter and a sort
    relies on two estimates at once, so the planner prefers an index.
    """
    required = [
        each
        for each in served.filters
        if isinstance(each, Comparison) and each.operator == "exists"
    ]
    return bool(
        served.left_equal
        or served.left_spans
        or any(each in served.need.filters for each in required)
    )


def _same_directions(path: AccessPath, need: Need) -> bool:
    """Whether one query, read forward or backward, returns the items in the order of the need.

    It does if all fields of the order are written in the needed directions, or all of them in the
    opposite directions.
    """
    if not need.is_mixed and not path.turned:
        return True
    descends = need.descends
    return len({path.turns(name) == (name in descends) for name in need.sequence}) == 1


def _span_of_part(need: Need, field: str, held: set[str]) -> FieldSpan | None:
    """Return the range of a field's text that the finest compared part of the field selects.

    For example, "2026-11" of ``month_of(placed_at)`` is a prefix of the texts of that month.
    Derived parts in ``held``, which the key already contains, do not count. Returns None if no
    derived part is left.
    """
    for test in need.parts_of(field):
        if test.name not in held and not test.source.is_many:
            return FieldSpan(field, prefix=test.source, part=test.name)
    return None


def _guarantees(path: AccessPath, condition: Condition) -> bool:
    """Whether every item with a key on this path meets a condition.

    An item has such a key only if it has all fields of the path. So an ``exists()`` test of one of
    these fields needs no filter.
    """
    return (
        isinstance(condition, Comparison)
        and condition.operator == "exists"
        and len(condition.field.path) == 1
        and condition.field.name in {*path.partition, *path.sort}
    )


def _holds_all(path: AccessPath, need: Need) -> bool:
    """Whether every item that matches the need has a key on this path.

    An item without one of the path's fields has no such key.
    """
    asked = {*need.keyed, *need.sequence, *(span.field for span in need.spans)}
    asked |= set(required_fields(need))
    known = info(path.entity)
    if need.has_parts:
        asked |= {source_field(name) for name in need.keyed}
    return all(source_field(name) in asked or not is_optional(known, name) for name in path.sort)


def _holds_constants(path: AccessPath, need: Need) -> bool:
    return all(
        name in need.equal and need.equal[name].same == source.same
        for name, source in path.constants
    )


def _amplification(
    need: Need,
    held: set[str],
    left: tuple[str, ...],
    spans: tuple[FieldSpan, ...],
    estimates: Estimates,
) -> float:
    """Return how many items lie under the key condition for each item that the filter keeps.

    ``held`` has the fields and derived parts that the key condition fixes. ``left`` has those that
    a filter compares for equality. If a filter keeps less than one item on average, one is assumed.
    """
    if set(info(need.entity).identity) <= need.equal.keys() - set(left):
        return 1.0
    under = kept = 1.0
    if left:
        volume = estimates.volume(need.entity)
        under = max(1.0, volume * fraction(need, held, estimates))
        kept = max(1.0, volume * fraction(need, {*held, *left}, estimates))
    return max(1.0, under / kept) / KEPT_BY_FILTER ** len(spans)


def required_fields(need: Need) -> list[str]:
    """Return the fields of the need's ``exists()`` tests."""
    return [
        each.field.name
        for each in need.filters
        if isinstance(each, Comparison) and each.operator == "exists" and len(each.field.path) == 1
    ]

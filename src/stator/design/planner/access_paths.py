"""Access paths: the ways an entity could be keyed, and which needs each path serves.

A need is what one pattern asks of one entity (see ``needs``). A path has two tuples of fields: the
partition, whose values must be known, and the sort tuple. It serves a need when

1. every field of the partition is compared for equality, or with one of a few values (one query
   each);
2. the sort tuple begins with other fields that are compared for equality; any further ones become
   a filter;
3. the requested order is the next field of the sort tuple, and a range on that field becomes a
   range of the key; a small result that is read whole may be sorted in memory instead;
4. all other comparisons become a filter; a call then pays for all items under the key.

So the path (user; status, placed_at) serves the needs (user), (user, status) and (user, status,
placed_at from .. to) alike. Sharing paths is what makes layouts cheap.

A base path contains the identity, so that no two items share a key. It may hold only required
fields that the caller provides and no write changes. In an index keys may repeat, because the end
of a page is also identified by the item's own key. Every path is therefore a candidate twice: as
short as its need allows, and with the rest of the identity appended. Other needs may compare the
appended fields.

A derived part (``month_of(placed_at)``) is one more name in these tuples. Its value is known if a
pattern compares the derived part, its field, or a finer part of the field. A derived part is also
the start of its field's text. So if the field itself is next in the sort tuple, a range of the key
serves the derived part, too.

A constant that a need compares with (status is open) can be written into the partition. Then only
the items for which it holds are in the index at all: the path is sparse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations, permutations, product
from typing import Final

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.planner.estimates import KEPT_BY_FILTER, Estimates
from stator.design.planner.keys.handwritten_keys import Handwritten
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.needs import (
    FieldSpan,
    Need,
    TogetherGroup,
    ValueSource,
    fields_of,
    is_optional,
    key_encoding,
)
from stator.design.planner.selectivity import fraction

_ALL_SUBSETS_UP_TO: Final = 3


@dataclass(frozen=True)
class AccessPath:
    """A way to key an entity.

    ``constants`` are values written into the partition key; only items that have them are in the
    index.
    """

    entity: type[Entity]
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    constants: tuple[tuple[str, ValueSource], ...] = ()
    shards: int = 1
    inverted: bool = False
    """The first field of ``sort`` is written inverted, so that the newest comes first."""
    turned: tuple[str, ...] = ()
    """Further fields of ``sort`` that are written inverted, for an order of mixed directions."""
    handwritten: Handwritten | None = None

    @cached_property
    def _hash(self) -> int:
        return hash(
            (
                self.entity,
                self.partition,
                self.sort,
                self.shards,
                self.inverted,
                self.turned,
                self.handwritten,
            )
        )

    def __hash__(self) -> int:
        return self._hash  # the search needs it a million times

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.constants), *self.partition, *self.sort)

    def turns(self, name: str) -> bool:
        """Whether a field of ``sort`` is written inverted."""
        return name in self.turned or (self.inverted and self.sort[0] == name)

    def turning(self, names: Iterable[str]) -> AccessPath:
        """Return the path with these fields of ``sort`` written inverted, and no others."""
        chosen = set(names)
        return replace(
            self,
            inverted=bool(self.sort) and self.sort[0] in chosen,
            turned=tuple(name for name in self.sort[1:] if name in chosen),
        )

    @cached_property
    def parts(self) -> frozenset[str]:
        """The names in the path that are derived parts."""
        return frozenset(name for name in self.fields if derived_part(name) is not None)

    @cached_property
    def sources(self) -> frozenset[str]:
        """The fields that decide the key: its fields, and the fields of its derived parts."""
        return frozenset(map(source_field, self.fields))

    @property
    def native_fields(self) -> frozenset[str]:
        """The fields that are key attributes themselves, if the path is handwritten."""
        return frozenset() if self.handwritten is None else self.handwritten.native_fields

    @property
    def sorts_natively(self) -> bool:
        """Whether the path is handwritten, and its sort key is a field itself."""
        return self.handwritten is not None and self.handwritten.native_sort

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """A sort key that decides between equally cheap paths.

        Shorter paths come first. Then come paths with more fields in the partition, because a
        coarse partition may become hot, and then paths whose fields were declared earlier.
        """
        constants = tuple((name, source.same) for name, source in self.constants)
        known = info(self.entity)
        return (
            known.name,
            self.shards,
            len(self.fields),
            len(constants),
            -len(self.partition),
            tuple(place_of(known, name) for name in self.partition),
            constants,
            tuple(place_of(known, name) for name in self.sort),
            self.inverted,
            self.turned,
            self.handwritten.rank if self.handwritten else (),
        )

    def __str__(self) -> str:
        shown = [f"{name}={source.same}" for name, source in self.constants] + list(self.partition)
        return f"{info(self.entity).name}({', '.join(shown)}; {', '.join(self.sort)})"


def place_of(known: EntityInfo, name: str) -> tuple[int, int, str]:
    """Return a sort key for names in the order of declaration, a field before its parts."""
    part = derived_part(name)
    at = list(known.fields).index(name if part is None else part.field)
    return (at, 0, "") if part is None else (at, part.length, part.part)


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
    required = _required(need)
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

    It does if the fields of the order are all written in the needed directions, or all in the
    opposite ones.
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
    asked |= set(_required(need))
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


# --- making them ----------------------------------------------------------------------------------


def paths_of(
    entity: type[Entity], needs: Iterable[Need], groups: Iterable[TogetherGroup], labels: KeyLabels
) -> tuple[AccessPath, ...]:
    """Return an entity's candidate paths, suggested by its needs, its groups and its identity."""
    known = list(needs)
    found = [path for need in known for path in _paths_for(need, known, labels)]
    found += _identity_paths(entity, labels)
    for group in groups:
        found += _group_paths(entity, group, labels)
    return tuple(sorted({*found, *map(unique_path, found)}, key=lambda path: path.rank))


def _paths_for(need: Need, others: list[Need], labels: KeyLabels) -> Iterable[AccessPath]:
    constants = sorted(
        (name for name, source in need.equal.items() if source.is_constant),
        key=lambda name: place_of(info(need.entity), name),
    )
    for equal, tails in _known_values(need, others):
        yield from _paths_of_values(need, equal, tails, constants, others, labels)
    if not need.keyed and not constants:
        yield from _sparse_lists(need)


def _known_values(
    need: Need, others: list[Need]
) -> Iterable[tuple[list[str], list[tuple[str, ...]]]]:
    """Yield ways to form paths for a need: pairs of known names and possible sort tuples.

    A need knows the values of the names that it compares. The first pair has all of these names.
    The other pairs concern derived parts, such as ``day_of(placed_at)``: the sort tuple can hold
    the field ``placed_at`` instead of its day. If one of the ``others`` compares a coarser part,
    such as the month, that part can join the known names.
    """
    keyed = need.keyed
    yield _in_order(need, keyed), _tails(need)
    wanted = sorted({name for other in others for name in other.equal if derived_part(name)})
    for name in sorted(keyed):
        part = derived_part(name)
        field = name if part is None else part.field
        coarser = [
            each
            for each in wanted
            if each not in keyed and source_field(each) == field and need.source(each) is not None
        ]
        if part is None:
            for each in coarser:
                yield _in_order(need, keyed | {each}), _tails(need)
            continue
        alone: tuple[str, ...] = (field,)
        tails = [need.sequence] if need.sequence[:1] == (field,) else []
        if not need.sequence or need.may_sort:
            tails = list(dict.fromkeys([*tails, alone]))
        for more in ((), *((each,) for each in coarser)):
            yield _in_order(need, (keyed - {name}).union(more)), tails


def _in_order(need: Need, names: Iterable[str]) -> list[str]:
    known = info(need.entity)
    return sorted(names, key=lambda name: place_of(known, name))


def _paths_of_values(
    need: Need,
    equal: list[str],
    tails: list[tuple[str, ...]],
    constants: list[str],
    others: list[Need],
    labels: KeyLabels,
) -> Iterable[AccessPath]:
    for partition, rest in _splits(equal, others, need):
        for order in _orders(rest):
            for tail in tails:
                path = AccessPath(
                    need.entity, by_label(need.entity, partition, labels), (*order, *tail)
                )
                yield from _directed(path, need, tail)
    if not constants:
        return
    sparse = tuple((name, need.equal[name]) for name in constants)
    variable = [name for name in equal if name not in constants]
    for partition, rest in [((), variable), *_splits(variable, others, need)]:
        for order in _orders(rest):
            for tail in tails:
                fields = by_label(need.entity, partition, labels)
                path = AccessPath(need.entity, fields, (*order, *tail), constants=sparse)
                yield from _directed(path, need, tail)


def _directed(path: AccessPath, need: Need, tail: tuple[str, ...]) -> Iterable[AccessPath]:
    """Yield the ways to write a path so that its key holds the need's order.

    ``tail`` has the fields at the end of the path's sort tuple. Usually the path itself is the only
    result. If some fields of the order ascend and others descend, either the descending or the
    ascending fields are inverted, as far as their types allow it.
    """
    if not need.is_mixed or tail != need.sequence:
        yield path
        return
    for names in turnable(need):
        yield path.turning(names)


def turnable(need: Need) -> list[tuple[str, ...]]:
    """Return the sets of fields that a key can invert to hold an order of mixed directions.

    One set has the descending fields, the other the ascending fields. With either set inverted, all
    fields run in one direction. A set is left out if one of its types cannot be inverted.
    """
    known, descends = info(need.entity), need.descends
    sides = [descends, tuple(name for name in need.sequence if name not in descends)]
    return [
        names
        for names in sides
        if all((found := key_encoding(known, name)) and found.turn for name in names)
    ]


def _sparse_lists(need: Need) -> Iterable[AccessPath]:
    """Yield the paths of a need that asks for all items with an optional field.

    Their partition is one fixed text. An index on such a path holds only the items with the field.
    """
    known = info(need.entity)
    for name in _required(need):
        if is_optional(known, name) and key_encoding(known, name) is not None:
            tail = need.sequence or (name,)
            rest = (name,) if name not in tail else ()
            yield AccessPath(need.entity, (), (*tail, *rest))


def _required(need: Need) -> list[str]:
    """Return the fields of the need's ``exists()`` tests."""
    return [
        each.field.name
        for each in need.filters
        if isinstance(each, Comparison) and each.operator == "exists" and len(each.field.path) == 1
    ]


def _tails(need: Need) -> list[tuple[str, ...]]:
    if need.sequence and not need.may_sort:
        return [need.sequence]
    if not need.sequence:
        return _unordered_tails(need)
    # For a sort in memory, a key with an optional field leaves out the items without it.
    optional = [name for name in need.sequence if is_optional(info(need.entity), name)]
    sparse = chain.from_iterable(combinations(optional, size + 1) for size in range(len(optional)))
    return list(dict.fromkeys([need.sequence, *_unordered_tails(need), *sparse]))


def _unordered_tails(need: Need) -> list[tuple[str, ...]]:
    return [(span.field,) for span in need.spans] or [()]


def _splits(
    equal: list[str], others: list[Need], need: Need
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return ways to divide the ``equal`` fields, which a need compares for equality.

    Each result has the fields of the partition, and the remaining fields. If there are many fields,
    only some partitions are tried: all fields, each field alone, and the fields that one of the
    needs in ``others`` compares as well.
    """
    if len(equal) <= _ALL_SUBSETS_UP_TO:
        chosen = chain.from_iterable(combinations(equal, size) for size in range(1, len(equal) + 1))
    else:
        common = (
            tuple(name for name in equal if name in other.equal)
            for other in others
            if other is not need
        )
        chosen = chain(
            [tuple(equal)], ((name,) for name in equal), (each for each in common if each)
        )
    return [
        (tuple(part), [name for name in equal if name not in part])
        for part in dict.fromkeys(chosen)
    ]


def _orders(rest: list[str]) -> list[tuple[str, ...]]:
    """Return the sequences of fields with which the sort tuple can begin.

    ``rest`` has the fields that are compared for equality and are not in the partition. The last
    result is the empty sequence, which leaves these fields to a filter.
    """
    orders = list(permutations(rest)) if len(rest) <= _ALL_SUBSETS_UP_TO else [tuple(rest)]
    return [*orders, ()] if rest else orders


def by_label(entity: type[Entity], fields: Iterable[str], labels: KeyLabels) -> tuple[str, ...]:
    """Return partition fields in the order of their labels, which all entities share."""
    return tuple(sorted(fields, key=lambda name: (labels.place(entity, name), name)))


def unique_path(path: AccessPath) -> AccessPath:
    """Return the path with the identity appended."""
    used = {*path.partition, *path.sort}
    missing = tuple(name for name in info(path.entity).identity if name not in used)
    return replace(path, sort=(*path.sort, *missing)) if missing else path


def _identity_paths(entity: type[Entity], labels: KeyLabels) -> list[AccessPath]:
    identity = info(entity).identity
    found = []
    for partition, rest in _splits(list(identity), [], Need("", entity, {})):
        fields = by_label(entity, partition, labels)
        found += [
            AccessPath(entity, fields, order) for order in _orders(rest) if len(order) == len(rest)
        ]
    return found


def _group_paths(
    entity: type[Entity], group: TogetherGroup, labels: KeyLabels
) -> Iterable[AccessPath]:
    member = next((each for each in group.members if each.entity is entity), None)
    if member is None:
        return
    inverted = is_ordered(member) and group_inverts(group, labels) is True
    for chosen in group_choices(group):
        partition = by_label(entity, group.partition_of(entity, chosen), labels)
        for tail in _tails(member):
            sort = tuple(name for name in tail if name not in partition)
            yield AccessPath(entity, partition, sort, inverted=inverted)


def is_ordered(member: Need) -> bool:
    return bool(member.sequence)


def group_inverts(group: TogetherGroup, labels: KeyLabels) -> bool | None:
    """Whether the children's order field must be written inverted, so that the parent comes first.

    A limited query over a parent and its children must reach the parent first. Sort keys begin with
    the entity's label, so the direction that puts the parent's label first may be the wrong one for
    the children. In that case, the children's field is written inverted. Returns None if the group
    needs no such choice, or if no choice helps.
    """
    ordered = [labels.entity(member.entity) for member in group.members if is_ordered(member)]
    others = [labels.entity(member.entity) for member in group.members if not is_ordered(member)]
    if not group.is_limited or not ordered or not others:
        return None
    encodings = [
        key_encoding(info(each.entity), str(each.order))
        for each in group.members
        if is_ordered(each)
    ]
    descending = group.members[0].descending
    if max(others) < min(ordered):
        return descending if all(each is not None and each.turn for each in encodings) else None
    if min(others) > max(ordered):
        return not descending if all(each is not None and each.turn for each in encodings) else None
    return None


def group_choices(group: TogetherGroup) -> list[tuple[int, ...]]:
    size = range(len(group.shared))
    return [chosen for count in range(1, len(size) + 1) for chosen in combinations(size, count)]


def may_be_base(
    path: AccessPath, mutable: frozenset[str], *, beyond_identity: bool = False
) -> bool:
    """Whether a path can be the table's key for an entity.

    The key must hold the whole identity, and otherwise only derived parts of it. Then get, update
    and delete by identity take one request each, and no two items have the same identity. All other
    fields can change.

    ``beyond_identity`` also allows further fields that never change. The planner sets it for a
    locked key, and to price a longer identity.
    """
    known = info(path.entity)
    if path.constants or not set(known.identity) <= set(path.fields):
        return False
    if not beyond_identity and not path.sources <= set(known.identity):
        return False
    # Each attempt has its own time of creation: with it in the key, a retry would create a second
    # item.
    stamped = {name for name, each in known.fields.items() if each.role == "created"}
    return not any(
        name in mutable or name in stamped or is_optional(known, name) for name in path.sources
    )


def can_be_native(path: AccessPath) -> bool:
    """Whether a native key is possible: up to four attributes each in partition and sort."""
    known, sort = info(path.entity), path.sort
    if path.constants or path.handwritten or path.shards > 1 or not path.partition:
        return False
    if path.inverted or path.turned:
        return False
    if any(_may_be_empty(known, name) for name in (*path.partition, *sort)):
        return False
    encodings = [key_encoding(known, name) for name in (*path.partition, *sort)]
    return (
        len(path.partition) <= 4
        and len(sort) <= 4
        and all(each and each.native for each in encodings)
    )


def _may_be_empty(known: EntityInfo, name: str) -> bool:
    """Whether the field defaults to an empty value, which DynamoDB refuses in a key."""
    default = known.default_maker(name)
    return default is not None and default() in ("", b"")

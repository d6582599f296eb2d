"""Choices: the base keys of one entity and the ways to hold its paths in an index, with prices.

A placement is a path and the place that holds its keys: the table's key or an index. This module
computes the price of each placement, and of each need that uses it. ``search`` then only adds
numbers. A placement is dropped if another one is at least as good in every respect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Final

from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.planner.cost_model import CostModel, Placement, PlacementKind, Projection
from stator.design.planner.keys.handwritten_keys import Handwritten, parse
from stator.design.planner.locked_choices import LockedChoices, moving_dollars
from stator.design.planner.needs.need import Need, is_optional, key_encoding
from stator.design.planner.needs.write_rates import mutable_fields
from stator.design.planner.paths.access_path import AccessPath, can_be_native, may_be_base
from stator.design.planner.paths.served_need import ServedNeed, serve
from stator.design.planner.weights import (
    FILTERED_DOLLARS,
    INDEX_DOLLARS,
    INDEX_READ_DOLLARS,
    SORTED_DOLLARS,
    WIDE_FILTER,
    WIDE_FILTER_DOLLARS,
)
from stator.design.value_facts import possible_values
from stator.errors import DesignError

_ALL_SUBSETS_UP_TO: Final = 3
LOCAL_COLLECTION_BYTES: Final = 5 * 1024**3
"""Half of the 10 GB limit of a collection with a local index, as sizes are estimates."""


@dataclass
class EntityChoices:
    """The placements that can be chosen for one entity.

    ``use_dollars`` has, for each placement, the monthly cost of each need. The cost is None if the
    placement cannot serve the need.
    """

    entity: type[Entity]
    needs: tuple[Need, ...]
    bases: tuple[Placement, ...]
    secondary: tuple[Placement, ...]
    pinned: tuple[Placement, ...]
    costs: CostModel
    keyless: tuple[float | None, ...] = ()
    """The cost of each need without a key or an index: by a guard, or by a Scan if one is allowed.

    None if neither serves the need.
    """
    locked: LockedChoices | None = None
    """The entity's base key and paths in the lock file."""
    held: dict[str, Placement] = field(default_factory=dict)
    """Locked paths that can stay in their index, by the name of the index."""
    use_dollars: dict[Placement, tuple[float | None, ...]] = field(default_factory=dict)
    open_dollars: dict[Placement, float] = field(default_factory=dict)
    """The monthly cost of each placement, with the cost of moving items spread over months."""
    steady_dollars: dict[Placement, float] = field(default_factory=dict)
    """The monthly cost of each placement, without the cost of moving stored items."""
    considered: tuple[Placement, ...] = ()
    """All placements in an index, also those that another one beats in every respect."""

    @property
    def name(self) -> str:
        return info(self.entity).name

    @cached_property
    def unlocked(self) -> EntityChoices:
        """The same choices, priced as if no item were stored yet.

        The planner's reasons quote these prices. So the reasons are the same with and without a
        lock, if both lead to the same plan.
        """
        if self.locked is None:
            return self
        return replace(
            self,
            costs=replace(self.costs, stored_keys={}),
            locked=None,
            held={},
            use_dollars={},
            open_dollars={},
            steady_dollars={},
        )

    def price(self, placement: Placement) -> None:
        """Compute and store the prices of a placement, unless they are already known."""
        if placement not in self.open_dollars:
            self.use_dollars[placement] = tuple(self.use(placement, need) for need in self.needs)
            own = not placement.is_base and not placement.shares_slot
            self.steady_dollars[placement] = self.costs.open_dollars(placement) + (
                INDEX_DOLLARS if own else 0.0
            )
            self.open_dollars[placement] = self.steady_dollars[placement] + moving_dollars(
                placement, self.locked, self.costs
            )

    def read_shards(self, served: ServedNeed, placement: Placement) -> int:
        """Return how many shards a need's reads of one key value call for.

        The prices without a lock decide, so the answer is the same with and without a lock file.
        """
        return self.unlocked.costs.read_shards(served, placement)

    def serve(self, placement: Placement, need: Need) -> ServedNeed | None:
        """Return how a placement serves a need, or None if it cannot, or would read too much."""
        found = self.serve_at_any_length(placement, need)
        return None if found is None or self.costs.reads_too_much(found, placement) else found

    def serve_at_any_length(self, placement: Placement, need: Need) -> ServedNeed | None:
        """Return how a placement serves a need, even if each call reads far more than it returns.

        Returns None if the placement cannot serve the need.
        """
        found = serve(placement.path, need, self.costs.estimates)
        if found is None:
            return None
        exact = (
            _native_bounds(found)
            if placement.is_native or placement.path.sorts_natively
            else placement.is_base or _string_bounds(found)
        )
        return found if exact else None

    def sorts(self, placement: Placement, at: int) -> bool:
        """Whether a placement serves need number ``at`` only if the client sorts in memory."""
        need = self.needs[at]
        if not need.may_sort:
            return False
        served = self.serve(placement, need)
        return served is not None and served.in_memory

    def _holds_order(self, need: Need) -> bool:
        """Whether the key of a locked path holds the order of a need.

        Programs may already read such a result in pages, so the order must stay in the key.
        """
        if self.locked is None or need.name not in self.locked.ordered:
            return False
        base = self.locked.base
        kept = (*self.held.values(), *(() if base is None else (base,)))
        found = (self.serve(each, need) for each in kept)
        return any(each is not None and not each.in_memory for each in found)

    def _could_hold_order(self, placement: Placement, need: Need) -> bool:
        """Whether an index for a need could hold the need's order, so that no sort is necessary.

        This costs only a few bytes, and programs can then read the result in pages. It is not
        possible if a declared write changes the order's fields, or if another need decides how the
        index is sorted.
        """
        path = placement.path
        if placement.is_base or path.handwritten is not None:
            return False
        if set(need.sequence) & mutable_fields(self.entity, self.costs.rates[self.entity]):
            return False
        return not any(self._decides_sort(placement, other) for other in self.needs)

    def _decides_sort(self, placement: Placement, need: Need) -> bool:
        served = self.serve(placement, need)
        if served is None or served.in_memory:
            return False
        asked = {*need.sequence, *need.equal, *(span.field for span in need.spans)}
        return bool(asked & {*placement.path.sort})

    def is_kept(self, placement: Placement) -> bool:
        """Whether the lock file already has this placement.

        Such a placement stays even if reads are now estimated to be too many for its shards,
        because changing it would move items. Lint reports the hot key.
        """
        if self.locked is None:
            return False
        base = self.locked.base
        return placement in self.held.values() or (
            base is not None and placement.is_base and _same_key(placement.path, base.path)
        )

    def use(self, placement: Placement, need: Need) -> float | None:
        served = self.serve(placement, need)
        if served is None:
            return None
        too_hot = self.read_shards(served, placement) > placement.path.shards
        if too_hot and not self.is_kept(placement):
            return None
        if served.in_memory and (
            self._holds_order(need) or self._could_hold_order(placement, need)
        ):
            return None
        dollars = self.costs.read_dollars(served, placement)
        if dollars is None:
            return None
        filtered = bool(served.left_equal or served.left_spans)
        # Periods do not count: the values of a year or a month do not multiply with the tenants.
        fields = [name for name in served.left_equal if derived_part(name) is None]
        is_wide = bool(fields) and served.amplification > WIDE_FILTER
        burdens = (
            (FILTERED_DOLLARS, filtered),
            (WIDE_FILTER_DOLLARS, is_wide and not placement.is_base),
            (INDEX_READ_DOLLARS, not placement.is_base),
            (SORTED_DOLLARS, served.in_memory),
        )
        return dollars + sum(burden for burden, applies in burdens if applies)


def _same_key(path: AccessPath, other: AccessPath) -> bool:
    return path.unspread == other.unspread


def _native_bounds(served: ServedNeed) -> bool:
    """Whether a native key can express the need's range exactly.

    A range with two bounds becomes a BETWEEN, which includes both bounds. To exclude a bound, the
    adjacent value takes its place, so the field's type must have adjacent values.
    """
    span = served.span
    if (
        span is None
        or span.low is None
        or span.high is None
        or (span.low_inclusive and span.high_inclusive)
    ):
        return True
    encoding = key_encoding(info(served.need.entity), span.field)
    return encoding is not None and encoding.step is not None


def _string_bounds(served: ServedNeed) -> bool:
    """Whether a string key may serve the need's range, if necessary with a filter.

    A key that ends with the range's field may be unable to exclude a bound (``is_blunt``). Such a
    path is refused if it lacks part of the identity, because a longer path with the identity can
    exclude the bound. A path that has the whole identity, or is handwritten, gets a filter.
    """
    path = served.path
    if not served.is_blunt or path.handwritten is not None:
        return True
    return set(info(path.entity).identity) <= set(path.fields)


def choices_of(
    entity: type[Entity],
    needs: tuple[Need, ...],
    paths: tuple[AccessPath, ...],
    costs: CostModel,
    *,
    neighbours: tuple[type[Entity], ...],
    own_table: bool,
    scans: tuple[float | None, ...],
    locked: LockedChoices | None = None,
    beyond_identity: bool = False,
) -> EntityChoices:
    """Return everything that can be chosen for an entity.

    ``neighbours`` are the other entities of the table. ``own_table`` means that the entity has a
    table to itself, whose key may be native. ``scans`` has the monthly cost of each need as a Scan,
    or None if the need may not scan. ``beyond_identity`` allows base keys with further fields.
    """
    choices = EntityChoices(
        entity, needs, (), (), handwritten_indexes(entity), costs, locked=locked
    )
    if locked is not None:
        paths = tuple(sorted({*paths, *locked.paths}, key=lambda path: path.rank))
        choices.held = {
            name: each
            for name, each in locked.indexes
            if _still_holds(each, neighbours, costs, needs)
        }
    choices.keyless = tuple(
        min((each for each in (scan, _guard(choices, need)) if each is not None), default=None)
        for scan, need in zip(scans, needs)
    )
    bases = _bases(entity, paths, costs, own_table, locked, beyond_identity)
    bases += [each for base in bases if not base.is_native for each in _hotter(choices, base)]
    choices.bases = tuple(sorted(dict.fromkeys(bases), key=lambda each: each.rank))
    choices.considered = choices.secondary = tuple(_secondary(choices, paths, neighbours))
    for placement in (*choices.bases, *choices.pinned, *choices.secondary):
        choices.price(placement)
    choices.secondary = _undominated(choices)
    return choices


def _guard(choices: EntityChoices, need: Need) -> float | None:
    """Return the monthly cost of serving a need by the guard of a unique field.

    Returns None if the need is not a lookup by a unique field. Also returns None if a locked index
    serves it, because that index stays.
    """
    if any(choices.use(each, need) is not None for each in choices.held.values()):
        return None
    return choices.costs.guard_dollars(need)


def _bases(
    entity: type[Entity],
    paths: tuple[AccessPath, ...],
    costs: CostModel,
    own_table: bool,
    locked: LockedChoices | None,
    beyond_identity: bool,
) -> list[Placement]:
    """Return the base keys that can be chosen for an entity.

    A handwritten key is the only choice. A locked key that is still possible is also the only
    choice. A locked key keeps its number of shards, because items are stored under each of them.
    Lint reports it if it is too hot.
    """
    written = info(entity).overrides.key
    if written is not None:
        path = _handwritten_base(entity, parse(entity, written))
        return [Placement(path, "native base" if is_native_by_hand(path) else "base")]
    mutable = mutable_fields(entity, costs.rates[entity])
    before = None if locked is None else locked.base
    if before is not None and may_be_base(before.path, mutable, beyond_identity=True):
        return [before]
    found = [
        _sharded(path, costs)
        for path in paths
        if may_be_base(path, mutable, beyond_identity=beyond_identity)
        and not any(_is_state(entity, name) for name in path.sources)
    ]
    native = [path for path in found if own_table and _natively_keyed(path)]
    return [
        *(Placement(path, "base") for path in found),
        *(Placement(path, "native base") for path in native),
    ]


def _is_state(entity: type[Entity], name: str) -> bool:
    """Whether a field outside the identity has few possible values by its type, as a status has.

    Such a field probably changes during the life of an item, even if no write pattern says so, and
    a caller that looks an item up does not know its value. A base key must therefore not hold it.
    """
    known = info(entity)
    return name not in known.identity and possible_values(known, name) is not None


def drop_worse_bases(choices: EntityChoices, ordered: bool) -> None:
    """Drop each base key for which a better one with the same partition exists.

    If ``ordered`` (some group reads the entity sorted), only keys with the same sort order are
    compared.
    """
    remaining = []
    for base in choices.bases:
        rivals = [
            each
            for each in choices.bases
            if each is not base
            and (each.path.partition, each.path.shards) == (base.path.partition, base.path.shards)
            and each.kind == base.kind
            and (
                not ordered
                or (each.path.sort[:1], each.path.inverted, each.path.turned)
                == (base.path.sort[:1], base.path.inverted, base.path.turned)
            )
        ]
        if not any(_beats(choices, rival, base) for rival in rivals):
            remaining.append(base)
    choices.bases = tuple(remaining)


def add_shards(choices: EntityChoices, path: AccessPath, shards: int) -> None:
    """Add a base key on ``path`` with ``shards`` shards, unless it is already a choice.

    Entities can share a partition only if their base keys have the same number of shards. A locked
    base key keeps its number of shards.
    """
    if choices.locked is not None and choices.locked.base is not None:
        return
    extra = Placement(replace(path, shards=shards), "base")
    if extra not in choices.bases:
        choices.price(extra)
        choices.bases = tuple(sorted((*choices.bases, extra), key=lambda each: each.rank))


def _sharded(path: AccessPath, costs: CostModel) -> AccessPath:
    return replace(path, shards=costs.write_shards(path))


def _is_adaptive(path: AccessPath, needs: Iterable[Need]) -> bool:
    """Whether an index on a path would serve a pattern with ``shards="adaptive"``.

    Such a pattern compares every field of the partition with one value.
    """
    if path.handwritten:
        return False
    return any(
        need.adaptive
        and all(
            (source := need.source(name)) is not None and not source.is_many
            for name in path.partition
        )
        for need in needs
    )


def _natively_keyed(path: AccessPath) -> bool:
    if path.handwritten or path.shards > 1 or len(path.partition) != 1 or len(path.sort) > 1:
        return False
    return all(
        (found := key_encoding(info(path.entity), name)) is not None and found.native is not None
        for name in (*path.partition, *path.sort)
    )


def _hotter(choices: EntityChoices, placement: Placement) -> Iterable[Placement]:
    """Yield copies of a placement with more shards.

    Each copy is for a need that reads one key value more often than the present shards can serve.
    """
    if choices.is_kept(placement):
        return
    for need in choices.needs:
        served = choices.serve(placement, need)
        if served is not None:
            shards = choices.read_shards(served, placement)
            if shards > placement.path.shards:
                yield replace(placement, path=replace(placement.path, shards=shards))


def _secondary(
    choices: EntityChoices, paths: tuple[AccessPath, ...], neighbours: tuple[type[Entity], ...]
) -> Iterable[Placement]:
    found: dict[Placement, None] = {}
    changed = frozenset(
        name for each, _ in choices.costs.rates[choices.entity].updates for name in each
    )
    for plain in paths:
        path = _sharded(plain, choices.costs)
        if _is_adaptive(plain, choices.needs):
            path = replace(path, adaptive=True)
        all_served = [
            each
            for need in choices.needs
            if (each := choices.serve(Placement(path, "concatenated"), need)) is not None
        ]
        if not all_served:
            continue
        for projection, included in _projections(all_served, changed):
            placement = Placement(path, "concatenated", projection, included)
            found[placement] = None
            found |= dict.fromkeys(_hotter(choices, placement))
            if can_be_native(path) and not _clashes(path, neighbours):
                fields = tuple(
                    name for name in included if name not in (*path.partition, *path.sort)
                )
                found[
                    Placement(
                        path,
                        "native",
                        projection if fields or not included else "KEYS_ONLY",
                        fields,
                    )
                ] = None
            if any(served.need.consistent for served in all_served) and _local_fits(
                path, choices.costs
            ):
                found[Placement(path, "local", projection, included)] = None
    held = choices.held.values()
    return found | dict.fromkeys(
        each for each in held if any(choices.serve(each, need) for need in choices.needs)
    )


def _still_holds(
    placement: Placement,
    neighbours: tuple[type[Entity], ...],
    costs: CostModel,
    needs: Iterable[Need],
) -> bool:
    """Whether a locked path can stay in its index, with its shards and its form of key."""
    path = placement.path
    if path.shards < costs.write_shards(path):
        return False
    if _is_adaptive(path, needs) and not path.adaptive and placement.kind != "local":
        return False
    if placement.kind == "native":
        return can_be_native(path) and not _clashes(path, neighbours)
    return placement.kind != "local" or _local_fits(path, costs)


def _projections(
    all_served: list[ServedNeed], changed: frozenset[str]
) -> list[tuple[Projection, tuple[str, ...]]]:
    """Return the candidate projections of an index for the needs that it could serve.

    The candidates combine fields that needs return with fields that needs filter by. A field
    outside the projection must be fetched from the table. Leaving a filter field out only pays off
    if updates change it (field in ``changed``), because each update would also write the index.
    """
    filters = dict.fromkeys(each.filter_fields for each in all_served if each.filter_fields)
    selects = dict.fromkeys(each.need.selects for each in all_served if each.need.selects)
    nothing = frozenset[str]()
    by_filter = [nothing, nothing.union(*filters), *filters]
    hot = sorted(nothing.union(*filters) & changed)
    by_filter = [
        each - dropped for each in by_filter for dropped in map(frozenset, _some_subsets(hot))
    ]
    by_return = [nothing, nothing.union(*selects), *selects]
    sets = dict.fromkeys(one | other for one in by_filter for other in by_return)
    middle: list[tuple[Projection, tuple[str, ...]]] = [
        ("INCLUDE", tuple(sorted(fields))) for fields in sets if fields
    ]
    return [("KEYS_ONLY", ()), *middle, ("ALL", ())]


def _some_subsets(names: list[str]) -> Iterable[tuple[str, ...]]:
    """Yield subsets of names: all of them if there are few names.

    If there are many, yield the empty subset, each name alone, and all names.
    """
    sizes = range(len(names) + 1) if len(names) <= _ALL_SUBSETS_UP_TO else (0, 1, len(names))
    for size in sizes:
        yield from combinations(names, size)


def _clashes(path: AccessPath, neighbours: tuple[type[Entity], ...]) -> bool:
    """Whether a native index would conflict with another entity of the table.

    The key attributes of a native index are fields. If the other entity has all of these fields,
    the index would hold its items, too. If it has one of these fields with another type, DynamoDB
    would refuse its items. Either is a conflict.
    """
    own = info(path.entity)
    wanted = {name: key_encoding(own, name) for name in (*path.partition, *path.sort)}
    for neighbour in neighbours:
        fields = info(neighbour).fields
        if all(name in fields for name in wanted):
            return True
        for name, encoding in wanted.items():
            other = key_encoding(info(neighbour), name) if name in fields else encoding
            if other is None or encoding is None or other.native != encoding.native:
                return True
    return False


def _local_fits(path: AccessPath, costs: CostModel) -> bool:
    """Whether a local index on this path is possible.

    A local index has the table's partition key, so the path's partition must qualify as that key.
    The items of one partition value must stay below half of DynamoDB's 10 GB limit for tables with
    local indexes, because their size is an estimate.
    """
    if path.constants or path.shards > 1 or path.handwritten or not path.partition:
        return False
    known, mutable = info(path.entity), mutable_fields(path.entity, costs.rates[path.entity])
    fields = map(source_field, path.partition)
    if any(name in mutable or is_optional(known, name) for name in fields):
        return False
    estimates = costs.estimates
    items = estimates.volume(path.entity) / estimates.distinct(path.entity, path.partition)
    return items * costs.item_bytes(path.entity) < LOCAL_COLLECTION_BYTES


def _undominated(choices: EntityChoices) -> tuple[Placement, ...]:
    """Return the useful placements that no other placement in the same kind of slot beats."""
    remaining: list[Placement] = []
    useful = [
        each
        for each in choices.secondary
        if any(cost is not None for cost in choices.use_dollars[each])
    ]
    for placement in sorted(useful, key=lambda each: each.rank):
        rivals = [
            each
            for each in useful
            if each is not placement and _slot_kind(each) == _slot_kind(placement)
        ]
        if not any(_beats(choices, rival, placement) for rival in rivals):
            remaining.append(placement)
    return tuple(remaining)


def _slot_kind(placement: Placement) -> tuple[object, ...]:
    if placement.kind == "local":
        return ("local", placement.path.partition)
    return ("shared", placement.projection) if placement.shares_slot else ("own",)


def _beats(choices: EntityChoices, rival: Placement, placement: Placement) -> bool:
    """Whether ``rival`` makes ``placement`` pointless: it serves all its needs and costs no more.

    If both cost the same, the one with the better rank wins. Needs that only the rival serves do
    not count, because a third placement may serve them better.
    """
    prices = (
        (choices.open_dollars[rival], choices.steady_dollars[rival]),
        (choices.open_dollars[placement], choices.steady_dollars[placement]),
    )
    if any(its > mine for its, mine in zip(*prices)):
        return False
    is_cheaper = prices[0] != prices[1]
    for mine, theirs in zip(choices.use_dollars[placement], choices.use_dollars[rival]):
        if mine is None:
            continue
        if theirs is None or theirs > mine:
            return False
        is_cheaper = is_cheaper or theirs < mine
    return is_cheaper or rival.rank < placement.rank


# --- handwritten --------------------------------------------------------------------------------


def _handwritten_base(entity: type[Entity], written: Handwritten) -> AccessPath:
    path = _handwritten_path(entity, written)
    missing = [name for name in info(entity).identity if name not in path.fields]
    if missing:
        raise DesignError(
            f"{info(entity).name}: the handwritten key leaves out {', '.join(missing)}, "
            f"so two items could have the same key",
            hint=f"add {', '.join(f'{{{name}}}' for name in missing)} to it",
        )
    return path


def _handwritten_path(entity: type[Entity], written: Handwritten) -> AccessPath:
    sort = () if written.sort is None else written.sort.fields
    return AccessPath(entity, written.partition.fields, sort, handwritten=written)


def is_native_by_hand(path: AccessPath) -> bool:
    """Whether the user wrote a key of which all attributes are fields."""
    return path.handwritten is not None and path.handwritten.is_native


def handwritten_indexes(entity: type[Entity]) -> tuple[Placement, ...]:
    """Return the placements of the indexes that are written by hand."""
    found = []
    for name, written in info(entity).overrides.indexes:
        pieces = parse(entity, written, name)
        path = _handwritten_path(entity, pieces)
        kind: PlacementKind = "native" if pieces.is_native else "concatenated"
        if pieces.is_local:
            kind = "local"
        fields = tuple(each for each in pieces.included if each in info(entity).fields)
        found.append(Placement(path, kind, pieces.projection, fields))
    return tuple(found)

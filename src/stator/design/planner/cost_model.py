"""The cost of one path: units and dollars for reads, writes and storage.

Costs are computed for one path at a time, so that ``search`` only has to add them up. The size of
an item includes the table's key. The size of an index entry also includes the index's own key. Keys
of other indexes are left out, so that the price of one path never depends on another path.
Otherwise every index that projects ALL would count these keys again, and a few bytes would decide
between native and concatenated keys. Once the layout is known, the plan reports sizes with all keys
(``LayoutBytes``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal

from stator.design.capacity_units import (
    ITEM_OVERHEAD_BYTES,
    MONTH_SECONDS,
    index_write_units,
    read_units,
    write_units,
)
from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.planner.distinct_values import Guess, is_period
from stator.design.planner.entry_changes import ItemLife
from stator.design.planner.estimates import Estimates, key_text_bytes
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.needs.need import (
    Need,
    TogetherGroup,
    is_optional,
    looked_up_by_guard,
)
from stator.design.planner.needs.write_rates import ItemWrite, WriteRates
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.served_need import ServedNeed
from stator.design.planner.queried_range import QueriedRange
from stator.design.planner.selectivity import fraction, fraction_guesses
from stator.design.planner.unkeyed_conditions import (
    UnkeyedConditions,
    divided,
    unkeyed_conditions,
)
from stator.design.planner.weights import (
    CONCENTRATED_DOLLARS,
    FEW_VALUES,
    GUARD_LOOKUP_DOLLARS,
    INDIRECT_DOLLARS,
    READ_UNIT_DOLLARS,
    STORAGE_BYTE_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from stator.design.value_facts import is_unique
from stator.model.heat.limits import SHARD_FILL
from stator.model.limits import PAGE_BYTES

PlacementKind = Literal["base", "native base", "concatenated", "native", "local"]
Projection = Literal["ALL", "INCLUDE", "KEYS_ONLY"]

GUARD_BYTES: Final = 200
"""The typical size of a guard."""
_TYPE_BYTES: Final = 12
"""The typical size of the discriminator."""
_NAMES_BYTES: Final = 28
"""The assumed size of the names and labels of two key attributes.

It is the same for every path, so that the length of a word decides nothing.
"""


WRITE_LIMIT: Final = 1000.0
READ_LIMIT: Final = 3000.0
"""Write and read units a second that one partition serves. A key value lives in one partition."""
FREE_AMPLIFICATION: Final = 10.0
"""A filter that keeps one item in ten or more is a choice, however much it reads."""
MOST_PAGES: Final = 4.0
"""Any other filter is a choice if a call for the largest collection reads up to 4 MB.

These are four pages, one after the other: about a tenth of a second, and 500 read units, a sixth
of what a partition serves in a second.
"""


def shards_for(peak: float, limit: float) -> int:
    """Return the number of shards needed for a peak of units per second on one key value.

    Returns 1 if one partition can serve the peak.
    """
    return 1 if peak <= limit else math.ceil(peak / limit / SHARD_FILL)


@dataclass(frozen=True)
class Placement:
    """A path and the place where its keys are stored.

    The place is the table's own key or an index. Keys are generic strings (``GSI1PK``), or the
    entity's own attributes (native keys).
    """

    path: AccessPath
    kind: PlacementKind
    projection: Projection = "ALL"
    included: tuple[str, ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash((self.path, self.kind, self.projection, self.included))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def is_base(self) -> bool:
        return self.kind in ("base", "native base")

    @cached_property
    def is_native(self) -> bool:
        return self.kind in ("native base", "native")

    @cached_property
    def shares_slot(self) -> bool:
        """Whether other entities may use the same index."""
        return (
            self.kind == "concatenated"
            and self.projection != "INCLUDE"
            and self.path.handwritten is None
        )

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """A sort key that decides between equally cheap placements.

        Of two base keys, the key with more fields in the partition comes first, because a coarse
        partition may become hot.
        """
        kind = ("base", "native base", "native", "concatenated", "local").index(self.kind)
        return (
            -len(self.path.partition) if self.is_base else 0,
            self.path.rank,
            kind,
            ("KEYS_ONLY", "INCLUDE", "ALL").index(self.projection),
            self.included,
        )

    def __str__(self) -> str:
        return f"{self.path} {self.kind} {self.projection}"


@dataclass(frozen=True)
class LayoutBytes:
    """Sizes of items and index entries with the keys of a finished layout."""

    items: dict[type[Entity], float] = field(default_factory=dict)
    entries: dict[Placement, float] = field(default_factory=dict)
    keys: dict[Placement, float] = field(default_factory=dict)
    """The bytes that the keys of an index add to the items that it holds."""

    def joined(self, other: LayoutBytes) -> LayoutBytes:
        return LayoutBytes(
            self.items | other.items, self.entries | other.entries, self.keys | other.keys
        )


@dataclass(frozen=True)
class CostModel:
    """Computes prices of placements and needs from a declaration's estimates and write rates.

    ``known`` has exact sizes once the search has found a layout. They take precedence over
    estimates.
    """

    estimates: Estimates
    rates: dict[type[Entity], WriteRates]
    labels: KeyLabels
    known: LayoutBytes = field(default_factory=LayoutBytes)
    busy_rates: Sequence[Mapping[type[Entity], WriteRates]] = ()
    """The writes at each moment when a daily window of a write pattern opens."""
    longer: str | None = None
    """The entity for which a longer identity is priced: all fields of its base key identify it."""
    stored_keys: Mapping[type[Entity], tuple[AccessPath, ...]] = field(default_factory=dict)
    """Each concatenated index key that stored items have for locked indexes, as a path."""
    written_keys: Mapping[type[Entity], tuple[AccessPath, ...]] = field(default_factory=dict)
    """Each concatenated index key that is written by hand."""

    # -- sizes

    def item_bytes(self, entity: type[Entity]) -> float:
        """Return the size of an item with its key attributes.

        During the search, only the table's key counts, because indexes are not chosen yet. An
        index entry then also counts its own key (``entry_bytes``).
        """
        size = self.known.items.get(entity)
        return (
            self.estimates.item_bytes(entity) + self._base_bytes(entity) if size is None else size
        )

    def _base_bytes(self, entity: type[Entity]) -> float:
        """Return the bytes that the table's key and the discriminator add to an item.

        However the identity is divided into partition key and sort key, the bytes are the same.
        """
        if self._is_own_table:
            return 0.0
        known = info(entity)
        values = sum(key_text_bytes(known.fields[name].shape) + 1 for name in known.identity)
        return values + _NAMES_BYTES + _TYPE_BYTES

    @property
    def _is_own_table(self) -> bool:
        return self.estimates.design.layout == "table-per-entity"

    def key_bytes(self, placement: Placement) -> float:
        """Return the bytes that a path's key attributes add to an item.

        Returns 0 for a native key, which uses attributes that the item has anyway.
        """
        path = placement.path
        if placement.is_native:
            return 0.0
        values = sum(self.estimates.key_text_bytes(path.entity, name) + 1 for name in path.fields)
        return values + _NAMES_BYTES + (3 if path.has_shards else 0)

    def _index_keys_bytes(self, placement: Placement) -> float:
        """Return the bytes of index keys that an item in this index may have.

        These are the keys of the index itself, the keys of handwritten indexes, and the keys that
        stored items have for indexes in the lock file. An item of one sparse index has no keys of
        another whose condition excludes its own.
        """
        path = placement.path
        entity, fields = path.entity, frozenset(path.fields)
        known = {
            frozenset(each.fields): each
            for each in (*self.stored_keys.get(entity, ()), *self.written_keys.get(entity, ()))
        }
        size = self.key_bytes(placement) if fields not in known else 0.0
        for names, each in known.items():
            if names == fields or self.presence(each, path) > 0:
                texts = sum(self.estimates.key_text_bytes(entity, name) + 1 for name in names)
                size += _NAMES_BYTES + texts
        return size

    def entry_bytes(self, placement: Placement) -> float:
        """Return the size of one index entry. A base placement returns the size of one item."""
        entity = placement.path.entity
        if placement in self.known.entries:
            return self.known.entries[placement]
        whole = self.item_bytes(entity)
        if placement.is_base:
            return whole
        if entity not in self.known.items:
            whole += self._index_keys_bytes(placement)
        if placement.projection == "ALL":
            return whole
        own = (*placement.path.partition, *placement.path.sort) if placement.is_native else ()
        base = info(entity).identity if self._is_own_table else ()
        fields = self.estimates.fields_bytes(
            entity, tuple(dict.fromkeys((*own, *base, *placement.included)))
        )
        return min(self._base_bytes(entity) + self.key_bytes(placement) + fields, whole)

    def presence(self, path: AccessPath, given: AccessPath | None = None) -> float:
        """Return the estimated share of items that are in an index on this path.

        Items that lack one of the path's fields, or do not have its constants, are not in the
        index. With ``given``, only the items in an index on that path count: no pending item is in
        an index of published ones.
        """
        known = info(path.entity)
        fixed = {} if given is None else {name: each.same for name, each in given.constants}
        held = set() if given is None else set(map(source_field, (*given.partition, *given.sort)))
        for name, source in path.constants:
            if fixed.get(name, source.same) != source.same or (source.is_absent and name in held):
                return 0.0
        probe = Need(
            "", path.entity, {name: each for name, each in path.constants if name not in fixed}
        )
        constants = fraction(probe, probe.equal, self.estimates)
        optional = [
            self.estimates.present(path.entity, name)
            for name in dict.fromkeys(map(source_field, (*path.partition, *path.sort)))
            if is_optional(known, name) and name not in held
        ]
        return float(constants * math.prod(optional))

    # -- writes and storage

    def index_write_rate(self, placement: Placement) -> float:
        """Return the write units per second that maintaining the index costs."""
        return sum(
            each.rate * self.write_units(placement, each)
            for each in self.rates[placement.path.entity].writes
        )

    def write_units(self, placement: Placement, write: ItemWrite) -> float:
        """Return the average write units in the index for one ``write`` to an item.

        Items without an entry cost nothing in the index. They lower the average.
        """
        path, old, new = placement.path, 0.0, 0.0
        if placement.projection == "ALL":
            old, new = self._bytes_of_states(path.entity, write, placement)
        old, new = self.entry_bytes(placement) + old, self.entry_bytes(placement) + new
        life = self.life(path.entity)
        removed, inserted = index_write_units(None, old), index_write_units(None, new)
        if write.kind == "create":
            return life.created_share(path, write) * inserted
        if write.kind == "delete":
            return life.deleted_share(path, write) * removed
        found = life.entry_changes(path, write)
        seen = placement.projection == "ALL" or bool(write.fields & set(placement.included))
        rewritten = found.stays * index_write_units(old, new, changes=seen)
        moved = found.moves * (removed + inserted)
        return found.enters * inserted + found.leaves * removed + moved + rewritten

    def written_bytes(self, entity: type[Entity], write: ItemWrite) -> float:
        """Return the size that a write is billed for: that of the item in its present state."""
        return self.item_bytes(entity) + max(self._bytes_of_states(entity, write))

    def _bytes_of_states(
        self, entity: type[Entity], write: ItemWrite, entry: Placement | None = None
    ) -> tuple[float, float]:
        """Return how much larger than the average an item is before a write, and after it.

        Only its index keys count: a new review is pending, and has no keys of the index of
        published ones. A create has no item before, and a delete none after; both numbers are
        then the same. With ``entry``, the average is that of the items in this index, whose own key
        is not counted.
        """
        before = after = average = 0.0
        life, given = self.life(entity), None if entry is None else entry.path
        for placement, size in self.known.keys.items():
            path = placement.path
            if path.entity is not entity or placement == entry:
                continue
            average += size * self.presence(path, given)
            if write.kind == "create":
                before = after = after + size * life.created_share(path, write)
            elif write.kind == "delete":
                before = after = before + size * life.deleted_share(path, write)
            else:
                found = life.entry_changes(path, write)
                kept = found.moves + found.stays
                before += size * (found.leaves + kept)
                after += size * (found.enters + kept)
        return before - average, after - average

    def life(self, entity: type[Entity]) -> ItemLife:
        return ItemLife(entity, self.rates[entity], self.estimates)

    def storage_bytes(self, placement: Placement) -> float:
        """Return the storage that a path adds: its keys on the items, and its index entries."""
        present = self.estimates.volume(placement.path.entity) * self.presence(placement.path)
        entries = 0.0 if placement.is_base else self.entry_bytes(placement) + ITEM_OVERHEAD_BYTES
        return present * (self.key_bytes(placement) + entries)

    def open_dollars(self, placement: Placement) -> float:
        """Return the monthly cost of a placement without its reads: its storage and index writes.

        Small penalties that no bill shows are included.
        """
        return self.billed_dollars(placement) + self._burdens(placement)

    def billed_dollars(self, placement: Placement) -> float:
        """Return the part of ``open_dollars`` that a bill would show."""
        writes = 0.0 if placement.is_base else self.index_write_rate(placement)
        return (
            writes * MONTH_SECONDS * WRITE_UNIT_DOLLARS
            + self.storage_bytes(placement) * STORAGE_BYTE_DOLLARS
        )

    def _burdens(self, placement: Placement) -> float:
        """Return the penalties of a placement in dollars.

        One applies if the key has few distinct partition values, another if a base key uses fields
        outside the entity's identity.
        """
        path = placement.path
        few = CONCENTRATED_DOLLARS if self._partitions(path) * path.shards < FEW_VALUES else 0.0
        indirect = placement.is_base and not path.sources <= set(info(path.entity).identity)
        return few + (INDIRECT_DOLLARS if indirect else 0.0)

    def base_write_units(self, entity: type[Entity]) -> float:
        return float(write_units(self.item_bytes(entity)))

    def fixed_dollars(self, entity: type[Entity]) -> float:
        """Return the monthly cost of storing and writing an entity's items in the table.

        This cost is the same whichever keys are chosen.
        """
        rates = self.rates[entity]
        writes = (rates.creates + rates.by_key) * self.base_write_units(entity)
        return writes * MONTH_SECONDS * WRITE_UNIT_DOLLARS + self.items_dollars(entity)

    def items_dollars(self, entity: type[Entity]) -> float:
        """Return the monthly cost of storing an entity's items without their keys."""
        each = self.estimates.item_bytes(entity) + ITEM_OVERHEAD_BYTES
        return self.estimates.volume(entity) * each * STORAGE_BYTE_DOLLARS

    # -- reads

    def matched(self, served: ServedNeed) -> float:
        """Return the number of entries that lie under the key condition of one call."""
        need, path = served.need, served.path
        numbers, volume = need.numbers, self.estimates.volume(need.entity)
        found = volume * fraction(need, served.key_fields, self.estimates) * numbers.excess
        if served.span is not None:
            found *= numbers.spans.get(served.span.field, 1.0)
        for name in path.sort:  # items without the field have no entry
            if need.source(name) is None and is_optional(info(need.entity), name):
                if need.parts_of(name):
                    continue  # items that have the compared part have the field
                found *= self.estimates.present(need.entity, name)
        return max(min(found, volume), min(numbers.result, volume))

    def queried_range(self, served: ServedNeed, placement: Placement) -> QueriedRange:
        """Return the items under a call's key conditions: all that it reads if it has no limit."""
        matched = self.matched(served)
        early, late = self.unkeyed(served, placement)
        kept = served.need.numbers.result / matched if matched else 1.0
        size = matched * self.entry_bytes(placement)
        return QueriedRange(matched, size, kept, bool(early or late), bool(late))

    def unkeyed(
        self, served: ServedNeed, placement: Placement
    ) -> tuple[UnkeyedConditions, UnkeyedConditions]:
        """Return the conditions that DynamoDB checks, and those that the reader checks.

        The key answers all other conditions. DynamoDB checks conditions on fields that index
        entries hold, in a filter. The reader checks the other conditions after it has fetched whole
        items.
        """
        path = placement.path
        whole = unkeyed_conditions(served, is_exact=placement.is_native or path.sorts_natively)
        if placement.is_base or placement.projection == "ALL":
            return whole, UnkeyedConditions(served)
        own = (*path.partition, *path.sort) if placement.is_native else path.native_fields
        return divided(whole, frozenset(placement.included), frozenset(own))

    def items_read(self, served: ServedNeed, placement: Placement) -> float:
        """Return how many entries one call reads."""
        queries = self._queries(served, placement.path)
        return self.queried_range(served, placement).items_read(served.need.limit_items, queries)

    @staticmethod
    def _queries(served: ServedNeed, path: AccessPath) -> int:
        return served.queries * (1 if served.identifies and not path.adaptive else path.shards)

    def read_units(self, served: ServedNeed, placement: Placement) -> float | None:
        """Return the read units that one call takes through a placement.

        Returns None if the placement cannot serve the need.
        """
        need, path = served.need, placement.path
        if need.consistent and not (placement.is_base or placement.kind == "local"):
            return None
        is_get = (
            placement.is_base
            and served.whole_key
            and not (served.filter_fields or served.left_spans)
        )
        if is_get and served.queries == 1:
            return (
                0.0
                if need.only_key
                else read_units(self.item_bytes(need.entity), consistent=need.consistent)
            )
        is_adaptive = path.adaptive and placement.kind == "concatenated"
        if is_adaptive and (need.only_key or served.queries > 1):
            return None  # the identity does not tell the shard; a cursor is for one value
        own = {*path.partition, *path.sort} if placement.is_native else path.native_fields
        shows_all = placement.is_base or placement.projection == "ALL"
        if shows_all and served.filter_fields & own:
            return None  # DynamoDB refuses filters on the attributes of the key
        if not shows_all and not self._can_drop(served, placement):
            return None
        return self._units_of_call(served, placement)

    def _units_of_call(self, served: ServedNeed, placement: Placement, skew: float = 1.0) -> float:
        """Return the read units of one call: its queries, and the items that it fetches afterwards.

        ``skew`` is the size of the collection that is read, as a multiple of the average.
        """
        units = self._query_units(served, placement, skew)
        fetched = self.items_fetched(served, placement, skew)
        if not fetched:
            return units
        need = served.need
        is_consistent = need.consistent and placement.kind == "local"
        return units + fetched * read_units(self.item_bytes(need.entity), consistent=is_consistent)

    def items_fetched(self, served: ServedNeed, placement: Placement, skew: float = 1.0) -> float:
        """Return how many whole items a call fetches, because the index lacks a field.

        The field may be one that the need returns, or one that the reader filters by. ``skew`` is
        the size of the collection that is read, as a multiple of the average.
        """
        need = served.need
        early, late = self.unkeyed(served, placement)
        if late:
            found = self._skewed_range(served, placement, skew)
            queries = self._queries(served, placement.path)
            return found.items_read(need.limit_items, queries) * early.kept(self.estimates)
        if need.only_key or self.covers(placement, need):
            return 0.0
        limit = need.limit_items
        result = need.numbers.result * self._result_skew(served, skew)
        return result if limit is None else min(result, float(limit))

    @staticmethod
    def covers(placement: Placement, need: Need) -> bool:
        """Whether the entries of a placement hold all that the need returns."""
        if placement.is_base or placement.projection == "ALL" or need.is_count:
            return True
        if not need.selects or placement.projection != "INCLUDE":
            return False
        path = placement.path
        own = (*path.partition, *path.sort) if placement.is_native else ()
        return need.selects <= {*placement.included, *own}

    def reads_too_much(self, served: ServedNeed, placement: Placement) -> bool:
        """Whether a call reads so much for its result that the placement is no choice for a need.

        The monthly price may still be low if calls are rare. But each call would be slow, and would
        take a large part of what a partition serves in a second (see ``MOST_PAGES``). A filter that
        keeps at least one in ``FREE_AMPLIFICATION`` items is always accepted, because then the
        result itself is large.
        """
        skew = self.skew(served)
        if served.amplification * skew / self._result_skew(served, skew) <= FREE_AMPLIFICATION:
            return False
        return self.pages_read(served, placement) > MOST_PAGES

    def pages_read(self, served: ServedNeed, placement: Placement) -> float:
        """Return the data that a call reads and fetches, in pages of 1 MB.

        If facts say that some collections are larger than others, the call is for the largest.
        """
        need, skew = served.need, self.skew(served)
        found = self._skewed_range(served, placement, skew)
        read = found.items_read(need.limit_items, self._queries(served, placement.path))
        size = read * self.entry_bytes(placement)
        if not placement.is_base:
            size += self.items_fetched(served, placement, skew) * self.item_bytes(need.entity)
        return size / PAGE_BYTES

    def _can_drop(self, served: ServedNeed, placement: Placement) -> bool:
        """Whether an index that lacks fields still allows a need to drop unwanted items.

        DynamoDB can drop them by a filter on fields of the index. Otherwise the reader drops them
        after fetching the whole items. That is impossible for a consistent read, because fetched
        items may be newer than the index. A count never fetches items just to leave out deleted
        or expired ones.
        """
        need = served.need
        _, late = self.unkeyed(served, placement)
        if late:
            return not need.consistent
        return need.shown_to_count <= frozenset(placement.included)

    def _query_units(self, served: ServedNeed, placement: Placement, skew: float = 1.0) -> float:
        """Return the read units of a call's queries, without the items that it fetches afterwards.

        ``skew`` is the size of the collection that is read, as a multiple of the average.
        """
        found = self._skewed_range(served, placement, skew)
        path, need = placement.path, served.need
        units = found.units(
            need.limit_items, self._queries(served, path), consistent=need.consistent
        )
        if path.adaptive and placement.kind == "concatenated":  # the number of shards is read first
            units += read_units(1, consistent=True)
        return units

    def _skewed_range(self, served: ServedNeed, placement: Placement, skew: float) -> QueriedRange:
        found = self.queried_range(served, placement)
        kept = found.kept * self._result_skew(served, skew) / skew
        return replace(
            found, items=found.items * skew, size_bytes=found.size_bytes * skew, kept=kept
        )

    def _result_skew(self, served: ServedNeed, skew: float) -> float:
        """Return how many times larger the result is if the collection is ``skew`` times larger.

        The largest owner has more of the open issues, but not more in each repository: it
        has more repositories. So a filter on a field of many values drops more there.
        """
        entity = served.need.entity
        many = any(
            derived_part(name) is None and self.estimates.distinct(entity, (name,)) > FEW_VALUES
            for name in served.left_equal
        )
        return 1.0 if many else skew

    def guard_units(self, need: Need) -> float | None:
        """Return the read units of a lookup by a unique field: of its guard, and then of the item.

        Returns None if no guard leads to the item.
        """
        if looked_up_by_guard(need) is None:
            return None
        size = self.item_bytes(need.entity)
        return read_units(GUARD_BYTES, consistent=need.consistent) + read_units(
            size, consistent=need.consistent
        )

    def guard_dollars(self, need: Need) -> float | None:
        units = self.guard_units(need)
        if units is None:
            return None
        return units * need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS + GUARD_LOOKUP_DOLLARS

    def read_dollars(self, served: ServedNeed, placement: Placement) -> float | None:
        units = self.read_units(served, placement)
        return (
            None if units is None else units * served.need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS
        )

    def group_units(
        self, group: TogetherGroup, paths: tuple[AccessPath, ...], *, consistent: bool = False
    ) -> float:
        """Return the read units of one call that reads several entities from one partition."""
        found = self._group_range(group, paths)
        limit = group.members[0].limit_items
        return found.units(limit, paths[0].shards, consistent=consistent)

    def _group_range(
        self,
        group: TogetherGroup,
        paths: tuple[AccessPath, ...],
        strangers: Iterable[AccessPath] = (),
    ) -> QueriedRange:
        items = size = kept = 0.0
        is_filtered = False
        for member, path in zip(group.members, paths):
            matched = self.group_matched(member, path)
            items += matched
            size += matched * self.item_bytes(member.entity)
            kept += min(matched, member.numbers.result)
            left = member.equal.keys() - set(path.partition)
            is_filtered = is_filtered or bool(left or member.spans or member.filters)
        for path in strangers:
            items += self.partition_items(path)
            size += self.partition_bytes(path)
            is_filtered = True
        return QueriedRange(items, size, kept / items if items else 1.0, is_filtered)

    def partition_items(self, path: AccessPath) -> float:
        """Return the number of an entity's items that share one value of the partition."""
        values = self.estimates.distinct(path.entity, path.partition)
        return self.estimates.volume(path.entity) / values * self.presence(path)

    def partition_bytes(self, path: AccessPath) -> float:
        return self.partition_items(path) * self.item_bytes(path.entity)

    def crowded_units(
        self, served: ServedNeed, placement: Placement, strangers: list[AccessPath]
    ) -> float:
        """Return the read units of one call whose queries also read items of other entities.

        ``strangers`` are the paths of these entities. A filter drops their items, but DynamoDB
        counts them towards a limit before the filter runs.
        """
        need, own = served.need, self.queried_range(served, placement)
        items = own.items + sum(map(self.partition_items, strangers))
        size = own.size_bytes + sum(map(self.partition_bytes, strangers))
        kept = own.items * own.kept / items if items else 1.0
        queries = self._queries(served, placement.path)
        return QueriedRange(items, size, kept, is_filtered=True).units(
            need.limit_items, queries, consistent=need.consistent
        )

    def crowded_group_units(
        self, group: TogetherGroup, paths: tuple[AccessPath, ...], strangers: list[AccessPath]
    ) -> float:
        """Return the read units of a group's query that also reads items of ``strangers``."""
        first = group.members[0]
        return self._group_range(group, paths, strangers).units(
            first.limit_items, paths[0].shards, consistent=first.consistent
        )

    def group_matched(self, member: Need, path: AccessPath) -> float:
        """Return how many items of one entity of a group lie in the partition that the group reads.

        ``member`` is the need of that entity.
        """
        volume = self.estimates.volume(member.entity)
        found = volume * fraction(member, path.partition, self.estimates) * member.numbers.excess
        return max(min(found, volume), min(member.numbers.result, volume))

    # -- heat

    def write_shards(self, path: AccessPath) -> int:
        """Return the shards needed for the writes to one partition value."""
        return shards_for(self.write_heat(path), WRITE_LIMIT)

    def write_heat(self, path: AccessPath) -> float:
        """Return the write units that the busiest partition value takes each second.

        Entries are counted at the size of a whole item, because the projection is chosen later.
        """
        life, busy = self.life(path.entity), self.busy_rates
        entries = max(
            [life.entry_writes(path, rates=rates[path.entity]) for rates in busy]
            or [life.entry_writes(path)]
        )
        return entries * self.base_write_units(path.entity) * self.hottest(path)

    def read_shards(self, served: ServedNeed, placement: Placement) -> int:
        """Return the shards needed for one need's reads of one partition value."""
        return shards_for(self.read_heat(served, placement), READ_LIMIT)

    def read_heat(self, served: ServedNeed, placement: Placement) -> float:
        """Return the read units that a need takes from the busiest partition value each second.

        Calls are assumed to ask for a value in proportion to its share of the items. If a single
        call reads more than a partition serves in a second, the result is 0: shards would not help,
        and the pattern needs a limit.
        """
        alone = replace(placement, path=replace(placement.path, shards=1))
        if self.read_units(served, alone) is None or (placement.is_base and served.whole_key):
            return 0.0
        # What an index query fetches afterwards lies in other partitions.
        units = self._query_units(served, alone, self.skew(served))
        if units > READ_LIMIT:
            return 0.0
        return served.need.busy_rps * units * self.hottest(placement.path)

    def hottest(self, path: AccessPath) -> float:
        """Return the share of a path's traffic that the busiest partition value gets.

        This is usually the share of the entries that have the most frequent value. Times are an
        exception: most reads and writes are about the present day and month. So a date, or a
        derived part of a time, does not spread the traffic. A ``largest()`` fact for the field
        overrides that.
        """
        facts = self.estimates.design.facts
        spread = [
            name
            for name in path.partition
            if not is_period(info(path.entity), name)
            or facts.largest(path.entity, name) is not None
        ]
        return self.estimates.hottest(path.entity, spread) if spread else 1.0

    def skew(self, served: ServedNeed) -> float:
        """Return how many times larger the largest collection under the key is than the average."""
        entity, names = served.need.entity, (*served.path.partition, *served.prefix)
        if served.identifies or not self.estimates.is_skewed(entity, names):
            return 1.0
        return self.estimates.hottest(entity, names) * self.estimates.distinct(entity, names)

    def units_of_largest(self, served: ServedNeed, placement: Placement) -> float | None:
        """Return the read units of a call that reads the largest collection.

        Returns None if all collections are assumed to be equally large.
        """
        skew = self.skew(served)
        return self._units_of_call(served, placement, skew) if skew > 1 else None

    def _partitions(self, path: AccessPath) -> float:
        return self.estimates.distinct(path.entity, path.partition) if path.partition else 1.0

    # -- guesses

    def guesses(self, served: ServedNeed) -> tuple[Guess, ...]:
        """Return the guesses behind the number of entries that a call reads."""
        need = served.need
        if served.identifies:
            return ()
        return (
            *self.estimates.volume_guess(need.entity),
            *fraction_guesses(need, served.key_fields, self.estimates),
            *(self.estimates.presence_guess(need.entity, name) for name in self._guessed(need)),
            *need.numbers.guesses,
        )

    def _guessed(self, need: Need) -> list[str]:
        """Return the optional fields of a need for which only the number of values is declared.

        Such a number counts values among the items that have the field. How many items have it is
        then a guess.
        """
        known = info(need.entity)
        names = dict.fromkeys(map(source_field, need.keyed))
        return [
            name
            for name in sorted(names)
            if is_optional(known, name)
            and self.estimates.absent_share(need.entity, name) is None
            and self.estimates.design.facts.distinct(need.entity, (name,)) is not None
        ]

    def guessed_presence(self, need: Need) -> float:
        """Return the guessed share of items that have the optional fields which a need compares."""
        return math.prod(self.estimates.present(need.entity, name) for name in self._guessed(need))

    def presence_guesses(self, path: AccessPath) -> tuple[Guess, ...]:
        """Return the guesses behind ``presence``."""
        entity, known = path.entity, info(path.entity)
        probe = Need("", entity, dict(path.constants))
        optional = [
            self.estimates.presence_guess(entity, name)
            for name in dict.fromkeys(map(source_field, (*path.partition, *path.sort)))
            if is_optional(known, name) and self.estimates.absent_share(entity, name) is None
        ]
        return (*optional, *fraction_guesses(probe, probe.equal, self.estimates))

    def group_guesses(
        self, group: TogetherGroup, paths: tuple[AccessPath, ...]
    ) -> tuple[Guess, ...]:
        found: list[Guess] = []
        for member, path in zip(group.members, paths):
            if not is_unique(info(member.entity), path.partition):
                found += self.estimates.volume_guess(member.entity)
                found += fraction_guesses(member, path.partition, self.estimates)
        return tuple(dict.fromkeys(found))

"""The cost of one path: units and dollars for reads, writes and storage.

``search`` adds up these costs, which are computed for one path at a time. An item counts with the
table's key, and an index entry that does not project everything with its own key as well. Other
keys are left out, so that the price of one path never depends on another. They would be counted
once more in every index that projects everything, and few bytes would decide between native and
concatenated keys. Once the layout is known, the plan reports the sizes with all keys
(``LayoutBytes``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
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
from stator.design.planner.access_paths import AccessPath, ServedNeed
from stator.design.planner.distinct_values import Guess
from stator.design.planner.estimates import Estimates, key_text_bytes, named_values
from stator.design.planner.key_labels import KeyLabels
from stator.design.planner.needs import (
    Need,
    TogetherGroup,
    ValueSource,
    WriteRates,
    is_optional,
    looked_up_by_guard,
)
from stator.design.planner.queried_range import QueriedRange
from stator.design.planner.selectivity import fraction, fraction_guesses
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

PlacementKind = Literal["base", "native base", "concatenated", "native", "local"]
Projection = Literal["ALL", "INCLUDE", "KEYS_ONLY"]

GUARD_BYTES: Final = 200
"""The typical size of a guard."""
_TYPE_BYTES: Final = 12
"""The typical size of the discriminator."""
_NAMES_BYTES: Final = 28
"""Names and labels of two key attributes: equal for every path, so that no word length wins."""


WRITE_LIMIT: Final = 1000.0
READ_LIMIT: Final = 3000.0
"""Units a second that one partition serves. One key value lives in one partition."""
_SHARD_UTILISATION: Final = 0.7
"""Shards are sized to be this full: neither the hash nor the estimate is perfect."""


def shards_for(peak: float, limit: float) -> int:
    """Return the number of shards needed for a peak of units per second on one key value.

    Returns 1 if one partition can serve the peak.
    """
    return 1 if peak <= limit else math.ceil(peak / limit / _SHARD_UTILISATION)


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

        Of base keys, the one with more fields in the partition comes first: a coarse partition may
        become hot.
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


@dataclass(frozen=True, slots=True)
class EntryChanges:
    """The shares of updates that insert an index entry, delete one, or do both (a move)."""

    enters: float
    leaves: float
    moves: float


@dataclass(frozen=True)
class LayoutBytes:
    """Sizes of items and index entries with the keys of a finished layout."""

    items: dict[type[Entity], float] = field(default_factory=dict)
    entries: dict[Placement, float] = field(default_factory=dict)

    def joined(self, other: LayoutBytes) -> LayoutBytes:
        return LayoutBytes(self.items | other.items, self.entries | other.entries)


@dataclass(frozen=True)
class CostModel:
    """Computes prices of placements and needs from a declaration's estimates and write rates.

    ``known`` has the sizes of the layout that the search found. They come first.
    """

    estimates: Estimates
    rates: dict[type[Entity], WriteRates]
    labels: KeyLabels
    known: LayoutBytes = field(default_factory=LayoutBytes)
    longer: str | None = None
    """An entity whose identity is taken to be all fields of its base key, for advice."""
    stored_keys: Mapping[type[Entity], tuple[frozenset[str], ...]] = field(default_factory=dict)
    """The fields of each concatenated index key that the lock's indexes put on stored items."""
    written_keys: Mapping[type[Entity], tuple[frozenset[str], ...]] = field(default_factory=dict)
    """The fields of each concatenated index key that is written by hand."""

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

        The table's key consists of the identity, however it is split.
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
        return values + _NAMES_BYTES + (3 if path.shards > 1 else 0)

    def _index_keys_bytes(self, placement: Placement) -> float:
        """Return the bytes of index keys that an item in this index certainly has.

        These are the keys of the index itself, those of handwritten indexes, and those that the
        lock's indexes put on stored items, where they stay.
        """
        entity, fields = placement.path.entity, frozenset(placement.path.fields)
        stored = {*self.stored_keys.get(entity, ()), *self.written_keys.get(entity, ())}
        size = sum(
            _NAMES_BYTES + sum(self.estimates.key_text_bytes(entity, name) + 1 for name in each)
            for each in stored
        )
        return size + (0.0 if fields in stored else self.key_bytes(placement))

    def entry_bytes(self, placement: Placement) -> float:
        """Return the size of one index entry or, for the table's key, of one item."""
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

    def presence(self, path: AccessPath) -> float:
        """Return the estimated share of items that are in an index on this path.

        Items that lack one of the path's fields, or do not have its constants, are not in the
        index.
        """
        known = info(path.entity)
        probe = Need("", path.entity, dict(path.constants))
        constants = fraction(probe, probe.equal, self.estimates)
        optional = [
            self.estimates.present(path.entity, name)
            for name in dict.fromkeys(map(source_field, (*path.partition, *path.sort)))
            if is_optional(known, name)
        ]
        return float(constants * math.prod(optional))

    # -- writes and storage

    def index_write_rate(self, placement: Placement) -> float:
        """Return the write units per second that maintaining the index costs."""
        rates = self.rates[placement.path.entity]
        units = (rates.creates + rates.deletes) * self.write_units_of_item(placement)
        return units + sum(
            rate * self.write_units_of_update(placement, fields) for fields, rate in rates.updates
        )

    def write_units_of_update(self, placement: Placement, fields: frozenset[str]) -> float:
        """Return the average write units that an update of these fields costs in the index."""
        size, path = self.entry_bytes(placement), placement.path
        if fields & path.sources:
            found = self.entry_changes(path, fields)
            units = index_write_units(None, size)
            return (found.enters + found.leaves) * units + found.moves * 2 * units
        seen = placement.projection == "ALL" or bool(fields & set(placement.included))
        return self.presence(path) * index_write_units(size, size, changes=seen)

    def entry_changes(self, path: AccessPath, fields: frozenset[str]) -> EntryChanges:
        """Return what updates of these fields, which are in the index's key, do to its entries.

        Each update changes the values. So an item with the constant of a sparse index leaves it,
        and one without an optional field enters.
        """
        before = after = both = 1.0
        for name, source in path.constants:
            share = self._constant_share(path.entity, name, source)
            chances = (share, share, share)
            if source_field(name) in fields:
                chances = (share, self._chance_to_enter(path.entity, name, source, share), 0.0)
            before, after, both = before * chances[0], after * chances[1], both * chances[2]
        known = info(path.entity)
        for name in dict.fromkeys(map(source_field, (*path.partition, *path.sort))):
            if not is_optional(known, name):
                continue
            held = self.estimates.present(path.entity, name)
            chances = (held, held, held)
            if name in fields:  # an absent value becomes a present one; a present one any other
                chances = (held, 1.0 - held + held * held, held * held)
            before, after, both = before * chances[0], after * chances[1], both * chances[2]
        return EntryChanges(after - both, before - both, both)

    def _constant_share(self, entity: type[Entity], name: str, source: ValueSource) -> float:
        probe = Need("", entity, {name: source})
        return float(fraction(probe, (name,), self.estimates))

    def _chance_to_enter(
        self, entity: type[Entity], name: str, source: ValueSource, share: float
    ) -> float:
        """Return how likely an update gives an item the constant of a sparse index.

        A field of a few named values moves from one to any other. Values of any other field are
        as frequent after an update as before.
        """
        if source.is_absent:
            return share * (1.0 - share)
        values = None if derived_part(name) else named_values(info(entity).fields[name].shape)
        return (1.0 - share) * (share if values is None else 1.0 / max(1, values - 1))

    def write_units_of_item(self, placement: Placement) -> float:
        """Return the average write units that creating or deleting an item costs in the index.

        Items that have no entry in the index count as zero.
        """
        return self.presence(placement.path) * index_write_units(None, self.entry_bytes(placement))

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
        """Return what one call reads if nothing limits it."""
        matched = self.matched(served)
        is_filtered = bool(served.filter_fields or served.left_spans) or served.is_blunt
        kept = served.need.numbers.result / matched if matched else 1.0
        size = matched * self.entry_bytes(placement)
        return QueriedRange(matched, size, kept, is_filtered)

    def items_read(self, served: ServedNeed, placement: Placement) -> float:
        """Return how many entries one call reads."""
        queries = self._queries(served, placement.path)
        return self.queried_range(served, placement).items_read(served.need.limit_items, queries)

    @staticmethod
    def _queries(served: ServedNeed, path: AccessPath) -> int:
        return served.queries * (1 if served.identifies else path.shards)

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
        own = {*path.partition, *path.sort} if placement.is_native else path.native_fields
        if served.filter_fields & own:
            return None  # DynamoDB refuses filters on the attributes of the key
        if not self._filterable(served, placement):
            return None
        units = self._query_units(served, placement)
        if need.only_key or self.covers(placement, need):
            return units
        if placement.kind == "local":
            return units + need.wanted * read_units(
                self.item_bytes(need.entity), consistent=need.consistent
            )
        return units + need.wanted * read_units(self.item_bytes(need.entity), consistent=False)

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

    def _filterable(self, served: ServedNeed, placement: Placement) -> bool:
        if placement.projection == "ALL":
            return True
        seen, path = set(placement.included), placement.path
        if placement.is_native:
            return served.filter_fields <= seen | {*path.partition, *path.sort}
        return served.filter_fields <= seen and not served.is_blunt

    def _query_units(self, served: ServedNeed, placement: Placement, skew: float = 1.0) -> float:
        """Return the read units of a call.

        ``skew`` is how many times larger the collection is than the mean.
        """
        found = self.queried_range(served, placement)
        found = replace(found, items=found.items * skew, size_bytes=found.size_bytes * skew)
        queries = self._queries(served, placement.path)
        need = served.need
        return found.units(need.limit_items, queries, consistent=need.consistent)

    def guard_units(self, need: Need) -> float | None:
        """Return the read units of a lookup by the guard of a unique field, and then of the item.

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
        """Return the read units of one call that also reads other entities and filters them out.

        DynamoDB applies a limit before the filter, which drops the other entities.
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
        """Return ``crowded_units`` for a call that reads several entities."""
        first = group.members[0]
        return self._group_range(group, paths, strangers).units(
            first.limit_items, paths[0].shards, consistent=first.consistent
        )

    def group_matched(self, member: Need, path: AccessPath) -> float:
        """Return how many items of one member lie in the partition that a group's query reads."""
        volume = self.estimates.volume(member.entity)
        found = volume * fraction(member, path.partition, self.estimates) * member.numbers.excess
        return max(min(found, volume), min(member.numbers.result, volume))

    # -- heat

    def write_shards(self, path: AccessPath) -> int:
        """Return the shards needed for the writes to one partition value.

        A changed key counts as a delete and an insert.
        """
        rates, units = self.rates[path.entity], self.base_write_units(path.entity)
        updates = sum(rate * (2 if fields & path.sources else 1) for fields, rate in rates.updates)
        rate = (rates.creates + rates.deletes + updates) * units * self.presence(path)
        return shards_for(rate * self.hottest(path), WRITE_LIMIT)

    def read_shards(self, served: ServedNeed, placement: Placement) -> int:
        """Return the shards needed for one need's reads of one partition value.

        The most frequent value is asked for as often as its share of the items. Shards do not help
        if a single call reads more than a partition serves in a second: the pattern needs a limit.
        """
        alone = replace(placement, path=replace(placement.path, shards=1))
        units = self.read_units(served, alone)
        if units is None or (placement.is_base and served.whole_key):
            return 1
        skew = self.skew(served)
        if skew > 1:
            units = max(units, self._query_units(served, alone, skew))
        if units > READ_LIMIT:
            return 1
        return shards_for(served.need.rps * units * self.hottest(placement.path), READ_LIMIT)

    def hottest(self, path: AccessPath) -> float:
        """Return the share of a path's traffic that the busiest partition value gets.

        It is the share of the entries with the most frequent value. Times are an exception: most
        writes and reads are about now, and now lies in one month. So a part of a time does not
        spread the traffic, unless ``largest()`` says which share its most frequent value has.
        """
        facts = self.estimates.design.facts
        spread = [
            name
            for name in path.partition
            if (part := derived_part(name)) is None
            or not part.is_time
            or facts.largest(path.entity, name) is not None
        ]
        return self.estimates.hottest(path.entity, spread) if spread else 1.0

    def skew(self, served: ServedNeed) -> float:
        """Return how many times larger the largest collection under the key is than the mean."""
        entity, names = served.need.entity, (*served.path.partition, *served.prefix)
        if served.identifies or not self.estimates.is_skewed(entity, names):
            return 1.0
        return self.estimates.hottest(entity, names) * self.estimates.distinct(entity, names)

    def units_of_largest(self, served: ServedNeed, placement: Placement) -> float | None:
        """Return the read units of a call for the largest collection; None if all are alike."""
        skew = self.skew(served)
        return self._query_units(served, placement, skew) if skew > 1 else None

    def _partitions(self, path: AccessPath) -> float:
        return self.estimates.distinct(path.entity, path.partition) if path.partition else 1.0

    # -- guesses

    def guesses(self, served: ServedNeed) -> tuple[Guess, ...]:
        """Return the guesses that the number of entries read rests on."""
        need = served.need
        if served.identifies:
            return ()
        return (
            *self.estimates.volume_guess(need.entity),
            *fraction_guesses(need, served.key_fields, self.estimates),
            *need.numbers.guesses,
        )

    def presence_guesses(self, path: AccessPath) -> tuple[Guess, ...]:
        """Return the guesses that ``presence`` rests on."""
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

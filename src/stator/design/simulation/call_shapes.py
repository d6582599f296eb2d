"""Call shapes: what one call of a pattern takes from each table and index, and at which keys.

Units come from the plan (``stator.design.cost.workload``), and so do tables, indexes and key
templates. This module adds the keys that calls concentrate on.

A write is charged to the table at the item's key, and to each global index at the index's key.
Entries of a local index are charged to the table's own partition. A read is charged where its
request goes. If the read then fetches items by their keys, the fetch is charged to the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Final, Literal

from stator.design.capacity_units import read_units, write_units
from stator.design.cost.workload import CapacityUse, Workload, workload_of
from stator.design.declaration import Declaration
from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Epoch
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.plan.example_items import shown_value
from stator.design.plan.own_table import own_table
from stator.design.plan.plan import EntityPlan, PatternPlan, Plan, Step
from stator.design.plan.templates import Part, PlannedKeyAttribute, shard_text
from stator.design.planner.cost_model import GUARD_BYTES
from stator.design.simulation.key_sets import KeySet, KeySetKind, partition_bytes
from stator.design.simulation.traffic_shape import TrafficShape
from stator.design.simulation.value_groups import (
    FEW_VALUES,
    Named,
    ValueGroup,
    ValueRanks,
    hot_groups,
    scalar,
    zipf_groups,
)
from stator.model.heat.limits import READ, WRITE

HeatPlace = tuple[str, str | None]
"""A table, or one of its global indexes: (table, None) or (table, index)."""
CallKind = Literal["read", "write", "load"]

_HALF_UNIT: Final = 0.5


@dataclass(frozen=True, slots=True)
class ChargedKeys:
    """A set of keys, and the ``share`` of a leg's units that is spread evenly over them.

    ``count`` is the number of partition keys in the set, and ``label`` is the text of one of them.
    """

    share: float
    keys: KeySet
    label: str
    count: float = 1.0


@dataclass(frozen=True, slots=True)
class CallLeg:
    """The units that one call takes in one place, and the keys at which it takes them.

    ``place`` is a table or an index. ``keys`` has the keys for each value group of the call.
    """

    place: HeatPlace
    kind: int
    units: float
    keys: tuple[tuple[ChargedKeys, ...], ...]


@dataclass(frozen=True, slots=True)
class CallShape:
    """The legs of one call of a pattern. The call passes only if every leg passes."""

    name: str
    kind: CallKind
    groups: tuple[ValueGroup, ...]
    legs: tuple[CallLeg, ...]


_LegKeys = tuple[HeatPlace, int, tuple[tuple[ChargedKeys, ...], ...]]


@dataclass(frozen=True, slots=True)
class _KeyRule:
    """The rule that gives the partition keys of a leg from the values of a call."""

    entity: type[Entity]
    index: str | None
    keys: tuple[PlannedKeyAttribute, ...]
    fixed: tuple[tuple[str, str], ...] = ()
    """The texts of fields that the pattern compares with constants."""
    constant: str | None = None
    """The whole partition key, if no part of it varies."""
    within: KeySetKind = "collection"
    is_guard: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that vary in the partition key."""
        if self.constant is not None:
            return ()
        known = dict(self.fixed)
        return tuple(
            dict.fromkeys(
                part.name
                for key in self.keys
                for part in key.template.parts
                if part.kind == "field" and part.name not in known
            )
        )

    @property
    def shards(self) -> int:
        return max((part.shards for key in self.keys for part in key.template.parts), default=1)


_Leg = tuple[HeatPlace, int, float, _KeyRule]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The legs of a call before its values are divided into groups.

    ``created`` are the entities whose items the call creates.
    """

    name: str
    kind: CallKind
    legs: list[_Leg]
    created: set[str]


class CallShapes:
    """Makes the call shapes of a design's patterns, of ``writes=`` and of loads.

    ``shards`` has numbers of shards to assume instead of the plan's. It is keyed by entity and
    index, with None for the table itself.
    """

    def __init__(
        self,
        design: Declaration,
        plan: Plan,
        shape: TrafficShape,
        shards: Mapping[tuple[str, str | None], int],
    ) -> None:
        self.design = design
        self.plan = plan
        self.shape = shape
        self.shards = shards
        self.ranks = ValueRanks(design)
        self.texts: dict[tuple[str, int], str] = {}
        """Measured values, by field and rank. Other ranks have example values."""
        self.own_table = own_table(design.name).name
        self.entities = {info(each).name: each for each in design.entities}
        self.plans = {each.name: each for each in plan.entities if each.name in self.entities}
        self.rates = {each.name: each.requests_per_second for each in plan.patterns}

    @cached_property
    def workload(self) -> Workload:
        return workload_of(self.plan, self.design)

    def declared(self) -> Iterator[tuple[CallShape, float]]:
        """Yield the calls of every pattern and of ``writes=``, each with its rate a second."""
        for pattern in self.plan.patterns:
            if pattern.kind == "read" and pattern.requests_per_second > 0:
                yield self._shape(self._read(pattern)), self._busy(pattern.name)
        others = [each for each in self.workload.uses if self._is_counted(each)]
        for label, found in groupby(
            sorted(others, key=lambda use: use.pattern), key=lambda use: use.pattern
        ):
            uses = list(found)
            rate = self._rate(label, uses)
            if rate > 0:
                busy = self._busy(label) if label in self.rates else rate
                yield self._shape(self._write(label, uses, rate)), busy

    def _busy(self, pattern: str) -> float:
        """Return how often a pattern is called each second while it is called."""
        window = self.design.windows.get(pattern)
        return self.rates[pattern] / (1.0 if window is None else window.share)

    def measured(self, pattern: str, groups: tuple[ValueGroup, ...] | None) -> CallShape:
        """Return the shape of a pattern's calls, spread over values as they were measured.

        Without ``groups``, the calls are spread as the design declares. The ranks in ``groups``
        stand for the measured values in ``self.texts``.
        """
        planned = self.plan.pattern(pattern)
        if planned.kind == "read":
            return self._shape(self._read(planned), groups)
        uses = [each for each in self.workload.uses if each.pattern == pattern]
        rate = planned.requests_per_second
        return self._shape(self._write(pattern, uses, rate), groups)

    def fields_of(self, pattern: str) -> dict[str, str]:
        """Return the fields in the partition keys of a pattern, by the name of field or argument.

        A row of measured calls may name a value by its field or by its argument.
        """
        planned = self.plan.pattern(pattern)
        if planned.kind == "read":
            draft = self._read(planned)
        else:
            uses = [each for each in self.workload.uses if each.pattern == pattern]
            draft = self._write(pattern, uses, planned.requests_per_second or 1.0)
        found = {name: name for *_, rule in draft.legs if not rule.is_guard for name in rule.names}
        for step in planned.steps:
            bounds = {test.attribute: test.bounds[0] for test in step.key}
            for *_, rule in draft.legs:
                for key in rule.keys:
                    bound = bounds.get(key.name)
                    if bound is None or len(bound.parts) != len(key.template.parts):
                        continue
                    for mine, given in zip(key.template.parts, bound.parts):
                        if mine.kind == "field" and given.kind == "param":
                            found[given.value] = mine.name
        return found

    def _is_counted(self, use: CapacityUse) -> bool:
        """Whether a use of capacity belongs to a write pattern, or to no pattern.

        Uses by reads are skipped: the call shapes of reads are made from their steps.
        """
        is_read = any(
            each.name == use.pattern and each.kind == "read" for each in self.plan.patterns
        )
        return not is_read and use.entity in self.plans

    def _rate(self, label: str, uses: list[CapacityUse]) -> float:
        if label in self.rates:
            return self.rates[label]
        entity = self.entities[uses[0].entity]
        if label == f"writes of {uses[0].entity}":
            return float(self.design.declared_writes.get(entity, 0.0))
        return float(sum(use.units for use in uses))

    # -- writes

    def _write(self, label: str, uses: list[CapacityUse], rate: float) -> _Draft:
        pattern = next((each for each in self.design.write_patterns if each.name == label), None)
        changes = () if pattern is None else pattern.trace()
        legs: list[_Leg] = []
        created: set[str] = set()
        is_create = pattern is None and label.startswith("writes of ")
        for use in uses:
            name = use.entity
            own = [each for each in changes if info(each.entity).name == name]
            creates = is_create or any(each.kind == "create" for each in own)
            if creates:
                created.add(name)
            units = float(use.units) / rate
            kind = READ if use.kind == "read" else WRITE
            if use.table == self.own_table and use.table != self.plans[name].table:
                place: HeatPlace = (use.table, None)
                rule = self._rule(name, None, within="item", is_guard=True)
            else:
                index = None if self._is_local(use.table, use.index) else use.index
                place = (use.table, index)
                rule = self._rule(name, index, within=self._written(name, index, own, creates))
            legs.append((place, kind, units, rule))
        return _Draft(label, "write", legs, created)

    def load(self, entity: str, *, is_shuffled: bool) -> CallShape:
        """Return the shape of a put of a new item by a bulk load."""
        plan = self.plans[entity]
        legs: list[_Leg] = []
        items = max(plan.items, 1.0)
        for stored in self.workload.stored:
            if stored.entity != entity:
                continue
            units = write_units(stored.entry_bytes) * float(stored.entries) / items
            index = None if stored.is_local else stored.index
            if stored.is_guard:
                rule = self._rule(entity, None, within="item", is_guard=True)
            else:
                within = self._written(entity, index, [], is_create=True)
                rule = self._rule(entity, index, within=within)
                if index is None and not is_shuffled:
                    rule = replace(rule, within="cursor")
            legs.append(((stored.table, index), WRITE, units, rule))
        return self._shape(_Draft(f"load of {entity}", "load", legs, {entity}))

    def _is_local(self, table: str, index: str | None) -> bool:
        if table == self.own_table:
            return False
        kinds = {each.name: each.kind for each in self.plan.table(table).indexes}
        return index is not None and kinds[index] == "LSI"

    def _written(
        self, entity: str, index: str | None, changes: list[DeclaredWrite], is_create: bool
    ) -> KeySetKind:
        """Return which keys a call touches under one partition key.

        The result is ``item`` if the partition key holds the whole identity, ``newest`` if new sort
        keys rise with time, and otherwise ``collection``.
        """
        known = info(self.entities[entity])
        keys = [key for key in self.plans[entity].keys if key.index == index]
        partition = {source_field(part.name) for part in _field_parts(keys, is_sort=False)}
        if set(known.identity) <= partition:
            return "item"
        first = next(iter(_field_parts(keys, is_sort=True)), None)
        if first is not None:
            field = known.fields[source_field(first.name)]
            found = scalar(field.shape)
            rises = is_create or (bool(changes) and field.role == "updated")
            if rises and found is not None and issubclass(found.python, (datetime, Epoch)):
                return "newest"
        return "collection"

    # -- reads

    def _read(self, pattern: PatternPlan) -> _Draft:
        legs: list[_Leg] = []
        for step in pattern.steps:
            if step.entities[0] in self.plans:
                legs += self._step_legs(pattern, step)
        return _Draft(pattern.name, "read", legs, set())

    def _step_legs(self, pattern: PatternPlan, step: Step) -> Iterator[_Leg]:
        entity = step.entities[0]
        fetched = self._fetched(pattern, step)
        if step.guard is not None:
            guard = read_units(GUARD_BYTES, consistent=step.consistent)
            rule = self._rule(entity, None, within="item", is_guard=True)
            yield (step.guard.table, None), READ, guard, rule
            fetched = max(0.0, step.units - guard)
        else:
            local = self._is_local(step.table, step.index)
            index = None if local else step.index
            rule = self._queried(entity, index, step)
            yield (step.table, index), READ, step.units - fetched, rule
        if fetched > 0:
            within = self._written(entity, None, [], is_create=False)
            yield (step.table, None), READ, fetched, self._rule(entity, None, within=within)

    def _fetched(self, pattern: PatternPlan, step: Step) -> float:
        """Return the read units that a step takes to fetch whole items after reading an index."""
        if not step.fetch or step.guard is not None:
            return 0.0
        each = read_units(self.plans[step.entities[0]].item_bytes, consistent=False)
        known = self.plan.demand.pattern(pattern.name) if self.plan.demand else None
        returned = known.returns if known is not None and known.returns else step.limit
        least = _HALF_UNIT * step.shards * len(step.conditions)
        if returned is None:  # the entries are small: nearly all units are those of the items
            return max(0.0, step.units - least)
        return max(0.0, min(step.units - least, returned * each))

    def _queried(self, entity: str, index: str | None, step: Step) -> _KeyRule:
        """Return the rule that gives the partition keys which a step reads."""
        rule = self._rule(entity, index, within="collection")
        if step.operation == "Scan":
            return replace(rule, within="hashes")
        bounds = {test.attribute: test.bounds[0] for test in step.key}
        fixed: dict[str, str] = {}
        constants = []
        varies = False
        for key in rule.keys:
            bound = bounds.get(key.name)
            if bound is None:
                return rule
            varies = varies or any(part.kind == "param" for part in bound.parts)
            texts = [part.value for part in bound.parts if part.kind == "text"]
            constants.append("".join(texts))
            if len(bound.parts) == len(key.template.parts):
                for mine, given in zip(key.template.parts, bound.parts):
                    if mine.kind == "field" and given.kind == "text":
                        fixed[mine.name] = given.value
        if not varies and not step.alternatives:
            rule = replace(rule, constant=", ".join(constants))
        within: KeySetKind = "collection"
        if step.operation == "GetItem":
            within = self._written(entity, index, [], is_create=False)
        elif (step.limit is not None or step.limit_param) and step.order is not None:
            within = "item" if step.forward else "end"
        return replace(rule, fixed=tuple(fixed.items()), within=within)

    # -- keys

    def _rule(
        self, entity: str, index: str | None, *, within: KeySetKind, is_guard: bool = False
    ) -> _KeyRule:
        own = [key for key in self.plans[entity].keys if key.index == index]
        keys = tuple(key for key in own if not key.is_sort)
        if within == "collection" and not any(_field_parts(own, is_sort=True)):
            # AWS says that it divides an item collection between sort keys. All these entries have
            # the same one, so no split is assumed to help.
            within = "item"
        return _KeyRule(self.entities[entity], index, keys, within=within, is_guard=is_guard)

    def _shape(self, draft: _Draft, measured: tuple[ValueGroup, ...] | None = None) -> CallShape:
        name, kind = draft.name, draft.kind
        rules = [rule for *_, rule in draft.legs]
        groups = self._groups(name, rules, draft.created) if measured is None else measured
        merged: dict[_LegKeys, float] = {}
        for place, what, units, rule in draft.legs:
            if units <= 0:
                continue
            keys = tuple(tuple(self._keys(rule, group)) for group in groups)
            queries = self._queries(rule) if kind == "read" else 1
            needed = max(units, queries * _HALF_UNIT) if queries > 1 else units
            merged[place, what, keys] = merged.get((place, what, keys), 0.0) + needed
        made = [CallLeg(place, what, units, keys) for (place, what, keys), units in merged.items()]
        return CallShape(name, kind, groups, tuple(made))

    def _queries(self, rule: _KeyRule) -> int:
        """Return how many queries a read sends for shards that ``self.shards`` adds to the plan.

        Returns 1 if the plan has as many shards, or if the call knows the shard of its item.
        """
        shards = self._shards(rule)
        return shards if shards > rule.shards and not self._is_identified(rule) else 1

    def shards_now(self, entity: str, index: str | None) -> int:
        """Return the number of shards over which the traffic of one key value is spread."""
        rule = self._rule(entity, index, within="collection")
        is_assumed = (entity, index) in self.shards
        return 1 if self._is_identified(rule) and not is_assumed else self._shards(rule)

    def _is_identified(self, rule: _KeyRule) -> bool:
        names = set(map(source_field, rule.names))
        return rule.is_guard or set(info(rule.entity).identity) <= names

    def _groups(
        self, name: str, rules: list[_KeyRule], created: set[str]
    ) -> tuple[ValueGroup, ...]:
        varying = [rule for rule in rules if not rule.is_guard]
        fields: list[Named] = [(rule.entity, each) for rule in varying for each in rule.names]
        new = {info(self.entities[entity]).identity[-1] for entity in created}
        named = [each for each in dict.fromkeys(name for _, name in fields) if each not in new]
        groups = self.ranks.groups(fields)
        for zipf in self.shape.zipf:
            if zipf.pattern == name:
                values = max((self._values(rule) for rule in varying), default=1.0)
                groups = zipf_groups(named, values, zipf.exponent)
        for hot in self.shape.hot:
            if hot.pattern == name:
                groups = hot_groups(groups, named, hot.share)
        return groups

    def _values(self, rule: _KeyRule) -> float:
        return self.ranks.distinct(rule.entity, rule.names)

    def _shards(self, rule: _KeyRule) -> int:
        if rule.is_guard:
            return 1
        entity = info(rule.entity).name
        return self.shards.get((entity, rule.index), rule.shards)

    def _keys(self, rule: _KeyRule, group: ValueGroup) -> Iterator[ChargedKeys]:
        """Yield the keys that the calls of a group touch through a leg."""
        if rule.is_guard:
            yield ChargedKeys(1.0, KeySet("hashes"), "UNIQUE#...", self._volume(rule))
            return
        names = rule.names
        ranked = {name: rank for name in names if (rank := group.rank(name)) is not None}
        free = tuple(name for name in names if name not in ranked)
        values = 1.0
        if free:
            whole = self.ranks.distinct(rule.entity, names)
            values = max(1.0, whole / self.ranks.distinct(rule.entity, tuple(ranked)))
        shards = self._shards(rule)
        used = range(shards)
        is_assumed = (info(rule.entity).name, rule.index) in self.shards
        if self._is_identified(rule) and not is_assumed:
            used = range(1)  # an item is in the shard that follows from its identity
        if rule.within in ("hashes", "cursor"):
            label = self._text(rule, ranked, 0, shards)
            yield ChargedKeys(1.0, KeySet(rule.within), label, values * len(used))
        elif values > FEW_VALUES:
            label = self._text(rule, ranked, 0, shards)
            yield ChargedKeys(1.0, KeySet("hashes"), label, values * len(used))
        else:
            count = max(1, round(values))
            within = "item" if group.is_one_item and rule.within == "collection" else rule.within
            for at in range(count):
                ranks = ranked | dict.fromkeys(free, at)
                for shard in used:
                    text = self._text(rule, ranks, shard, shards)
                    partition = partition_bytes(text, self.shape.seed)
                    share = 1 / count / len(used)
                    yield ChargedKeys(share, KeySet(within, partition), text)

    def _volume(self, rule: _KeyRule) -> float:
        return max(1.0, self.design.volume(rule.entity))

    def _text(self, rule: _KeyRule, ranks: Mapping[str, int], shard: int, shards: int) -> str:
        """Return the text of the partition key of one shard.

        ``ranks`` says which value each field has, by its rank.
        """
        if rule.constant is not None:
            return rule.constant + ("" if shards == 1 else self._shard_text(rule, shard, shards))
        fixed, texts, has_shard = dict(rule.fixed), [], False
        for key in rule.keys:
            text = ""
            for part in key.template.parts:
                if part.kind == "text":
                    text += part.value
                elif part.kind == "shard":
                    has_shard = True
                    text += shard_text(shard, shards)
                else:
                    text += fixed.get(part.name) or self._value_text(rule, key, part, ranks)
            texts.append(text)
        if shards > 1 and not has_shard:
            texts[-1] += f"#{shard_text(shard, shards)}"
        return ", ".join(texts)

    @staticmethod
    def _shard_text(rule: _KeyRule, shard: int, shards: int) -> str:
        has_shard = any(part.kind == "shard" for key in rule.keys for part in key.template.parts)
        return f"{'' if has_shard else '#'}{shard_text(shard, shards)}"

    def _value_text(
        self, rule: _KeyRule, key: PlannedKeyAttribute, part: Part, ranks: Mapping[str, int]
    ) -> str:
        rank = ranks.get(part.name, 0)
        if (part.name, rank) in self.texts:
            return self.texts[part.name, rank]
        value = self.ranks.value(rule.entity, part.name, rank)
        if value is None:
            return ""
        if key.template.native:
            filled = key.template.fill({part.value: value})
            return "" if filled is None else shown_value(filled)
        return part.fill({part.value: value}, None) or ""


def _field_parts(keys: Iterable[PlannedKeyAttribute], *, is_sort: bool) -> Iterator[Part]:
    for key in keys:
        if key.is_sort == is_sort:
            yield from (part for part in key.template.parts if part.kind == "field")


def sharded_keys(plan: EntityPlan, shards: int) -> dict[tuple[str, str | None], int]:
    """Return ``shards`` for every partition key of an entity, by entity and index."""
    return dict.fromkeys(((plan.name, key.index) for key in plan.keys), shards)

"""The search: the cheapest design of one table, over all its entities at once.

The cost of a design, in dollars a month, is the sum of

- *reads*: for each pattern its rate, times the read units of one call: what the key finds (not only what the filter keeps) times the
  size of an entry, in steps of 4 KB, half when eventually consistent, at least one step; one call for each shard; and, where an index
  does not hold the whole item, one more read for each item wanted;
- *writes*: for each path in an index, every create and delete of the entity writes an entry of the projected size in steps of 1 KB; an
  update writes one if it changes something projected, and two (delete and insert) if it changes the key; sparse paths pay for the
  part of the items that they hold. What writing the table itself costs is the same for every design and left out;
- *storage*: the key strings on the items, and each index entry with its 100 bytes of overhead;
- *burdens*, small charges that no bill shows but ties are decided by: for each index, so that fewer win; for a base key that the identity
  alone does not give; for a partition key with few values, which cannot spread its traffic.

A design has one base key for each entity, a set of further paths, and a facility (a path and how it is held, see ``facilities``) for each
need. Generic string keys let entities share an index, if they want the same projection: a table needs as many such indexes as
the entity with the most paths in them. Native keys, INCLUDE projections and local indexes are not shared. A pattern over several
entities is met when all their base keys have the same partition, or when all are put into one index with the same partition.

How it is found. For given numbers of shared indexes, entities depend on each other only through patterns over several of them, so each
connected component is solved alone: base keys are chosen entity by entity, and below that each entity's needs are assigned to
facilities. Both are branch and bound. The bound of an assignment lets each need pay, of each facility it could use, a share of the
price that is the price divided by the number of needs that could use it: no assignment pays less. All numbers of shared indexes that could
pay are tried. The result is the optimum of this model, with two exceptions that ``proven`` tells: the search was cut off after
``NODE_BUDGET`` steps (``ASSIGNMENT_BUDGET`` for one entity), or patterns over several entities, all in indexes, need more of them than any one entity has paths.

Costs that differ by less than a millionth of a cent are ties, which go to what comes first in a fixed order: equal inputs, equal designs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from stator.design.candidates import Path, group_choices, group_inverts, is_ordered
from stator.design.costing import Costing, Facility
from stator.design.entity import Entity, info
from stator.design.facilities import Choices, group_path
from stator.design.labels import Labels
from stator.design.needs import Group, Need, is_optional
from stator.design.slots import slots_needed
from stator.design.steps import partition_parts
from stator.design.unit_prices import INDEX_DOLLARS, MONTH_SECONDS, READ_UNIT_DOLLARS

NODE_BUDGET: Final = 200_000
ASSIGNMENT_BUDGET: Final = 10_000
_TIE: Final = 1e-8
_FAR: Final = float("inf")

Caps = tuple[int, int]
"""How many shared indexes there are with KEYS_ONLY and with ALL."""
UNCAPPED: Final[Caps] = (99, 99)


@dataclass(frozen=True)
class EntityDesign:
    """What was chosen for one entity; ``assigned`` follows its needs, with None for a Scan."""

    base: Facility
    opened: tuple[Facility, ...]
    assigned: tuple[Facility | None, ...]
    dollars: float
    proven: bool = True


@dataclass(frozen=True)
class GroupDesign:
    """Where a pattern over several entities is met: by the base keys, or by one facility of each entity in one index."""

    group: Group
    facilities: tuple[Facility, ...]
    dollars: float

    @property
    def in_base(self) -> bool:
        return self.facilities[0].is_base


@dataclass(frozen=True)
class ComponentDesign:
    entities: dict[type[Entity], EntityDesign]
    groups: tuple[GroupDesign, ...]
    dollars: float
    caps: Caps
    proven: bool = True


@dataclass
class Component:
    """Entities that patterns bind together, with all there is to choose."""

    choices: list[Choices]
    groups: list[Group]
    costing: Costing
    labels: Labels
    _memo: dict[tuple[object, ...], EntityDesign | None] = field(default_factory=dict)
    _solved: dict[Caps, ComponentDesign | None] = field(default_factory=dict)
    _options: dict[str, list[GroupDesign]] = field(default_factory=dict)
    _nodes: int = 0

    @property
    def is_cut_off(self) -> bool:
        return self._nodes > NODE_BUDGET

    # -- one entity

    def solve_entity(
        self, choices: Choices, base: Facility, forced: tuple[Facility, ...], caps: Caps
    ) -> EntityDesign | None:
        key = (choices.entity, base, forced, caps)
        if key not in self._memo:
            free = self.solve_entity(choices, base, forced, UNCAPPED) if caps != UNCAPPED else None
            if free is not None and _within(_shared(free.opened), caps):
                self._memo[key] = free
            elif caps != UNCAPPED and free is None:
                self._memo[key] = None
            else:
                assignment = _Assignment(choices, base, forced, caps)
                self._memo[key] = assignment.solve()
                self._nodes += assignment.nodes
        return self._memo[key]

    # -- all of them

    def solve(self, caps: Caps) -> ComponentDesign | None:
        if caps not in self._solved:
            self._solved[caps] = self._cached(caps)
            # Once too much was tried, what is known must do.
            if self._solved[caps] is None and not (self.is_cut_off and UNCAPPED in self._solved):
                self._solved[caps] = _BaseSearch(self, caps).solve()
        return self._solved[caps]

    @property
    def freest(self) -> ComponentDesign:
        """The design with as many shared indexes as it likes: none with fewer is cheaper."""
        found = self.solve(UNCAPPED)
        assert found is not None, "what cannot be served is refused before the search"
        return found

    def _cached(self, caps: Caps) -> ComponentDesign | None:
        free = self._solved.get(UNCAPPED)
        return free if free is not None and _within(free.caps, caps) else None

    # -- patterns over several entities

    def in_base(self, group: Group, bases: dict[type[Entity], Facility]) -> GroupDesign | None:
        found = tuple(bases[member.entity] for member in group.members)
        if any(each.is_native for each in found) or not self.aligned(group, tuple(each.path for each in found)):
            return None
        return GroupDesign(group, found, self._dollars(group, tuple(each.path for each in found)))

    def in_indexes(self, group: Group) -> list[GroupDesign]:
        """The ways to put a group into one index of its own, cheapest reads first."""
        if group.name not in self._options:
            self._options[group.name] = sorted(
                self._index_options(group), key=lambda each: (each.dollars, [one.rank for one in each.facilities])
            )
        return self._options[group.name]

    def _index_options(self, group: Group) -> Iterator[GroupDesign]:
        if any(member.consistent for member in group.members):
            return
        by_entity = {choices.entity: choices for choices in self.choices}
        for chosen in group_choices(group):
            alternatives = []
            for member in group.members:
                fields = group.partition_of(member.entity, chosen)
                partition = tuple(sorted(fields, key=lambda name, of=member.entity: (self.labels.field(of, name), name)))  # type: ignore[misc]
                sorts = {path.significant for path in _paths(by_entity[member.entity]) if path.partition == partition}
                sorts.add((str(member.order),) if is_ordered(member) else ())
                inverted = is_ordered(member) and group_inverts(group, self.labels) is True
                alternatives.append(
                    [replace(group_path(member.entity, partition, sort), inverted=inverted) for sort in sorted(sorts)]
                )
            for paths in product(*alternatives):
                shards = max(self.costing.write_shards(path) for path in paths)
                even = tuple(replace(path, shards=shards) for path in paths)
                if self.aligned(group, even):
                    found = tuple(Facility(path, "concatenated") for path in even)
                    for facility in found:
                        by_entity[facility.path.entity].price(facility)
                    yield GroupDesign(group, found, self._dollars(group, even))

    def aligned(self, group: Group, paths: tuple[Path, ...]) -> bool:
        """Whether one query of one partition gives what the group asks, in its order."""
        heads = set()
        inverts = group_inverts(group, self.labels) or False
        for member, path in zip(group.members, paths):
            if path.constants or not path.partition or not set(path.partition) <= member.equal.keys():
                return False
            if is_ordered(member) and (path.sort[:1] != (member.order,) or path.inverted != inverts):
                return False
            if any(is_optional(info(path.entity), name) for name in path.sort):
                return False  # items without the field would be missing
            heads.add(self._head(member, path))
        return len(heads) == 1

    def _head(self, member: Need, path: Path) -> tuple[str, ...]:
        """The partition key as the pattern fills it."""
        parts = partition_parts(path, self.labels)
        return tuple(
            f":{member.equal[part.value].same}" if part.kind == "field" else f"{part.value}{part.shards}" for part in parts
        )

    def _dollars(self, group: Group, paths: tuple[Path, ...]) -> float:
        units = self.costing.group_units(group, paths, consistent=group.members[0].consistent)
        return units * group.rps * MONTH_SECONDS * READ_UNIT_DOLLARS


def _paths(choices: Choices) -> Iterable[Path]:
    return dict.fromkeys(facility.path for facility in choices.secondary if not facility.path.constants)


def _shared(facilities: Iterable[Facility]) -> Caps:
    shared = [each.projection for each in facilities if each.shares_slot]
    return shared.count("KEYS_ONLY"), shared.count("ALL")


def _within(used: Caps, caps: Caps) -> bool:
    return used[0] <= caps[0] and used[1] <= caps[1]


# --- needs to facilities ------------------------------------------------------------------------------------


class _Assignment:
    """One entity, its base key chosen, some facilities forced open: the cheapest way to serve every need."""

    def __init__(self, choices: Choices, base: Facility, forced: tuple[Facility, ...], caps: Caps) -> None:
        self.choices = choices
        self.base = base
        self.forced = (*choices.pinned, *forced)
        self.caps = caps
        candidates = [each for each in choices.secondary if each not in self.forced and _fits_base(each, base)]
        self.candidates = candidates
        self.have = [choices.have[each] for each in candidates]
        self.use = [choices.use[each] for each in candidates]
        given = [choices.scans, *(choices.use[each] for each in (base, *self.forced))]
        self.given = [min(map(_number, column), default=_FAR) for column in zip(*given)]
        self.needs = self._hardest_first()
        self.floor = [self._floor(at) for at in range(len(choices.needs))]
        self.room = sum(caps) - sum(_shared(self.forced))
        self.rent = self._rent()
        self.rented = [self._floor(at, self.rent) for at in range(len(choices.needs))]
        self.nodes = 0
        self.best = _FAR
        self.chosen: tuple[int, ...] | None = None

    def _hardest_first(self) -> list[int]:
        options = [sum(use[at] is not None for use in self.use) for at in range(len(self.choices.needs))]
        return sorted(range(len(options)), key=lambda at: (self.given[at] < _FAR, options[at], at))

    def _floor(self, at: int, rent: float = 0.0) -> float:
        """No assignment serves the need for less than this, sharing the price of what it opens with all that could use it."""
        lowest = self.given[at]
        for facility, have, use in zip(self.candidates, self.have, self.use):
            price = use[at]
            if price is not None:
                paid = have + (rent if facility.shares_slot else 0.0)
                lowest = min(lowest, price + paid / sum(each is not None for each in use))
        return lowest

    def _rent(self) -> float:
        """A charge for each shared index, which the bound gives back for as many as there are: it sees that they do not suffice.

        Any charge gives a valid bound. The best is what the first need that finds no room would have saved.
        """
        if self.room >= len(self.needs):
            return 0.0
        without = [min(self._floor(at, _FAR), 1e12) for at in range(len(self.choices.needs))]
        saved = sorted((high - low for high, low in zip(without, self.floor) if low < _FAR), reverse=True)
        return min(saved[self.room], 1e9) if 0 <= self.room < len(saved) else 0.0

    def solve(self) -> EntityDesign | None:
        if not _within(_shared(self.forced), self.caps):
            return None
        fixed = self.choices.have[self.base] + sum(self.choices.have[each] for each in self.forced)
        self._descend(0, fixed, frozenset(), list(self.given))
        if self.chosen is None:
            return None
        opened = (*self.forced, *(self.candidates[at] for at in self.chosen))
        return EntityDesign(self.base, opened, self._assigned(opened), self.best, self.nodes <= ASSIGNMENT_BUDGET)

    def _bound(self, depth: int, opened: frozenset[int], now: list[float]) -> float:
        rest = sum(min(self.floor[at], now[at]) for at in self.needs[depth:])
        if not self.rent:
            return rest
        left = self.room - sum(self.candidates[at].shares_slot for at in opened)
        return max(rest, sum(min(self.rented[at], now[at]) for at in self.needs[depth:]) - self.rent * left)

    def _descend(self, depth: int, spent: float, opened: frozenset[int], now: list[float]) -> None:
        self.nodes += 1
        if spent + self._bound(depth, opened, now) >= self.best - _TIE:
            return
        if self.nodes > ASSIGNMENT_BUDGET and self.chosen is not None:
            return
        if depth == len(self.needs):
            self.best, self.chosen = spent, tuple(sorted(opened))
            return
        at = self.needs[depth]
        options: list[tuple[float, int]] = [(now[at], -1)] if now[at] < _FAR else []
        for index, use in enumerate(self.use):
            price = use[at]
            # What is open already is in ``now``; opening something dearer than that makes no sense for this need alone, but may
            # for a later one, which will then open it itself.
            if price is not None and index not in opened and price + self.have[index] < _FAR:
                options.append((price + self.have[index], index))
        for extra, index in sorted(options):
            if index < 0:
                self._descend(depth + 1, spent + extra, opened, now)
            elif extra < now[at] + self.have[index] and self._room(opened, index):
                use = self.use[index]
                better = [min(old, _number(new)) for old, new in zip(now, use)]
                self._descend(depth + 1, spent + extra, opened | {index}, better)

    def _room(self, opened: frozenset[int], index: int) -> bool:
        facilities = [*self.forced, *(self.candidates[at] for at in opened), self.candidates[index]]
        return _within(_shared(facilities), self.caps)

    def _assigned(self, opened: tuple[Facility, ...]) -> tuple[Facility | None, ...]:
        found: list[Facility | None] = []
        for at in range(len(self.choices.needs)):
            able = [each for each in (self.base, *opened) if self.choices.use[each][at] is not None]
            best = min(able, key=lambda each: (self._used(each, at), not each.is_base, each.rank), default=None)
            scan = _number(self.choices.scans[at])
            found.append(None if best is None or scan < self._used(best, at) - _TIE else best)
        return tuple(found)

    def _used(self, facility: Facility, at: int) -> float:
        return round(_number(self.choices.use[facility][at]) / _TIE) * _TIE


def _number(price: float | None) -> float:
    return _FAR if price is None else price


def _fits_base(facility: Facility, base: Facility) -> bool:
    """A local index has the partition of the table, and another order."""
    if facility.holding != "local":
        return True
    mine, its = facility.path, base.path
    return its.handwritten is None and mine.partition == its.partition and mine.shards == its.shards and mine.sort != its.sort


# --- base keys ----------------------------------------------------------------------------------------------


class _BaseSearch:
    """One component: a base key for each entity, and a place for each pattern over several of them."""

    def __init__(self, component: Component, caps: Caps) -> None:
        self.component = component
        self.caps = caps
        self.choices = component.choices
        self.best: ComponentDesign | None = None
        self.nodes = 0

    def solve(self) -> ComponentDesign | None:
        self.ranked: list[list[tuple[float, Facility]]] = []
        for choices in self.choices:
            priced = []
            for base in choices.bases:
                alone = self.component.solve_entity(choices, base, (), self.caps)
                if alone is not None:
                    priced.append((alone.dollars, base))
            if not priced:
                return None
            self.ranked.append(sorted(priced, key=lambda each: (round(each[0] / _TIE), each[1].rank)))
        self.least = [ranked[0][0] for ranked in self.ranked]
        self._descend({}, 0.0, 0.0, 0.0)
        if self.best is not None and self.nodes > NODE_BUDGET:
            return replace(self.best, proven=False)
        return self.best

    def _descend(self, bases: dict[type[Entity], Facility], spent: float, grouped: float, moved: float) -> None:
        """``grouped``: what the groups' reads cost. ``moved``: the most that putting one of them into an index adds."""
        self.nodes += 1
        at = len(bases)
        limit = _FAR if self.best is None else self.best.dollars
        if spent + grouped + moved + sum(self.least[at:]) >= limit - _TIE or (self.nodes > NODE_BUDGET and self.best):
            return
        if at == len(self.choices):
            self._place_groups(bases)
            return
        entity = self.choices[at].entity
        for dollars, base in self.ranked[at]:
            if self.best is not None and spent + dollars + grouped + moved + sum(self.least[at + 1 :]) >= self.best.dollars:
                break  # those that follow cost no less
            extended = {**bases, entity: base}
            reads, indexed = self._groups_floor(entity, extended)
            if reads < _FAR and indexed < _FAR:
                self._descend(extended, spent + dollars, grouped + reads, max(moved, indexed))

    def _groups_floor(self, entity: type[Entity], bases: dict[type[Entity], Facility]) -> tuple[float, float]:
        """The least that the groups cost which are settled now that this entity's key is: reading, and having one in an index.

        Two groups may share what they open, so of the second only the largest counts."""
        total = most = 0.0
        for group in self.component.groups:
            entities = {member.entity for member in group.members}
            if entity not in entities or not entities <= bases.keys():
                continue
            met = self.component.in_base(group, bases)
            if met is not None:
                total += met.dollars
            else:
                options = self.component.in_indexes(group)
                total += min((each.dollars for each in options), default=_FAR)
                most = max(most, min((self._moving(each, bases) for each in options), default=_FAR))
        return total, most

    def _moving(self, placed: GroupDesign, bases: dict[type[Entity], Facility]) -> float:
        """What it adds to the entities' own cost to be in this index."""
        added = 0.0
        for choices in self.choices:
            for facility in placed.facilities:
                if facility.path.entity is choices.entity:
                    alone = self.component.solve_entity(choices, bases[choices.entity], (), self.caps)
                    moved = self.component.solve_entity(choices, bases[choices.entity], (facility,), self.caps)
                    if moved is None or alone is None:
                        return _FAR
                    added += moved.dollars - alone.dollars
        return added

    def _place_groups(self, bases: dict[type[Entity], Facility]) -> None:
        """Each group in the base keys if they allow it, which costs nothing to keep; else every index it could be in is tried."""
        options = []
        for group in self.component.groups:
            met = self.component.in_base(group, bases)
            options.append([met] if met is not None else self.component.in_indexes(group))
        for placed in product(*options):
            self._finish(bases, placed)

    def _finish(self, bases: dict[type[Entity], Facility], placed: Sequence[GroupDesign]) -> None:
        forced: dict[type[Entity], dict[Facility, None]] = {}
        for each in placed:
            if not each.in_base:
                for facility in each.facilities:
                    forced.setdefault(facility.path.entity, {})[facility] = None
        total = sum(each.dollars for each in placed)
        designs: dict[type[Entity], EntityDesign] = {}
        for choices in self.choices:
            wanted = tuple(sorted(forced.get(choices.entity, ()), key=lambda each: each.rank))
            design = self.component.solve_entity(choices, bases[choices.entity], wanted, self.caps)
            if design is None:
                return
            designs[choices.entity] = design
            total += design.dollars
            if self.best is not None and total >= self.best.dollars - _TIE:
                return
        used = slots_needed([design.opened for design in designs.values()], [each.facilities for each in placed])
        if _within(used, self.caps):
            proven = all(design.proven for design in designs.values())
            self.best = ComponentDesign(designs, tuple(placed), total, used, proven)


# --- a whole table ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableDesign:
    components: tuple[ComponentDesign, ...]
    dollars: float
    caps: Caps
    proven: bool


def search(components: list[Component]) -> TableDesign:
    """The cheapest design of a table. Every component has at least one: refusals come before the search."""
    floor = sum(component.freest.dollars for component in components)
    most = _largest(component.freest.caps for component in components)
    best: TableDesign | None = None
    # More indexes than the freest design has cannot pay; fewer, or others, may.
    total = sum(most)
    sizes: list[Caps] = [(keys_only, all_) for all_ in range(total + 1) for keys_only in range(total + 1 - all_)]
    for caps in sorted(sizes, key=lambda caps: (-sum(caps), -caps[1])):
        charge = INDEX_DOLLARS * sum(caps)
        if best is not None and floor + charge >= best.dollars - _TIE:
            continue
        found = _all_within(components, caps, floor, _FAR if best is None else best.dollars - charge)
        if found is None:
            continue
        used = _largest(design.caps for design in found)
        dollars = sum(design.dollars for design in found) + INDEX_DOLLARS * sum(used)
        if best is None or dollars < best.dollars - _TIE:
            best = TableDesign(found, dollars, used, all(design.proven for design in found))
    assert best is not None
    return replace(best, proven=best.proven and not any(component.is_cut_off for component in components))


def _all_within(
    components: list[Component], caps: Caps, floor: float, limit: float
) -> tuple[ComponentDesign, ...] | None:
    """Every component with so many indexes; None as soon as that is impossible or dearer than the limit."""
    found: dict[int, ComponentDesign] = {}
    total = floor
    # Those that want the most indexes first: they show soonest that there are too few.
    for at in sorted(range(len(components)), key=lambda at: -sum(components[at].freest.caps)):
        design = components[at].solve(caps)
        if design is None:
            return None
        found[at] = design
        total += design.dollars - components[at].freest.dollars
        if total >= limit + _TIE:
            return None
    return tuple(found[at] for at in range(len(components)))


def _largest(caps: Iterable[Caps]) -> Caps:
    pairs = list(caps)
    return max((each[0] for each in pairs), default=0), max((each[1] for each in pairs), default=0)


def components_of(choices: list[Choices], groups: list[Group], costing: Costing, labels: Labels) -> list[Component]:
    """Entities that some pattern reads together belong together."""
    joined: dict[type[Entity], set[type[Entity]]] = {each.entity: {each.entity} for each in choices}
    for group in groups:
        merged: set[type[Entity]] = set().union(*(joined[member.entity] for member in group.members))
        for entity in merged:
            joined[entity] = merged
    ordered = sorted(choices, key=lambda each: info(each.entity).name)
    found: list[Component] = []
    seen: set[type[Entity]] = set()
    for each in ordered:
        if each.entity not in seen:
            members = joined[each.entity]
            seen |= members
            inside = [group for group in groups if group.members[0].entity in members]
            found.append(
                Component(
                    [one for one in ordered if one.entity in members],
                    sorted(inside, key=lambda group: group.name),
                    costing,
                    labels,
                )
            )
    return found

"""The search: the cheapest layout of one table, over all its entities at once.

The cost of a layout, in dollars a month, is the sum of

- *reads*: for each pattern, its rate times the read units of one call. A call pays for all entries
  that the key finds, not only for those the filter keeps. Their size is billed in steps of 4 KB, at
  least one, at half the price if eventually consistent. Each shard is one call. Where an index does
  not hold the whole item, each wanted item costs one more read.
- *writes*: for each path in an index, every create and delete of the entity writes an entry of the
  projected size, in steps of 1 KB. An update writes one entry if it changes something projected,
  and two (delete and insert) if it changes the key. A sparse path pays for the share of items it
  holds. Writing the table itself costs the same in every layout and is left out.
- *storage*: the key strings on the items, and each index entry with its 100 bytes of overhead.
- *burdens*: small charges that no bill shows, which decide ties. Each index has one, so that the
  layout with fewer indexes wins. There is also one for a base key that the identity alone does not
  determine, and one for a filter that a key could replace. A fourth is for a partition key with few
  values, which cannot spread its traffic.

A layout has one base key for each entity, a set of further paths, and a placement for each need (a
path and the place of its keys, see ``cost_model``). Generic string keys let entities share an index
if they want the same projection: a table needs as many such indexes as the entity with the most
paths in them. Native keys, INCLUDE projections and local indexes are not shared. A pattern over
several entities is served when all their base keys have the same partition, or when all of them are
placed in one index with the same partition. It can also be served apart, with one request for each
entity: then each entity has one more need, a leg of the pattern.

How the search works. All numbers of shared indexes that could pay off are tried. Once these numbers
are fixed, entities depend on each other only through patterns over several entities. So each
connected component is solved alone. Base keys are chosen entity by entity. With its base key given,
each entity's needs are assigned to placements. Both searches are branch and bound. The bound of an
assignment divides the price of a placement among all needs that could use it. Each need then counts
with the placement that is cheapest for it. No assignment costs less.

The result is the optimum of this model, with two exceptions. The search may be cut off after
``NODE_BUDGET`` steps (``ASSIGNMENT_BUDGET`` for one entity); ``proven`` is then False. And patterns
over several entities, all placed in indexes, may need more indexes than any one entity has paths;
``proven`` does not show this.

Costs that differ by less than a millionth of a cent are ties. A tie goes to the first candidate in
a fixed order, so equal inputs lead to equal layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.entity import Entity, info
from stator.design.planner.assignment import (
    FAR,
    TIE,
    UNCAPPED,
    Assignment,
    Caps,
    EntityLayout,
    shared_by,
    within,
)
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import WRITE_LIMIT, CostModel, Placement, shards_for
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.keys.key_parts import partition_parts
from stator.design.planner.needs.need import Need, TogetherGroup, is_optional
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.candidate_paths import (
    by_label,
    group_choices,
    group_inverts,
    is_ordered,
)
from stator.design.planner.slots import slots_needed
from stator.design.planner.weights import APART_DOLLARS, INDEX_DOLLARS, READ_UNIT_DOLLARS

NODE_BUDGET: Final = 200_000


@dataclass(frozen=True)
class GroupLayout:
    """How a pattern over several entities is served: by base keys, by one index, or apart.

    Apart means one request for each entity. Then ``placements`` is empty, and ``dollars`` has only
    the small charge for more requests: the layouts of the entities include the cost of the reads.
    """

    group: TogetherGroup
    placements: tuple[Placement, ...]
    dollars: float

    @property
    def is_apart(self) -> bool:
        return not self.placements

    @property
    def in_base(self) -> bool:
        return not self.is_apart and self.placements[0].is_base

    @property
    def in_index(self) -> bool:
        return not self.is_apart and not self.placements[0].is_base


def apart_layout(group: TogetherGroup) -> GroupLayout:
    return GroupLayout(group, (), APART_DOLLARS * (len(group.members) - 1))


@dataclass(frozen=True)
class ComponentLayout:
    entities: dict[type[Entity], EntityLayout]
    groups: tuple[GroupLayout, ...]
    dollars: float
    caps: Caps
    proven: bool = True


@dataclass
class Component:
    """Entities that patterns read together, with their candidate keys and indexes."""

    choices: list[EntityChoices]
    groups: list[TogetherGroup]
    costs: CostModel
    labels: KeyLabels
    _memo: dict[tuple[object, ...], EntityLayout | None] = field(default_factory=dict)
    _solved: dict[Caps, ComponentLayout | None] = field(default_factory=dict)
    _options: dict[str, list[GroupLayout]] = field(default_factory=dict)
    _nodes: int = 0

    @property
    def is_cut_off(self) -> bool:
        return self._nodes > NODE_BUDGET

    # -- one entity

    def solve_entity(
        self,
        choices: EntityChoices,
        base: Placement,
        forced: tuple[Placement, ...],
        caps: Caps,
        apart: frozenset[str] = frozenset(),
    ) -> EntityLayout | None:
        apart &= {need.leg_of for need in choices.needs if need.leg_of is not None}
        key = (choices.entity, base, forced, caps, apart)
        if key not in self._memo:
            free = (
                self.solve_entity(choices, base, forced, UNCAPPED, apart)
                if caps != UNCAPPED
                else None
            )
            if free is not None and within(shared_by(free.opened), caps):
                self._memo[key] = free
            elif caps != UNCAPPED and free is None:
                self._memo[key] = None
            else:
                assignment = Assignment(choices, base, forced, caps, apart)
                self._memo[key] = assignment.solve()
                self._nodes += assignment.nodes
        return self._memo[key]

    # -- all of them

    def solve(self, caps: Caps) -> ComponentLayout | None:
        if caps not in self._solved:
            self._solved[caps] = self._cached(caps)
            # Past the budget, the layout found so far is used.
            if self._solved[caps] is None and not (self.is_cut_off and UNCAPPED in self._solved):
                self._solved[caps] = _BaseSearch(self, caps).solve()
        return self._solved[caps]

    @property
    def freest(self) -> ComponentLayout:
        """The cheapest layout if the number of shared indexes is not limited.

        No layout with a limit is cheaper.
        """
        found = self.solve(UNCAPPED)
        assert found is not None, "unserved patterns are refused before the search"
        return found

    def _cached(self, caps: Caps) -> ComponentLayout | None:
        free = self._solved.get(UNCAPPED)
        return free if free is not None and within(free.caps, caps) else None

    # -- patterns over several entities

    def in_base(
        self, group: TogetherGroup, bases: dict[type[Entity], Placement]
    ) -> GroupLayout | None:
        found = tuple(bases[member.entity] for member in group.members)
        if any(_is_native(each) for each in found) or not self.aligned(
            group, tuple(each.path for each in found)
        ):
            return None
        return GroupLayout(group, found, self._dollars(group, tuple(each.path for each in found)))

    def ways(self, group: TogetherGroup, bases: dict[type[Entity], Placement]) -> list[GroupLayout]:
        """Return the ways to serve a group with these base keys.

        One request for each entity ("apart") is always among them. Ways through an index are
        included only if the base keys do not serve the group.
        """
        met = self.in_base(group, bases)
        return [*([met] if met is not None else self.in_indexes(group)), apart_layout(group)]

    def in_indexes(self, group: TogetherGroup) -> list[GroupLayout]:
        """Return the ways to place a group in one index, cheapest reads first."""
        if group.name not in self._options:
            different = {each.placements: each for each in self._index_options(group)}
            self._options[group.name] = sorted(
                different.values(),
                key=lambda each: (each.dollars, [one.rank for one in each.placements]),
            )
        return self._options[group.name]

    def _index_options(self, group: TogetherGroup) -> Iterator[GroupLayout]:
        if any(member.consistent for member in group.members):
            return
        by_entity = {choices.entity: choices for choices in self.choices}
        yield from self._present_options(group, by_entity)
        for chosen in group_choices(group):
            alternatives = []
            for member in group.members:
                fields = group.partition_of(member.entity, chosen)
                partition = by_label(member.entity, fields, self.labels)
                sorts = {
                    path.sort
                    for path in _paths(by_entity[member.entity])
                    if path.partition == partition
                }
                sorts.add((str(member.order),) if is_ordered(member) else ())
                inverted = is_ordered(member) and group_inverts(group, self.labels) is True
                alternatives.append(
                    [
                        AccessPath(member.entity, partition, sort, inverted=inverted)
                        for sort in sorted(sorts)
                    ]
                )
            for paths in product(*alternatives):
                shards = shards_for(sum(map(self.costs.write_heat, paths)), WRITE_LIMIT)
                even = tuple(replace(path, shards=shards) for path in paths)
                if self.aligned(group, even):
                    found = tuple(Placement(path, "concatenated") for path in even)
                    for placement in found:
                        by_entity[placement.path.entity].price(placement)
                    yield GroupLayout(group, found, self._dollars(group, even))

    def _present_options(
        self, group: TogetherGroup, by_entity: dict[type[Entity], EntityChoices]
    ) -> Iterator[GroupLayout]:
        """Yield the ways to read a group from an index that exists already and holds every member.

        Such an index is handwritten, or is in the lock file.
        """
        present = [_present(by_entity[member.entity]) for member in group.members]
        for name in present[0]:
            found = tuple(each[name] for each in present if name in each)
            paths = tuple(each.path for each in found)
            if len(found) == len(present) and self.aligned(group, paths):
                for placement in found:
                    by_entity[placement.path.entity].price(placement)
                yield GroupLayout(group, found, self._dollars(group, paths))

    def aligned(self, group: TogetherGroup, paths: tuple[AccessPath, ...]) -> bool:
        """Whether one query of one partition returns the group's items in the requested order."""
        heads = set()
        inverts = group_inverts(group, self.labels) or False
        for member, path in zip(group.members, paths):
            if (
                path.constants
                or not path.partition
                or not set(path.partition) <= member.equal.keys()
            ):
                return False
            if is_ordered(member) and (
                path.sort[:1] != (member.order,) or path.inverted != inverts or path.turned
            ):
                return False
            if any(is_optional(info(path.entity), name) for name in path.sort):
                return False  # items without the field would be missing
            heads.add(self._head(member, path))
        return len(heads) == 1

    def _head(self, member: Need, path: AccessPath) -> tuple[str, ...]:
        """Return a tuple that is equal for two members whose queries read the same partition.

        It has an entry for each part of the partition key. A field is replaced by the source of the
        value that the pattern compares it with.
        """
        parts = partition_parts(path, self.labels)
        return tuple(
            f":{member.equal[part.name].same}"
            if part.kind == "field"
            else f"{part.value}{part.shards}"
            for part in parts
        )

    def _dollars(self, group: TogetherGroup, paths: tuple[AccessPath, ...]) -> float:
        units = self.costs.group_units(group, paths, consistent=group.members[0].consistent)
        return units * group.rps * MONTH_SECONDS * READ_UNIT_DOLLARS


def _is_native(placement: Placement) -> bool:
    """Whether the partition key is a field itself. Entities do not share such a partition."""
    written = placement.path.handwritten
    return placement.is_native or (written is not None and written.native_partition)


def _present(choices: EntityChoices) -> dict[str, Placement]:
    held = {
        name: each
        for name, each in choices.held.items()
        if each.kind == "concatenated" and each.projection == "ALL"
    }
    return held | {
        str(each.path.handwritten.index): each
        for each in choices.pinned
        if each.path.handwritten is not None
        and each.kind == "concatenated"
        and each.projection == "ALL"
        and not each.path.handwritten.native_partition
    }


def _paths(choices: EntityChoices) -> Iterable[AccessPath]:
    return dict.fromkeys(
        placement.path for placement in choices.secondary if not placement.path.constants
    )


# --- base keys ------------------------------------------------------------------------------------


class _BaseSearch:
    """The search in one component: a base key for each entity, and a place for each group."""

    def __init__(self, component: Component, caps: Caps) -> None:
        self.component = component
        self.caps = caps
        self.choices = component.choices
        self.best: ComponentLayout | None = None
        self.nodes = 0

    def solve(self) -> ComponentLayout | None:
        self.ranked: list[list[tuple[float, Placement]]] = []
        for choices in self.choices:
            priced = []
            for base in choices.bases:
                alone = self.component.solve_entity(choices, base, (), self.caps)
                if alone is not None:
                    priced.append((alone.dollars, base))
            if not priced:
                return None
            self.ranked.append(
                sorted(priced, key=lambda each: (round(each[0] / TIE), each[1].rank))
            )
        self.least = [ranked[0][0] for ranked in self.ranked]
        self._descend({}, 0.0, 0.0, 0.0)
        if self.best is not None and self.nodes > NODE_BUDGET:
            return replace(self.best, proven=False)
        return self.best

    def _descend(
        self, bases: dict[type[Entity], Placement], spent: float, grouped: float, moved: float
    ) -> None:
        """Choose the base keys of the remaining entities, by branch and bound.

        ``bases`` are the keys chosen so far, and ``spent`` is the cost of their entities.
        ``grouped`` is the least cost of reading the groups whose entities all have a key. ``moved``
        is the least cost of the index that the most expensive of these groups needs.
        """
        self.nodes += 1
        at = len(bases)
        limit = FAR if self.best is None else self.best.dollars
        if spent + grouped + moved + sum(self.least[at:]) >= limit - TIE or (
            self.nodes > NODE_BUDGET and self.best
        ):
            return
        if at == len(self.choices):
            self._place_groups(bases)
            return
        entity = self.choices[at].entity
        for dollars, base in self.ranked[at]:
            if (
                self.best is not None
                and spent + dollars + grouped + moved + sum(self.least[at + 1 :])
                >= self.best.dollars
            ):
                break  # the rest cost no less
            extended = {**bases, entity: base}
            reads, indexed = self._groups_floor(entity, extended)
            if reads < FAR and indexed < FAR:
                self._descend(extended, spent + dollars, grouped + reads, max(moved, indexed))

    def _groups_floor(
        self, entity: type[Entity], bases: dict[type[Entity], Placement]
    ) -> tuple[float, float]:
        """Return lower bounds for the cost of the groups that the last chosen base key completes.

        ``entity`` is the last entity that got a base key, and ``bases`` has all keys so far. The
        first bound is the cost of the groups' reads. The second is the cost of one index: groups
        may share an index, so only the most expensive one counts.
        """
        total = most = 0.0
        for group in self.component.groups:
            entities = {member.entity for member in group.members}
            if entity not in entities or not entities <= bases.keys():
                continue
            prices = [self._price(way, bases) for way in self.component.ways(group, bases)]
            reads = min(price[0] for price in prices)
            total += reads
            most = max(most, min(map(sum, prices)) - reads if reads < FAR else FAR)
        return total, most

    def _price(self, way: GroupLayout, bases: dict[type[Entity], Placement]) -> tuple[float, float]:
        """Return lower bounds for serving a group in this way: the reads, and the further cost.

        The further cost is what the layouts of the group's entities then cost in addition. It pays
        for indexes, which several groups may share. Both bounds are FAR if an entity cannot be laid
        out this way.
        """
        added = 0.0
        if way.in_base:
            return way.dollars, added
        apart = frozenset({way.group.name} if way.is_apart else ())
        for member in way.group.members:
            choices = next(each for each in self.choices if each.entity is member.entity)
            base = bases[member.entity]
            forced = tuple(each for each in way.placements if each.path.entity is member.entity)
            alone = self.component.solve_entity(choices, base, (), self.caps)
            moved = self.component.solve_entity(choices, base, forced, self.caps, apart)
            if moved is None or alone is None:
                return FAR, FAR
            added += moved.dollars - alone.dollars
        if way.in_index:
            return way.dollars, added
        reads = sum(
            self._cheapest_leg(way.group.name, member.entity) for member in way.group.members
        )
        return way.dollars + min(reads, added), max(0.0, added - reads)

    def _cheapest_leg(self, group: str, entity: type[Entity]) -> float:
        choices = next(each for each in self.choices if each.entity is entity)
        at = next(at for at, need in enumerate(choices.needs) if need.leg_of == group)
        prices = (use[at] for use in choices.use_dollars.values())
        return min(price for price in prices if price is not None)

    def _place_groups(self, bases: dict[type[Entity], Placement]) -> None:
        """Try every way to serve the groups with these base keys, and keep the cheapest layout."""
        options = [self.component.ways(group, bases) for group in self.component.groups]
        for placed in product(*options):
            self._finish(bases, placed)

    def _finish(self, bases: dict[type[Entity], Placement], placed: Sequence[GroupLayout]) -> None:
        forced: dict[type[Entity], dict[Placement, None]] = {}
        for each in placed:
            if each.in_index:
                for placement in each.placements:
                    forced.setdefault(placement.path.entity, {})[placement] = None
        apart = frozenset(each.group.name for each in placed if each.is_apart)
        total = sum(each.dollars for each in placed)
        layouts: dict[type[Entity], EntityLayout] = {}
        for choices in self.choices:
            wanted = tuple(sorted(forced.get(choices.entity, ()), key=lambda each: each.rank))
            layout = self.component.solve_entity(
                choices, bases[choices.entity], wanted, self.caps, apart
            )
            if layout is None:
                return
            layouts[choices.entity] = layout
            total += layout.dollars
            if self.best is not None and total >= self.best.dollars - TIE:
                return
        used = slots_needed(
            [layout.opened for layout in layouts.values()], [each.placements for each in placed]
        )
        if within(used, self.caps):
            proven = all(layout.proven for layout in layouts.values())
            self.best = ComponentLayout(layouts, tuple(placed), total, used, proven)


# --- a whole table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableLayout:
    components: tuple[ComponentLayout, ...]
    dollars: float
    caps: Caps
    proven: bool


def search(components: list[Component]) -> TableLayout:
    """Return the cheapest layout of a table.

    The planner has already refused patterns that cannot be served, so every component has a layout.
    """
    floor = sum(component.freest.dollars for component in components)
    most = _largest(component.freest.caps for component in components)
    best: TableLayout | None = None
    # More indexes than the freest layout has cannot pay off; fewer, or others, may.
    total = sum(most)
    sizes: list[Caps] = [
        (keys_only, all_) for all_ in range(total + 1) for keys_only in range(total + 1 - all_)
    ]
    for caps in sorted(sizes, key=lambda caps: (-sum(caps), -caps[1])):
        charge = INDEX_DOLLARS * sum(caps)
        if best is not None and floor + charge >= best.dollars - TIE:
            continue
        found = _all_within(components, caps, floor, FAR if best is None else best.dollars - charge)
        if found is None:
            continue
        used = _largest(layout.caps for layout in found)
        dollars = sum(layout.dollars for layout in found) + INDEX_DOLLARS * sum(used)
        if best is None or dollars < best.dollars - TIE:
            best = TableLayout(found, dollars, used, all(layout.proven for layout in found))
    assert best is not None
    return replace(
        best, proven=best.proven and not any(component.is_cut_off for component in components)
    )


def _all_within(
    components: list[Component], caps: Caps, floor: float, limit: float
) -> tuple[ComponentLayout, ...] | None:
    """Return a layout of each component that uses at most ``caps`` shared indexes.

    ``floor`` is the total cost with any number of shared indexes. Returns None if a component has
    no such layout, or if the total cost exceeds ``limit``.
    """
    found: dict[int, ComponentLayout] = {}
    total = floor
    # Components that want the most indexes come first: they fail soonest.
    for at in sorted(range(len(components)), key=lambda at: -sum(components[at].freest.caps)):
        layout = components[at].solve(caps)
        if layout is None:
            return None
        found[at] = layout
        total += layout.dollars - components[at].freest.dollars
        if total >= limit + TIE:
            return None
    return tuple(found[at] for at in range(len(components)))


def _largest(caps: Iterable[Caps]) -> Caps:
    pairs = list(caps)
    return max((each[0] for each in pairs), default=0), max((each[1] for each in pairs), default=0)


def components_of(
    choices: list[EntityChoices], groups: list[TogetherGroup], costs: CostModel, labels: KeyLabels
) -> list[Component]:
    """Return the groups of entities that are connected by patterns that read them together."""
    joined: dict[type[Entity], set[type[Entity]]] = {each.entity: {each.entity} for each in choices}
    for group in groups:
        merged: set[type[Entity]] = set().union(
            *(joined[member.entity] for member in group.members)
        )
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
                    costs,
                    labels,
                )
            )
    return found

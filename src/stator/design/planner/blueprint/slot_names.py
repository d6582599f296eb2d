"""Slot names: the index and the attributes that each chosen path is written into.

Shared indexes are GSI1, GSI2, ... with the attributes GSI1PK and GSI1SK; local ones LSI1, ....
Handwritten indexes keep their names, and generated names avoid them. A path that the lock file has
in an index stays in that index. ``names=`` of the design renames indexes and attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from stator.design.entities.entity import Entity, info
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.blueprint.key_conditions import Slot
from stator.design.planner.cost_model import Placement, Projection
from stator.design.planner.search import TableLayout
from stator.design.planner.slots import colour
from stator.errors import DesignError
from stator.model.limits import GLOBAL_INDEXES


class SlotNames:
    """The index and attribute names for each base key and each path in an index.

    ``base`` has the slot of each entity's base key; ``slots`` has the slot of each placement in an
    index.
    """

    def __init__(
        self,
        found: TableLayout,
        layouts: Mapping[type[Entity], EntityLayout],
        own_names: Mapping[str, str],
        held: Mapping[Placement, str],
        taken: frozenset[str],
    ) -> None:
        """Name the slots of a layout.

        ``held`` maps each placement that the lock file already has in an index to the index's name.
        ``taken`` has the names of all indexes in the lock file.
        """
        self.found = found
        self.own_names = own_names
        self.base = {entity: self._base_slot(each.base) for entity, each in layouts.items()}
        self.slots: dict[Placement, Slot] = {}
        generic = {own: name for name, own in own_names.items()}
        self.held = {placement: generic.get(name, name) for placement, name in held.items()}
        opened = [placement for each in layouts.values() for placement in each.opened]
        written = {
            str(each.path.handwritten.index) for each in opened if each.path.handwritten is not None
        }
        self.taken = written | {generic.get(name, name) for name in taken}
        self._name_all(opened)

    def _own(self, generic: str) -> str:
        return self.own_names.get(generic, generic)

    def _base_slot(self, base: Placement) -> Slot:
        if base.kind == "native base":
            return Slot(None, "table", base.path.partition, base.path.sort, native=True)
        return self._written(
            Slot(None, "table", (self._own("PK"),), (self._own("SK"),), native=False), base
        )

    @staticmethod
    def _written(slot: Slot, placement: Placement) -> Slot:
        """Return the slot with the attribute names that the user gave in a handwritten key."""
        by_hand = placement.path.handwritten
        if by_hand is None:
            return slot
        names = () if by_hand.sort is None else by_hand.sort.names
        return replace(
            slot,
            partition=by_hand.partition.names or slot.partition,
            sort=() if by_hand.is_partition_only else names or slot.sort,
        )

    def _name_all(self, opened: list[Placement]) -> None:
        """Name the slots of all placements. Shared indexes get the first numbers.

        ``opened`` are all placements in indexes. Handwritten and locked indexes keep their names.
        """
        fresh = {kind: self._free_names(kind) for kind in ("GSI", "LSI")}
        for projection in ("ALL", "KEYS_ONLY"):
            self._name_shared(projection, fresh["GSI"])
        joined: list[tuple[str, list[Placement]]] = []
        for placement in sorted(
            {each for each in opened if each not in self.slots}, key=lambda each: each.rank
        ):
            kind = "LSI" if placement.kind == "local" else "GSI"
            name = self._fixed_name(placement)
            if name is None and placement.kind == "concatenated":
                name = next((each for each, some in joined if _joins(placement, some)), None)
            is_new = name is None
            name = name or next(fresh[kind])
            if is_new and placement.kind == "concatenated":
                joined.append((name, []))
            for each, some in joined:
                if each == name:
                    some.append(placement)
            self.slots[placement] = self._slot(kind, name, placement)
        self._check_count()

    def _fixed_name(self, placement: Placement) -> str | None:
        """Return the name of a handwritten or locked index, or None."""
        if placement.path.handwritten is not None:
            return str(placement.path.handwritten.index)
        return self.held.get(placement)

    def _check_count(self) -> None:
        """Refuse more indexes than DynamoDB allows.

        Locked paths keep their index, so a table may need more indexes than a fresh plan would.
        """
        names = {slot.index for slot in self.slots.values() if slot.kind == "GSI"}
        if len(names) > GLOBAL_INDEXES:
            raise DesignError(
                f"the table needs {len(names)} global indexes, because the paths in the lock "
                f"file keep their indexes; DynamoDB allows {GLOBAL_INDEXES}",
                hint="drop a pattern that needs an index of its own, or try stator plan --fresh",
            )

    def _name_shared(self, projection: Projection, fresh: Iterator[str]) -> None:
        parts = [
            [
                each
                for one in component.entities.values()
                for each in one.opened
                if _shares(each, projection)
            ]
            for component in self.found.components
        ]
        present = sorted(
            {self.held[each] for part in parts for each in part if each in self.held}, key=numbered
        )
        colours: dict[Placement, int] = {}
        for component, part in zip(self.found.components, parts):
            groups = [group.placements for group in component.groups if group.in_index]
            fixed = {each: present.index(self.held[each]) for each in part if each in self.held}
            colours |= colour(part, groups, fixed, free=len(present))
        names = present + [
            next(fresh) for _ in range(len(present), max(colours.values(), default=-1) + 1)
        ]
        for placement, chosen in colours.items():
            self.slots[placement] = self._slot("GSI", names[chosen], placement)

    def _free_names(self, kind: str) -> Iterator[str]:
        """Yield the free index names (GSI1, GSI2, ...).

        A name is free if neither the name nor its key attributes belong to a handwritten index or
        to an index in the lock file.
        """
        taken = {own for name in self.taken for own in self._names_of(name)}
        names = (f"{kind}{at}" for at in count(1))
        return (
            name for name in names if name not in self.taken and not taken & self._names_of(name)
        )

    def _names_of(self, index: str) -> set[str]:
        return {self._own(index), self._own(f"{index}PK"), self._own(f"{index}SK")}

    def _slot(self, kind: str, name: str, placement: Placement) -> Slot:
        slot = Slot(
            self._own(name),
            kind,
            (self._own(f"{name}PK"),),
            (self._own(f"{name}SK"),),
            native=False,
        )
        path = placement.path
        if placement.is_native:
            return replace(slot, partition=path.partition, sort=path.sort, native=True)
        slot = self._written(slot, placement)
        return replace(slot, partition=self.base[path.entity].partition) if kind == "LSI" else slot


def _joins(placement: Placement, others: list[Placement]) -> bool:
    """Whether a placement can join an INCLUDE index with placements of other entities.

    The index projects the fields that any of them includes. The placement is refused if an entity
    also has a field that only another entity includes, because its entries would become larger.
    """
    members = [*others, placement]
    wanted = {name for each in members for name in each.included}
    return placement.path.entity not in {each.path.entity for each in others} and all(
        wanted & info(each.path.entity).fields.keys() == set(each.included) for each in members
    )


def _shares(placement: Placement, projection: Projection) -> bool:
    return placement.shares_slot and placement.projection == projection


def numbered(name: str) -> tuple[int, str]:
    """Return a sort key that puts GSI2 before GSI10."""
    return len(name), name

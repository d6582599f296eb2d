"""Which attributes and index each chosen path is written into, by name.

Overloaded indexes are GSI1, GSI2 ... with GSI1PK and GSI1SK; local ones LSI1 ...; those written by hand keep their names, and generated
names keep out of their way. ``names=`` of the design renames any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count, islice

from stator.design.assignment import EntityDesign
from stator.design.costing import Facility
from stator.design.entity import Entity
from stator.design.search import TableDesign
from stator.design.slots import colour
from stator.design.steps import Slot


class SlotNames:
    """``base`` has a slot for the key of each entity, ``slots`` one for each index path."""

    def __init__(
        self, found: TableDesign, designs: Mapping[type[Entity], EntityDesign], own_names: Mapping[str, str]
    ) -> None:
        self.found = found
        self.designs = designs
        self.own_names = own_names
        self.base = {entity: self._base_slot(each.base) for entity, each in designs.items()}
        self.slots: dict[Facility, Slot] = {}
        self._number_slots()

    def _own(self, generic: str) -> str:
        return self.own_names.get(generic, generic)

    def _base_slot(self, base: Facility) -> Slot:
        if base.holding == "native base":
            return Slot(None, "table", base.path.partition, base.path.sort, native=True)
        return Slot(None, "table", (self._own("PK"),), (self._own("SK"),), native=False)

    def _number_slots(self) -> None:
        """GSI1, GSI2 ... for what is shared, then for what is not; LSI1 ... for local indexes; by hand as written."""
        opened = [facility for each in self.designs.values() for facility in each.opened]
        number = 0
        written = {str(each.path.handwritten.index) for each in opened if each.path.handwritten is not None}
        for projection in ("ALL", "KEYS_ONLY"):
            colours: dict[Facility, int] = {}
            for component in self.found.components:
                inside = [each for one in component.entities.values() for each in one.opened]
                wanted = [each for each in inside if each.shares_slot and each.projection == projection]
                colours |= colour(wanted, [group.facilities for group in component.groups if not group.in_base])
            for facility, chosen in colours.items():
                self.slots[facility] = self._generic_slot("GSI", self._free_name("GSI", number + chosen + 1, written))
            number += max(colours.values(), default=-1) + 1
        rest = sorted({each for each in opened if each not in self.slots}, key=lambda each: each.rank)
        local = 0
        for facility in rest:
            if facility.path.handwritten is not None:
                self.slots[facility] = self._generic_slot("GSI", str(facility.path.handwritten.index))
            elif facility.holding == "local":
                local += 1
                slot = self._generic_slot("LSI", self._free_name("LSI", local, written))
                self.slots[facility] = replace(slot, partition=self.base[facility.path.entity].partition)
            else:
                number += 1
                slot = self._generic_slot("GSI", self._free_name("GSI", number, written))
                if facility.is_native:
                    path = facility.path
                    slot = replace(slot, partition=path.partition, sort=path.sort, native=True)
                self.slots[facility] = slot

    def _free_name(self, kind: str, number: int, written: set[str]) -> str:
        """The name with this number among those that no index written by hand has, nor has its attributes."""
        taken = {own for name in written for own in self._names_of(name)}
        free = (name for at in count(1) if not taken & self._names_of(name := f"{kind}{at}") and name not in written)
        return next(islice(free, number - 1, None))

    def _names_of(self, index: str) -> set[str]:
        return {self._own(index), self._own(f"{index}PK"), self._own(f"{index}SK")}

    def _generic_slot(self, kind: str, name: str) -> Slot:
        partition, sort = self._own(f"{name}PK"), self._own(f"{name}SK")
        return Slot(self._own(name), kind, (partition,), (sort,), native=False)

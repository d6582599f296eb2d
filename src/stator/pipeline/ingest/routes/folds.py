"""Folds: many events of a key become one update of its item.

A fold's function changes a recorder, as in ``with db.update(...)``. It runs once for each event;
the recorded actions of the events are then combined into one guarded update:

    total.tests += 1            added up
    total.regions.add("eu")     united
    total.last = test.mbps      the last one wins

Only such actions can be combined without reading the item. Others are refused when the function
records them.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from stator.errors import RequestRefused
from stator.model.values import Item, Value
from stator.model.wide_numbers import EXACT
from stator.tables.schema.entity_map import EntityMap
from stator.tables.writes.recorder import Members, RecordedAction, Recording, Sum


@dataclass(slots=True)
class FoldedChanges:
    """The combined actions of events: attributes to set, numbers to add, members, removals."""

    assigned: Item = field(default_factory=dict)
    added: dict[str, Decimal] = field(default_factory=dict)
    united: Item = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    starts: dict[str, Decimal] = field(default_factory=dict)
    """The value from which a sum starts if the item has none."""

    def add(self, recording: Recording) -> bool:
        """Combine the actions of one more event.

        Returns False, and changes nothing, if they cannot be combined with the earlier ones: a
        field was set before and is added to now. The event then needs an update of its own.
        """
        names = [str(path[0]) for path in recording.actions]
        actions = list(recording.actions.values())
        for name, action in zip(names, actions):
            is_relative = isinstance(action.value, (Sum, Members))
            if is_relative and (name in self.assigned or name in self.removed):
                return False
            known = self.united.get(name)
            if (
                isinstance(action.value, Members)
                and known
                and action.value.value.keys() != known.keys()
            ):
                return False
        for name, action in zip(names, actions):
            self._combine(name, action)
        return True

    def _combine(self, name: str, action: RecordedAction) -> None:
        value = action.value
        if isinstance(value, Sum):
            amount = Decimal(value.value["N"])
            before = self.added.get(name, Decimal(0))
            self.added[name] = (EXACT.add if value.sign == "+" else EXACT.subtract)(before, amount)
            self.starts[name] = Decimal(0 if value.start is None else value.start["N"])
        elif isinstance(value, Members):
            [(kind, members)] = value.value.items()
            known = self.united.get(name, {kind: []})[kind]
            self.united[name] = {kind: sorted({*known, *members})}
        else:
            for earlier in (self.assigned, self.added, self.united):
                earlier.pop(name, None)
            self.removed.discard(name)
            if value is None:
                self.removed.add(name)
            else:
                self.assigned[name] = value

    def created(self, item: Item) -> Item:
        """Return a new item with the changes: ``item`` has the defaults."""
        made = {name: value for name, value in item.items() if name not in self.removed}
        made |= self.assigned
        for name, amount in self.added.items():
            before = Decimal(item[name]["N"]) if name in item else self.starts[name]
            made[name] = number_value(EXACT.add(before, amount))
        for name, value in self.united.items():
            [(kind, members)] = value.items()
            before_members = item[name][kind] if name in item else []
            made[name] = {kind: sorted({*before_members, *members})}
        return made

    def start_sums(self, missing: Collection[str]) -> None:
        """Set these attributes to their sums instead of adding: the item lacks them."""
        for name in missing:
            self.assigned[name] = number_value(EXACT.add(self.starts[name], self.added.pop(name)))


def number_value(number: Decimal) -> Value:
    """Return a number as an attribute value. Trailing zeros do not count as digits."""
    return {"N": str(EXACT.normalize(number))}


def check_foldable(of: EntityMap, recording: Recording, keyed: AbstractSet[Any]) -> None:
    """Raise RequestRefused unless the recorded actions can be combined with those of other events.

    ``keyed`` are the fields that keys of the item contain.
    """
    for path, action in recording.actions.items():
        shown = recording.shown(path)
        value = action.value
        if len(path) > 1:
            raise RequestRefused(
                f"a fold cannot change {shown}, a part of a field", hint="fold whole fields"
            )
        if isinstance(value, Members) and value.out:
            raise RequestRefused(
                f"a fold cannot remove members of {shown}", hint="add members, or set the field"
            )
        is_plain = value is None or isinstance(value, (dict, Sum, Members))
        if not is_plain:
            raise RequestRefused(
                f"a fold cannot compute {shown}",
                hint="a fold adds to numbers, adds members to sets, and sets fields",
            )
        if not keyed.isdisjoint(path):
            raise RequestRefused(
                f"a fold cannot change {shown}: a key of {of.name} contains the field",
                hint="key the pattern by fields that stay the same, or use a handler",
            )

"""What a guarded write costs, for ``print(writer.explain(write))``.

AWS bills a refused PutItem like a write. It does not document whether it bills a refused statement
of a batch. The figures here assume that it does, so they are upper bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from stator.design.capacity_units import read_units, write_units
from stator.expr.names import parse_with_names
from stator.expr.parser import parse_condition
from stator.expr.tree import attribute_names
from stator.model.values import Item, item_size
from stator.tables.writes.guarded.guarded_write import GuardedDelete, GuardedPut, GuardedWrite


@dataclass(frozen=True, slots=True)
class GuardedPrice:
    """The units of one guarded write, by its outcome.

    ``applied`` includes one write in each index that projects all attributes. ``refused`` is the
    cost of a statement whose guard condition is false; it changes neither indexes nor streams.
    ``read`` is the cost of the strong read after a refusal. ``guard_bytes`` are the bytes of the
    guard's attributes in the item. ``stream_records`` is the number of records that the applied
    write adds to a stream.
    """

    size_bytes: int
    guard_bytes: int
    applied: int
    refused: int
    read: float
    stream_records: int

    def __str__(self) -> str:
        lines = (
            ("new item", f"{self.applied} write units"),
            ("replaced item", f"{self.applied + self.refused} write units, the refused INSERT"),
            ("", f"included; {self.applied} if the key was written lately"),
            ("stale insert", f"{self.refused} write units"),
            ("other stale write", f"{2 * self.refused} write units and {self.read:g} read units"),
            ("stream records", f"{self.stream_records}; none for a stale write"),
        )
        title = f"a guarded write of {self.size_bytes:,} bytes, {self.guard_bytes} for its guard"
        return "\n".join([title, *(f"  {name:<20}{figures}" for name, figures in lines)])


def refused_statements(write: GuardedWrite) -> int:
    """Return how many statements of a write are refused if an item exists and the guard is false.

    A guard that only tests the item's absence is answered by the refused INSERT. Any other guard
    costs a refused UPDATE as well.
    """
    return 1 if write.guard.case(write.key_names).where is False else 2


def price(write: GuardedWrite, *, whole_indexes: int = 0, has_stream: bool = False) -> GuardedPrice:
    """Return the price of a write. ``whole_indexes`` counts indexes that project all attributes."""
    size = write.size
    units = write_units(size)
    item: Item = {}
    if isinstance(write, GuardedPut):
        size = item_size(write.item)
        units, item = write_units(size), write.item
    elif not isinstance(write, GuardedDelete):
        item = {**write.assigned, **write.added, **write.united}
    condition = parse_with_names(parse_condition, write.guard.text, write.guard.names)
    guards = attribute_names(condition.tree).difference(write.key_names)
    return GuardedPrice(
        size_bytes=size,
        guard_bytes=item_size({name: item[name] for name in guards if name in item}),
        applied=units * (1 + whole_indexes),
        refused=units,
        read=read_units(size, consistent=True),
        stream_records=int(has_stream),
    )

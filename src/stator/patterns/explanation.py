"""The layout and cost of a pattern object, for ``print(counter.explain())``."""

from __future__ import annotations

from dataclasses import dataclass

from stator.tables.schema import Place


def item_layout(place: Place, partition: str, sort: str, attributes: str = "") -> str:
    """Return one line of ``PatternExplanation.layout``: the key of an item, and its content."""
    line = f"{place.partition} {partition}  {place.sort} {sort}"
    return f"{line}  {attributes}" if attributes else line


@dataclass(frozen=True, slots=True)
class OperationCost:
    """One operation of a pattern, with its requests and the units they consume for small items."""

    operation: str
    requests: str
    read_units: float = 0.0
    write_units: float = 0.0
    note: str = ""

    def __str__(self) -> str:
        units = [
            f"{amount:g} {kind} unit{'' if amount == 1 else 's'}"
            for amount, kind in ((self.read_units, "read"), (self.write_units, "write"))
            if amount
        ]
        note = f" ({self.note})" if self.note else ""
        return f"  {self.operation}: {self.requests}; {' and '.join(units) or 'nothing'}{note}"


@dataclass(frozen=True, slots=True)
class PatternExplanation:
    """The items, costs and limits of a pattern object; ``layout`` shows the keys of its items."""

    name: str
    layout: tuple[str, ...]
    costs: tuple[OperationCost, ...]
    beware: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.name, *(f"  items    {line}" for line in self.layout), *map(str, self.costs)]
        return "\n".join([*lines, *(f"  beware   {line}" for line in self.beware)])

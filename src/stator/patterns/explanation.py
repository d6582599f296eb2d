"""The layout and cost of a pattern object, for ``print(counter.explain())``."""

from __future__ import annotations

from dataclasses import dataclass

from stator.design.plan.html_table import html_facts
from stator.tables.schema.place import Place


def item_layout(place: Place, partition: str, sort: str, attributes: str = "") -> str:
    """Return one line of ``PatternExplanation.layout``: the key of an item and its attributes."""
    line = f"{place.partition} {partition}  {place.sort} {sort}"
    return f"{line}  {attributes}" if attributes else line


@dataclass(frozen=True, slots=True)
class OperationCost:
    """The cost of one operation of a pattern object, such as ``add`` of a counter.

    ``requests`` names the requests it sends; the units are those of small items.
    """

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
    """The items that a pattern object stores and the cost of its operations; ``print`` shows both.

    ``layout`` shows the keys of its items, one line for each kind of item. ``beware`` lists limits
    and dangers.
    """

    name: str
    layout: tuple[str, ...]
    costs: tuple[OperationCost, ...]
    beware: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Return the layout, the costs and the dangers as an HTML table for a notebook."""
        return html_facts(
            self.name,
            [
                *(("items", line) for line in self.layout),
                *(("operation", str(each).strip()) for each in self.costs),
                *(("beware", line) for line in self.beware),
            ],
        )

    def __str__(self) -> str:
        lines = [self.name, *(f"  items    {line}" for line in self.layout), *map(str, self.costs)]
        return "\n".join([*lines, *(f"  beware   {line}" for line in self.beware)])

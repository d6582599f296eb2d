"""What a pattern object costs, in words and units: ``print(counter.explain())``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperationCost:
    """One operation of a pattern: the requests it makes, and what they consume for items of the size that is usual."""

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
        return f"  {self.operation}: {self.requests}; {' and '.join(units) or 'nothing'}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True, slots=True)
class PatternExplanation:
    """``layout`` shows the keys of the items behind the pattern."""

    name: str
    layout: tuple[str, ...]
    costs: tuple[OperationCost, ...]
    beware: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.name, *(f"  items    {line}" for line in self.layout), *map(str, self.costs)]
        return "\n".join([*lines, *(f"  beware   {line}" for line in self.beware)])

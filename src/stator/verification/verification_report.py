"""The result of ``verify``: a row for each pattern, as frozen data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

MOST_OFF: Final = 0.25
"""An estimate may differ from the measured units by this part of them."""


@dataclass(frozen=True, slots=True)
class PlaceUnits:
    """The units of a call in one place: a table, or an index as ``table / index``."""

    place: str
    estimated: float
    measured: float


@dataclass(frozen=True, slots=True)
class VerificationRow:
    """One pattern: the plan's estimate and the measured average of a call.

    Units are read units for a read and write units for a write. ``read_units`` is what a write
    reads first, such as the old value of a unique field. ``extrapolated`` says that the items under
    the key are more than the budget, so that two smaller sizes were measured. ``guesses`` are the
    assumptions about numbers that the design does not declare. ``milliseconds`` is the time the
    embedded engine took, in this process.
    """

    pattern: str
    kind: Literal["read", "write"]
    estimated_units: float
    measured_units: float
    places: tuple[PlaceUnits, ...]
    items_read: float
    items_returned: float
    pages: float
    requests: float
    milliseconds: float
    calls: int
    items_stored: int
    extrapolated: bool = False
    read_units: float = 0.0
    guesses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def off(self) -> float:
        """The difference as a part of the measured units: 0.5 is an estimate half too high."""
        if self.measured_units == 0:
            return 0.0 if self.estimated_units == 0 else float("inf")
        return self.estimated_units / self.measured_units - 1

    @property
    def ok(self) -> bool:
        """Whether the estimate is off by at most a quarter."""
        return abs(self.off) <= MOST_OFF + 1e-9

    @property
    def unit(self) -> str:
        """The unit of the row's figures: RCU for a read, WCU for a write."""
        return "RCU" if self.kind == "read" else "WCU"


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """All rows of a design, reads first."""

    design: str
    rows: tuple[VerificationRow, ...]
    most_items: int
    items_stored: int
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether no estimate is off by more than a quarter."""
        return all(row.ok for row in self.rows)

    @property
    def failed(self) -> tuple[VerificationRow, ...]:
        """The rows whose estimate is off by more than a quarter."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def guesses(self) -> tuple[str, ...]:
        """The guesses behind all estimates, each once."""
        return tuple(dict.fromkeys(guess for row in self.rows for guess in row.guesses))

    def row(self, pattern: str) -> VerificationRow:
        """Return the row of a pattern. Raises KeyError if it was not measured."""
        return {each.pattern: each for each in self.rows}[pattern]

    def to_data(self) -> dict[str, Any]:
        """Return the report as the JSON that ``stator plan --verify --json`` prints."""
        return {
            "design": self.design,
            "ok": self.ok,
            "most_items": self.most_items,
            "items_stored": self.items_stored,
            "seconds": round(self.seconds, 3),
            "patterns": [
                {**asdict(row), "unit": row.unit, "ok": row.ok, "off": _finite(row.off)}
                for row in self.rows
            ],
        }

    def to_json(self) -> str:
        """Return ``to_data`` as text."""
        return json.dumps(self.to_data(), indent=2, ensure_ascii=False)


def _finite(number: float) -> float | None:
    return round(number, 4) if number != float("inf") else None

"""The result of ``verify``: a row for each pattern, as frozen data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from stator.design.plan.html_table import html_table

MOST_OFF: Final = 0.25
"""An estimate may differ from the measured units by this share of the measured units."""


@dataclass(frozen=True, slots=True)
class PlaceUnits:
    """The units of a call in one place: a table, or an index as ``table / index``."""

    place: str
    estimated: float
    measured: float


@dataclass(frozen=True, slots=True)
class ItemSize:
    """The mean bytes of an entity's items, keys included: in the plan, and as they were stored."""

    entity: str
    estimated: float
    measured: float


@dataclass(frozen=True, slots=True)
class VerificationRow:
    """One pattern: the plan's estimate and the measured average of a call.

    Units are read units for a read and write units for a write. ``read_units`` are the units of the
    reads that a write makes first, such as for the old value of a unique field. ``extrapolated``
    says that a call reads more items than the budget allows, so that the result was extended from
    measurements with two smaller amounts. ``guesses`` are the
    assumptions about numbers that the design does not declare. ``milliseconds`` is the time the
    embedded engine took, in this process. ``nearby_units`` are the measured units if all items were
    1 % smaller, and 1 % larger. ``sizes`` are the sizes of the items that were measured.
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
    nearby_units: tuple[float, float] | None = None
    sizes: tuple[ItemSize, ...] = ()

    @property
    def off(self) -> float:
        """The error of the estimate as a share of the measured units: 0.5 is half too high."""
        if self.measured_units == 0:
            return 0.0 if self.estimated_units == 0 else float("inf")
        return self.estimated_units / self.measured_units - 1

    @property
    def ok(self) -> bool:
        """Whether the estimate is off by at most a quarter, or only because of a unit boundary."""
        return self._is_close or self.is_on_boundary

    @property
    def _is_close(self) -> bool:
        return abs(self.off) <= MOST_OFF + 1e-9

    @property
    def is_on_boundary(self) -> bool:
        """Whether the estimate is only off because items lie on a unit boundary.

        If the items were 1 % smaller or larger, the estimate would be close to the measured units.
        """
        if self._is_close or self.nearby_units is None:
            return False
        low, high = self.nearby_units
        least, most = low * (1 - MOST_OFF) - 1e-9, high * (1 + MOST_OFF) + 1e-9
        return least <= self.estimated_units <= most

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

    def _repr_html_(self) -> str:
        """Return estimates and measurements for a notebook: one row for each pattern."""
        return html_table(
            f"{self.design}: {len(self.failed)} of {len(self.rows)} estimates are off by more than "
            f"{MOST_OFF:.0%}; {self.items_stored:,} items stored",
            ("pattern", "unit", "estimated", "measured", "off", "requests", "items returned"),
            (
                (
                    row.pattern,
                    row.unit,
                    f"{row.estimated_units:g}",
                    f"{row.measured_units:g}",
                    f"{row.off:+.0%}",
                    f"{row.requests:g}",
                    f"{row.items_returned:g}",
                )
                for row in self.rows
            ),
        )

    @property
    def ok(self) -> bool:
        """Whether no estimate is off by more than a quarter, apart from those on a boundary."""
        return all(row.ok for row in self.rows)

    @property
    def failed(self) -> tuple[VerificationRow, ...]:
        """The rows whose estimate is off by more than a quarter, apart from those on a boundary."""
        return tuple(row for row in self.rows if not row.ok)

    @property
    def on_boundary(self) -> tuple[VerificationRow, ...]:
        """The rows whose estimate is only off because items lie on a unit boundary."""
        return tuple(row for row in self.rows if row.is_on_boundary)

    @property
    def guesses(self) -> tuple[str, ...]:
        """The guesses that the measurements rest on, each once."""
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
                {
                    **asdict(row),
                    "unit": row.unit,
                    "ok": row.ok,
                    "on_boundary": row.is_on_boundary,
                    "off": _finite(row.off),
                }
                for row in self.rows
            ],
        }

    def to_json(self) -> str:
        """Return ``to_data`` as text."""
        return json.dumps(self.to_data(), indent=2, ensure_ascii=False)


def _finite(number: float) -> float | None:
    return round(number, 4) if number != float("inf") else None

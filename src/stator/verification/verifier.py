"""``verify``: measures every pattern of a design and compares it with the plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from stator.design.cost.workload import CapacityUse, workload_of
from stator.design.design import Design
from stator.design.entities.entity import Entity, info
from stator.design.patterns.condition_contents import references
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError
from stator.verification.measurement import Measurement
from stator.verification.read_measurement import ReadMeasurement
from stator.verification.verification_report import (
    ItemSize,
    PlaceUnits,
    VerificationReport,
    VerificationRow,
)
from stator.verification.write_measurement import WriteMeasurement

MOST_ITEMS: Final = 200_000
LEAST_ITEMS: Final = 100

Progress = Callable[[float, str], None]
"""Receives the share of the work that is done, from 0 to 1, and the name of the pattern at work."""


def verify(
    design: Design,
    plan: Plan | None = None,
    *,
    most_items: int = MOST_ITEMS,
    progress: Progress | None = None,
) -> VerificationReport:
    """Measure every pattern of a design on the embedded engine, and compare it with the plan.

    ``plan`` is the plan to verify, by default ``design.plan()``. At most about ``most_items`` items
    are generated. To stay below that, fewer key values than declared are generated, but collections
    keep their declared size. A collection that is itself too large is measured at two smaller
    sizes, and the straight line through them is extended. The same design gives the same numbers,
    apart from times.
    """
    if most_items < LEAST_ITEMS:
        raise ConfigurationError(
            f"most_items={most_items} is too few to measure anything",
            hint=f"use {LEAST_ITEMS} or more, or leave it out for {MOST_ITEMS:,}",
        )
    return _Verifier(design, plan or design.plan(), most_items, progress).run()


class _Verifier:
    def __init__(
        self, design: Design, plan: Plan, most_items: int, progress: Progress | None
    ) -> None:
        self.design, self.plan, self.most_items = design, plan, most_items
        self._progress = progress
        self._named = {each: _named_fields(design, plan, each) for each in design.entities}
        self._uses = workload_of(plan, design).uses
        self._done = 0
        self._count = len(design.reads) + len(design.write_patterns) + len(design.declared_writes)

    def run(self) -> VerificationReport:
        started = time.perf_counter()
        rows = [*self._reads(), *self._writes()]
        return VerificationReport(
            self.design.name,
            tuple(rows),
            self.most_items,
            sum(row.items_stored for row in rows),
            time.perf_counter() - started,
        )

    def _reads(self) -> list[VerificationRow]:
        """Measure the read patterns, and return their rows in the order of the design.

        Patterns that need few items are measured first, so that the others can use what is left of
        the budget.
        """
        reads = [
            ReadMeasurement(self.design, self.plan, pattern, self._named)
            for pattern in self.design.reads
        ]
        rows: dict[str, VerificationRow] = {}
        left = self.most_items
        waiting = sorted(reads, key=lambda each: (each.items_needed(), each.pattern.name))
        for at, read in enumerate(waiting):
            room = max(LEAST_ITEMS, left // (len(waiting) - at))
            name = read.pattern.name
            measured = read.run(room, lambda name=name: self._show(name))  # type: ignore[misc]
            left -= measured.items_stored
            rows[name] = self._row(name, measured, read.guesses, read.notes)
            self._done += 1
            self._show(name)
        return [rows[pattern.name] for pattern in self.design.reads]

    def _writes(self) -> list[VerificationRow]:
        declared = [(each.name, each.trace()) for each in self.design.write_patterns]
        declared += [
            (f"writes of {info(entity).name}", (DeclaredWrite("create", entity),))
            for entity, rate in self.design.declared_writes.items()
            if rate
        ]
        rows = []
        for name, changes in declared:
            write = WriteMeasurement(self.design, self.plan, changes, self._named)
            measured = write.run(lambda name=name: self._show(name))  # type: ignore[misc]
            rows.append(self._row(name, measured, write.guesses, write.notes, kind="write"))
            self._done += 1
            self._show(name)
        return rows

    def _show(self, name: str) -> None:
        if self._progress is not None:
            self._progress(self._done / max(1, self._count), name)

    def _row(
        self,
        name: str,
        measured: Measurement,
        guesses: tuple[str, ...],
        notes: list[str],
        kind: Any = "read",
    ) -> VerificationRow:
        estimated, places = self._estimate(name)
        if kind == "write" and not any(each.name == name for each in self.plan.patterns):
            total = sum(places.values())
        else:
            total = estimated
        return VerificationRow(
            name,
            kind,
            total,
            round(sum(measured.units.values()), 4),
            tuple(
                PlaceUnits(
                    place,
                    round(places.get(place, 0.0), 4),
                    round(measured.units.get(place, 0.0), 4),
                )
                for place in sorted({*places, *measured.units})
            ),
            round(measured.items_read, 2),
            round(measured.items_returned, 2),
            round(measured.pages, 2),
            round(measured.requests, 2),
            round(measured.seconds * 1000, 3),
            measured.calls,
            measured.items_stored,
            measured.extrapolated,
            round(measured.other_units, 2),
            self._guesses(name, guesses),
            tuple(notes),
            None if measured.nearby_units is None else _rounded(measured.nearby_units),
            tuple(
                ItemSize(name, self.plan.entity(name).item_bytes, round(size, 1))
                for name, size in sorted(measured.item_bytes.items())
            ),
        )

    def _guesses(self, name: str, measured: tuple[str, ...]) -> tuple[str, ...]:
        """Return the guesses of a row: those of the plan, then those that the plan does not have.

        Two guesses are the same if the same declaration would replace them.
        """
        pattern = next((each for each in self.plan.patterns if each.name == name), None)
        planned = () if pattern is None else pattern.guesses
        known = {_remedy(each) for each in planned}
        return (*planned, *(each for each in measured if _remedy(each) not in known))

    def _estimate(self, name: str) -> tuple[float, dict[str, float]]:
        """Return the plan's units of a call, and its units by table and index."""
        pattern = next((each for each in self.plan.patterns if each.name == name), None)
        if pattern is not None:
            rate = pattern.requests_per_second
        else:
            entity = name.removeprefix("writes of ")
            rate = next(
                (
                    rate
                    for each, rate in self.design.declared_writes.items()
                    if info(each).name == entity
                ),
                0.0,
            )
        places: dict[str, float] = {}
        for use in self._uses:
            if use.pattern == name and rate:
                place = _place(use)
                places[place] = places.get(place, 0.0) + float(use.units) / rate
        return (0.0 if pattern is None else pattern.units_per_call), places


def _remedy(guess: str) -> str:
    """Return what a guess asks to declare, or the whole text if it asks for nothing."""
    return guess.rpartition("; declare ")[2]


def _rounded(units: tuple[float, float]) -> tuple[float, float]:
    low, high = units
    return round(low, 4), round(high, 4)


def _place(use: CapacityUse) -> str:
    return use.table if use.index is None else f"{use.table} / {use.index}"


def _named_fields(design: Design, plan: Plan, entity: type[Entity]) -> frozenset[str]:
    """Return the fields of an entity that patterns, keys and indexes name."""
    found = set(info(entity).identity)
    for pattern in design.reads:
        ask = pattern.trace()
        if entity not in ask.targets:
            continue
        named: list[Any] = [one for each in (*ask.tests, *ask.filters) for one in references(each)]
        found |= {each.name for each in named if issubclass(entity, each.owner)}
        found |= set(ask.only)
        found |= {each.name for each in (ask.order, *ask.then) if each is not None}
    for key in plan.entity(entity).keys:
        for template in (key.template, *(test for test, _ in key.when)):
            found |= {part.value for part in template.parts if part.kind == "field"}
    for table in plan.tables:
        for index in table.indexes:
            if info(entity).name in index.entities:
                found |= set(index.included)
    return frozenset(found & info(entity).fields.keys())

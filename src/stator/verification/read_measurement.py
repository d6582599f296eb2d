"""Measures a read: sample calls on generated data, or two smaller sizes and a straight line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from stator.design.design import Design
from stator.design.entities.conditions import Comparison, Condition
from stator.design.entities.entity import Entity, info
from stator.design.patterns.pattern import Pattern
from stator.design.plan.plan import PatternPlan, Plan
from stator.design.value_facts import condition_text
from stator.model.limits import PAGE_BYTES, READ_UNIT_BYTES
from stator.verification.call_arguments import CallArguments
from stator.verification.declared_shape import KEPT_SHARE, DeclaredShape, Guesses
from stator.verification.item_generator import ItemGenerator
from stator.verification.key_collections import CollectionFinder, KeyCollection
from stator.verification.metered_engine import Consumption, MeteredEngine

_SAMPLES: Final = 3
_MOST_SAMPLES: Final = 12
_ENOUGH_ITEMS: Final = 60
"""Calls that find few items are sampled until they found about this many."""
_MANY_ITEMS: Final = 5_000
"""With more items under its key, a call is measured once, and first with this many."""
_MARGIN: Final = 1.1
_LINE_ITEMS: Final = 12_000
"""Two sizes of a straight line need no more items than this, whatever the budget."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The average of some calls. ``units`` is by table or index name."""

    units: Mapping[str, float]
    items_read: float
    items_returned: float
    pages: float
    requests: float
    seconds: float
    calls: int
    items_stored: int
    extrapolated: bool = False
    other_units: float = 0.0
    """Read units of a write: what it has to look up first."""


@dataclass(slots=True)
class _Chances:
    """How often the conditions of a call hold, apart from its key."""

    values: dict[tuple[type[Entity], str], tuple[tuple[Any, ...], float]] = field(
        default_factory=dict
    )
    conditions: dict[type[Entity], list[tuple[Condition, float]]] = field(default_factory=dict)
    pinned: set[tuple[type[Entity], str]] = field(default_factory=set)
    """Fields whose chance follows from ``returns``."""


class ReadMeasurement:
    """Measures the calls of one read pattern."""

    def __init__(
        self,
        design: Design,
        plan: Plan,
        pattern: Pattern[..., Any],
        named: Mapping[type[Entity], frozenset[str]],
    ) -> None:
        self.design, self.plan, self.pattern = design, plan, pattern
        self.planned: PatternPlan = plan.pattern(pattern.name)
        self.shape = DeclaredShape(design)
        self.shape.guesses = Guesses()
        self.generator = ItemGenerator(self.shape, named)
        self.arguments = CallArguments(pattern, self.shape, self.generator)
        self.finder = CollectionFinder(plan, design.entities)
        self._by_guard = any(step.guard is not None for step in self.planned.steps)
        self.notes: list[str] = []
        self._pinned: set[tuple[type[Entity], str]] = set()
        self._carried: dict[type[Entity], float] = {}
        self.expected = self._expected(self.arguments.exact(0, self._wanted_samples(1.0)))
        """How many items one call reaches."""

    @property
    def guesses(self) -> tuple[str, ...]:
        """The guesses of the measurement, except those that ``returns`` makes unnecessary."""
        for entity, name in self._pinned:
            self.shape.guesses.drop(f"{info(entity).name}.{name}")
        return self.shape.guesses.texts

    def items_needed(self) -> float:
        return self.expected * self._wanted_samples(self.expected)

    def _wanted_samples(self, expected: float) -> int:
        wanted = math.ceil(_ENOUGH_ITEMS / max(1.0, expected))
        return min(self.arguments.samples(), max(_SAMPLES, min(_MOST_SAMPLES, wanted)))

    def run(self, room: int, step: Callable[[], None]) -> Measurement:
        """Measure with at most ``room`` items. ``step`` is called now and then."""
        if self.expected > min(room, _MANY_ITEMS):
            probe = max(_MANY_ITEMS, round(4 * (self.pattern.traffic.returns or 0)))
            line = self._two_sizes(min(room, probe), step)
            if line.is_bounded:
                return line.second  # a limit or a range ends the read: more items change nothing
            if self.expected > room:
                wanted = min(room, max(probe, _LINE_ITEMS))
                line = self._two_sizes(wanted, step) if wanted > probe else line
                return line.extended(self._unit_bytes())
        samples = min(self._wanted_samples(self.expected), max(1, int(room / self.expected)))
        return self._sampled(1 if self.expected > _MANY_ITEMS else samples, step)

    # -- whole collections

    def _sampled(self, samples: int, step: Callable[[], None]) -> Measurement:
        seen: list[tuple[type[Entity], Mapping[str, Any]]] = []
        with MeteredEngine(self.design, self.plan) as engine:
            calls: list[dict[str, Any]] = []
            stored = 0
            carried: dict[type[Entity], float] = {}
            for sample in range(samples):
                exact = self.arguments.exact(sample, samples)
                collections = self._collections(exact)
                fixed = [(each.entity, each.fixed) for each, _ in collections]
                if any(each in seen for each in fixed):
                    continue
                seen += fixed
                items: list[Any] = []
                for collection, expected in collections:
                    # 2.4 orders of a user are 2, 2, 3, 2 and 3 orders
                    due = carried.get(collection.entity, 0.0) + expected
                    count = math.floor(due + 1e-6)
                    carried[collection.entity] = due - count
                    items += self._generated(collection, count, exact, expected)
                stored += len(items)
                calls.append(self.arguments.whole(exact, items))
                engine.load(items, guarded=self._by_guard)
                step()
            returned = sum(self._call(engine, each) for each in calls)
            return _average(engine.consumed, returned, len(calls), stored)

    def _call(self, engine: MeteredEngine, arguments: Mapping[str, Any]) -> int:
        query = self.pattern(**arguments)
        if self.arguments.ask.is_count:
            return engine.db.count(query)
        return sum(1 for _ in engine.db.fetch(query))

    # -- two sizes

    def _two_sizes(self, room: int, step: Callable[[], None]) -> _Line:
        """Measure with a part of ``room`` and with all of it."""
        exact = self.arguments.exact(0, self._wanted_samples(self.expected))
        collections = self._collections(exact)
        most = room / sum(expected for _, expected in collections)
        enough = self._enough(collections, exact)
        is_enough = enough is None or enough * _MARGIN <= most
        least = most / 3 if enough is None or not is_enough else max(most / 3, enough * _MARGIN)
        found = []
        with MeteredEngine(self.design, self.plan) as engine:
            kept: list[Any] = []
            have = [0] * len(collections)
            for part in (least, most):
                fresh: list[Any] = []
                for at, (collection, expected) in enumerate(collections):
                    count = max(1, round(expected * part)) - have[at]
                    have[at] += count
                    fresh += self._generated(collection, count, exact, expected)
                    step()
                kept += fresh
                arguments = self.arguments.whole(exact, kept, everything=not is_enough)
                engine.load(fresh, guarded=self._by_guard)
                returned = self._call(engine, arguments)
                found.append(_average(engine.consumed, returned, 1, len(kept)))
        whole = 1.0 if is_enough or enough is None else min(1.0, enough)
        return _Line(found[0], found[1], least, most, whole)

    def _unit_bytes(self) -> float:
        """Return the bytes that one unit reads. Fetches of whole items do not come in pages."""
        if any(step.fetch for step in self.planned.steps):
            return 0.0
        return READ_UNIT_BYTES if self.planned.consistent else 2 * READ_UNIT_BYTES

    def _enough(
        self, collections: list[tuple[KeyCollection, float]], exact: Mapping[str, Any]
    ) -> float | None:
        """Return the part of the items that holds as many matching ones as a call returns.

        Returns None if ``returns`` is not declared, or does not decide a range. If a limit cuts the
        result off, the range keeps a third of the items or more.
        """
        returns = self.pattern.traffic.returns
        if returns is None or len(self.arguments.ask.targets) != 1 or self._is_settled(exact):
            return None
        chances = self._chances(exact)
        [target] = self.arguments.ask.targets
        filters = math.prod(share for _, share in chances.conditions.get(target, ()))
        matching = sum(
            expected * self._kept(each, chances) * filters
            for each, expected in collections
            if each.entity is target
        )
        part, limit = returns / max(1.0, matching), self.arguments.ask.limit
        if isinstance(limit, int) and returns >= limit:  # the limit cuts off what the range keeps
            return max(part, KEPT_SHARE)
        return part

    # -- items

    def _expected(self, exact: Mapping[str, Any]) -> float:
        return max(1.0, sum(expected for _, expected in self._collections(exact)))

    def _collections(self, exact: Mapping[str, Any]) -> list[tuple[KeyCollection, float]]:
        """Return the collections of a call, each with its number of items."""
        chances = self._chances(exact)
        found = self.finder.collections(self.planned, self.arguments.ask, exact)
        return [(each, self._count(each, chances)) for each in found]

    def _count(self, collection: KeyCollection, chances: _Chances) -> float:
        entity = collection.entity
        pinned = {name for owner, name in chances.pinned if owner is entity}
        free = {name: each for name, each in collection.fixed.items() if name not in pinned}
        share = self.shape.chance(entity, free)
        for name in pinned & collection.fixed.keys():
            options, part = chances.values[entity, name]
            share *= part / len(options)
        for name in sorted(collection.present):
            share *= self.shape.present_share(entity, name)
        return self.shape.volume(entity) * share

    def _generated(
        self, collection: KeyCollection, count: int, exact: Mapping[str, Any], most: float
    ) -> list[Any]:
        """Return items of a collection, as many of which as declared have the values asked for."""
        chances, entity = self._chances(exact), collection.entity
        asked = {
            name: options
            for (owner, name), (options, _) in chances.values.items()
            if owner is entity and name not in collection.fixed
        }
        due = count * self._kept(collection, chances) + self._carried.get(entity, 0.0)
        matching = min(count, math.floor(due + 1e-6)) if asked else count
        self._carried[entity] = due - matching if asked else 0.0
        single = {name: options[0] for name, options in asked.items() if len(options) == 1}
        several = {name: (options, 1.0) for name, options in asked.items() if len(options) > 1}
        others = {name: (options, 0.0) for name, options in asked.items()}
        found = []
        for part, fixed, given in (
            (matching, {**collection.fixed, **single}, several),
            (count - matching, collection.fixed, others),
        ):
            found += self.generator.items(
                entity,
                fixed,
                max(0, part),
                chances=given,
                conditions=[
                    each
                    for each in chances.conditions.get(entity, ())
                    if not _is_met(each[0], collection)
                ],
                present=collection.present,
                most=math.ceil(most),
            )
        return found

    def _kept(self, collection: KeyCollection, chances: _Chances) -> float:
        """Return the share of a collection's items that have the values a call asks for."""
        entity = collection.entity
        asked = dict(collection.fixed)
        kept = 1.0
        for (owner, name), (options, share) in chances.values.items():
            if owner is not entity or name in collection.fixed:
                continue
            if (entity, name) in chances.pinned:
                kept *= share
                continue
            before = self.shape.chance(entity, asked)
            asked[name] = options[0]
            kept *= min(1.0, len(options) * self.shape.chance(entity, asked) / before)
        return kept

    # -- chances of conditions

    def _chances(self, exact: Mapping[str, Any]) -> _Chances:
        found = _Chances()
        for entity in self.arguments.ask.targets:
            self._add_chances(entity, exact, found)
        returns = self.pattern.traffic.returns
        if returns is not None and len(self.arguments.ask.targets) == 1:
            self._fit(self.arguments.ask.targets[0], returns, found, self._is_settled(exact))
        return found

    def _add_chances(self, entity: type[Entity], exact: Mapping[str, Any], found: _Chances) -> None:
        for name, options in self.arguments.asked(entity, exact).items():
            with self.shape.unrecorded():  # the chance of all values together counts
                part = sum(self.shape.chance(entity, {name: each}) for each in options)
            found.values[entity, name] = options, min(1.0, part)
        for condition in self.arguments.filters(entity):
            share = self.shape.condition_share(entity, condition)
            if share is None:
                share = KEPT_SHARE
                shown = condition_text(condition)
                self.shape.guesses.add(f"{shown} keeps a third; declare share({shown}, ...)")
            found.conditions.setdefault(entity, []).append((condition, share))

    def _is_settled(self, exact: Mapping[str, Any]) -> bool:
        """Whether every argument is exact, so that only chances decide how much a call returns."""
        return self.pattern.parameters.keys() <= exact.keys()

    def _fit(self, entity: type[Entity], returns: float, found: _Chances, is_settled: bool) -> None:
        """Let ``returns`` decide the chances that nothing else decides, the last condition first.

        A design that says "one of the rides of a driver" by ``returns=1`` need not say again that
        one ride in 1,500 is open. If a limit or a range decides how much a call returns, the
        items under the other conditions are at least as many.
        """
        is_limited = self.arguments.ask.limit is not None
        fixed = {
            name: options[0] for (_, name), (options, _) in found.values.items()
        }  # fmt: skip
        if set(info(entity).identity) <= fixed.keys():
            return
        loose = [name for name in fixed if not self.shape.is_declared(entity, name)]
        declared = {name: value for name, value in fixed.items() if name not in loose}
        current = self.shape.volume(entity) * self.shape.chance(entity, declared)
        for name in loose:
            current *= found.values[entity, name][1]
        filters = found.conditions.get(entity, [])
        for _, share in filters:
            current *= share
        if (is_limited or not is_settled) and current >= returns:
            return
        for at in reversed(range(len(filters))):
            condition, share = filters[at]
            if self.shape.condition_share(entity, condition) is None:
                fitted = min(1.0, share * returns / current)
                current *= fitted / share
                filters[at] = (condition, fitted)
                self.shape.guesses.drop_filter(condition_text(condition))
        # An even spread over the values of an Enum is more likely than the guess about a text.
        texts = [name for name in loose if self.shape.is_guessed(entity, name)]
        for name in reversed(texts or loose):
            options, share = found.values[entity, name]
            fitted = min(1.0, max(share * returns / current, 1 / self.shape.volume(entity)))
            current *= fitted / share
            found.values[entity, name] = options, fitted
            found.pinned.add((entity, name))
            if not is_settled:
                subject = f"{info(entity).name}.{name}"
                self.shape.guesses.add(
                    f"a range over all items with the {subject} asked for returns {returns:g}; "
                    f"declare distinct({entity.__name__}.{name}, values=...)"
                )
        self._pinned |= found.pinned
        if not 0.8 < current / returns < 1.25:
            note = (
                f"returns={returns:g}, but the declared volumes and facts give "
                f"{current:,.3g} items; correct one of them"
            )
            if note not in self.notes:
                self.notes.append(note)


def _is_met(condition: Condition, collection: KeyCollection) -> bool:
    """Whether all items of a collection meet a condition, because their key has the field."""
    return (
        isinstance(condition, Comparison)
        and condition.operator == "exists"
        and (
            condition.field.name in collection.present
            or collection.fixed.get(condition.field.name) is not None
        )
    )


def _average(consumed: Consumption, returned: float, calls: int, stored: int) -> Measurement:
    def each(number: float) -> float:
        return number / max(1, calls)

    return Measurement(
        {place: each(units) for place, units in sorted(consumed.read_units.items())},
        each(consumed.items_read),
        each(returned),
        each(consumed.pages),
        each(consumed.requests),
        each(consumed.seconds),
        calls,
        stored,
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """Two measurements, with two parts of the declared items, and a third part to extend to."""

    first: Measurement
    second: Measurement
    start: float
    end: float
    whole: float

    @property
    def is_bounded(self) -> bool:
        """Whether the read did the same with more items under its key.

        Units may differ by one step, because items differ by a few bytes.
        """
        low, high = self.first, self.second
        return self.whole == 1.0 and (
            (low.items_read, low.items_returned, low.requests)
            == (high.items_read, high.items_returned, high.requests)
        )

    def extended(self, unit_bytes: float) -> Measurement:
        """Return the measurement of the whole. A page has at most 1 MB, whatever the line says."""
        first, second = self.first, self.second
        units = {
            place: self._at_whole(first.units.get(place, 0.0), second.units.get(place, 0.0))
            for place in sorted({*first.units, *second.units})
        }
        pages = math.ceil(self._at_whole(first.pages, second.pages))
        more = max(0, math.ceil(sum(units.values()) * unit_bytes / PAGE_BYTES) - pages)
        return Measurement(
            units,
            self._at_whole(first.items_read, second.items_read),
            self._at_whole(first.items_returned, second.items_returned),
            pages + more,
            math.ceil(self._at_whole(first.requests, second.requests)) + more,
            self._at_whole(first.seconds, second.seconds),
            1,
            second.items_stored,
            extrapolated=True,
        )

    def _at_whole(self, low: float, high: float) -> float:
        slope = (high - low) / (self.end - self.start)
        return high + max(0.0, slope) * (self.whole - self.end)

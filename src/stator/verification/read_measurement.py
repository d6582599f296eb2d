"""Measures a read pattern by sample calls on generated data.

If a call reads more items than the budget allows, it is measured with two smaller amounts of data,
and the straight line through the two results is extended to the declared amount.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from stator.design.design import Design
from stator.design.entities.conditions import Comparison, Condition
from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Maybe
from stator.design.patterns.pattern import Pattern
from stator.design.plan.plan import PatternPlan, Plan
from stator.design.value_facts import MOST_CONTRADICTED, condition_text
from stator.model.limits import READ_UNIT_BYTES
from stator.model.quantities import amount
from stator.verification.call_arguments import CallArguments
from stator.verification.declared_shape import KEPT_SHARE, DeclaredShape, Guesses
from stator.verification.item_generator import ItemGenerator
from stator.verification.key_collections import CollectionFinder, KeyCollection
from stator.verification.measurement import MeasuredLine, Measurement
from stator.verification.metered_engine import MeteredEngine
from stator.verification.unit_boundaries import nearby_read_units

_SAMPLES: Final = 3
_MOST_SAMPLES: Final = 12
_ENOUGH_ITEMS: Final = 60
"""Calls that find few items are sampled until they found about this many."""
_MANY_ITEMS: Final = 5_000
"""A call that reaches more items than this is measured once, not sampled.

It is tried with this many items first: if a limit ends the read, more items change nothing.
"""
_RUNS: Final = 200
"""Matching and other items alternate so often."""
_MARGIN: Final = 1.1
_FILTERED_PAGE_ITEMS: Final = 100
"""The data layer asks for at least this many items a page if a filter drops some of them."""
_DEVIATIONS: Final = 5.0
"""Items are spread over shards by chance: a shard may have fewer by so many deviations."""
_LINE_ITEMS: Final = 12_000
"""The most items of the larger of two sizes, even if the budget allows more."""


@dataclass(slots=True)
class _Chances:
    """The share of items that meets each condition of a call.

    ``values`` maps an entity and a field to the values that the call accepts, and to the share of
    items that have one of these values.
    """

    values: dict[tuple[type[Entity], str], tuple[tuple[Any, ...], float]] = field(
        default_factory=dict
    )
    conditions: dict[type[Entity], list[tuple[Condition, float]]] = field(default_factory=dict)
    pinned: set[tuple[type[Entity], str]] = field(default_factory=set)
    """Fields whose share follows from ``returns``."""
    excess: float = 1.0
    """How many times larger a collection is than the mean, as ``returns`` says."""


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
        """The guesses of the measurement, except guesses that ``returns`` makes unnecessary."""
        for entity, name in self._pinned:
            self.shape.guesses.drop(f"{info(entity).name}.{name}")
        return self.shape.guesses.texts

    def items_needed(self) -> float:
        return self.expected * self._wanted_samples(self.expected)

    def _wanted_samples(self, expected: float) -> int:
        wanted = math.ceil(_ENOUGH_ITEMS / max(1.0, expected))
        return min(self.arguments.samples(), max(_SAMPLES, min(_MOST_SAMPLES, wanted)))

    def run(self, room: int, step: Callable[[], None]) -> Measurement:
        """Measure with at most ``room`` items. ``step`` is called to report progress."""
        if self.expected > min(room, _MANY_ITEMS):
            probe = self._probe()
            line = self._two_sizes(min(room, probe), step)
            if line.is_bounded or self._is_cut_off(line.second):
                return line.second  # a limit or a range ends the read: more items change nothing
            if self.expected > room:
                wanted = min(room, max(probe, _LINE_ITEMS))
                line = self._two_sizes(wanted, step) if wanted > probe else line
                return line.extended(self._unit_bytes())
        samples = min(self._wanted_samples(self.expected), max(1, int(room / self.expected)))
        return self._sampled(1 if self.expected > _MANY_ITEMS else samples, step)

    def _probe(self) -> int:
        """Return how many items show whether a range or a limit ends the read."""
        exact = self.arguments.exact(0, self._wanted_samples(self.expected))
        enough = self._enough(self._collections(exact), exact) or 0.0
        returned = 4 * (self.pattern.traffic.returns or 0)
        needed = enough * self.expected * self._margin(exact) * _MARGIN
        return round(max(_MANY_ITEMS, returned, needed))

    def _is_cut_off(self, measured: Measurement) -> bool:
        """Whether the limit of a pattern with a filter ended the call, not the end of the items.

        More items would then change nothing, because the filter would drop the same share of them.
        """
        limit = self.arguments.ask.limit
        is_filtered = any(step.is_filtered for step in self.planned.steps)
        return is_filtered and isinstance(limit, int) and measured.items_returned >= limit

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
            return self._average(engine, returned, len(calls), stored)

    def _call(self, engine: MeteredEngine, arguments: Mapping[str, Any]) -> int:
        query = self.pattern(**arguments)
        if self.arguments.ask.is_count:
            return engine.db.count(query)
        return sum(1 for _ in engine.db.fetch(query))

    def _average(
        self, engine: MeteredEngine, returned: float, calls: int, stored: int
    ) -> Measurement:
        consumed = engine.consumed
        low, high = nearby_read_units(
            consumed.reads, engine.sizes, consistent=self.planned.consistent
        )

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
            nearby_units=(each(low), each(high)),
            item_bytes=engine.sizes.of_tables(),
        )

    # -- two sizes

    def _two_sizes(self, room: int, step: Callable[[], None]) -> MeasuredLine:
        """Measure a call twice: with a part of ``room`` items, then with about ``room`` items."""
        exact = self.arguments.exact(0, self._wanted_samples(self.expected))
        collections = self._collections(exact)
        most = room / sum(expected for _, expected in collections)
        enough = self._enough(collections, exact)
        margin = self._margin(exact)
        is_enough = enough is None or enough * margin <= most
        least = most / 3 if enough is None or not is_enough else max(most / 3, enough * margin)
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
                found.append(self._average(engine, returned, 1, len(kept)))
        whole = 1.0 if is_enough or enough is None else min(1.0, enough)
        is_ended = is_enough and enough is not None
        return MeasuredLine(found[0], found[1], least, most, whole, is_ended)

    def _unit_bytes(self) -> float:
        """Return the bytes that one read unit covers, to compute pages from units.

        Returns 0 if items are fetched by their keys, because those units do not come from pages.
        """
        if any(step.fetch for step in self.planned.steps):
            return 0.0
        return READ_UNIT_BYTES if self.planned.consistent else 2 * READ_UNIT_BYTES

    def _enough(
        self, collections: list[tuple[KeyCollection, float]], exact: Mapping[str, Any]
    ) -> float | None:
        """Return the share of the declared items after which more items change nothing.

        A range is chosen to cover the items that ``returns`` declares, and a limit may end the read
        earlier. If a limit cuts the result of a range off, the range covers a third of the items.
        Returns None if neither a limit nor a range ends the read.
        """
        returns = self.pattern.traffic.returns
        matching = self._matching(collections, exact)
        whole = max(1.0, sum(expected for _, expected in collections))
        limited = self._limited_items(min(1.0, matching / whole), exact)
        is_settled = self._is_settled(exact)
        if limited is not None and (
            is_settled or returns is None or returns >= self._limit(exact, returns)
        ):
            return min(1.0, limited / whole / (1.0 if is_settled else KEPT_SHARE))
        if returns is None or len(self.arguments.ask.targets) != 1 or is_settled:
            return None
        return returns / max(1.0, matching)

    def _matching(
        self, collections: list[tuple[KeyCollection, float]], exact: Mapping[str, Any]
    ) -> float:
        """Return how many of the items under the key of a call meet its other conditions.

        Ranges that are not chosen yet are left out.
        """
        chances = self._chances(exact)
        return sum(
            expected
            * self._kept(each, chances)
            * math.prod(share for _, share in chances.conditions.get(each.entity, ()))
            for each, expected in collections
            if each.entity in self.arguments.ask.targets
        )

    def _limit(self, exact: Mapping[str, Any], default: float) -> float:
        limit = self.arguments.ask.limit
        if limit is None:
            return default
        return limit if isinstance(limit, int) else float(exact[limit.name])

    def _limited_items(self, kept: float, exact: Mapping[str, Any]) -> float | None:
        """Return how many items a call reads until it reaches its limit.

        ``kept`` is the share of the items read that a call returns. Each query reads up to the
        limit. With a filter, the queries share the work, and each reads at least a page of
        ``max(2 * limit, 100)`` items. Returns None without a limit, which a count does not have.
        """
        limit = self._limit(exact, 0.0)
        if not limit or self.arguments.ask.is_count:
            return None
        queries = self._queries(exact)
        if any(step.filter is not None for step in self.planned.steps):
            return limit / max(kept, 1e-9) + queries * max(2 * limit, _FILTERED_PAGE_ITEMS)
        return queries * limit

    def _queries(self, exact: Mapping[str, Any]) -> int:
        """Return how many requests a call makes, not counting further pages."""
        return sum(
            step.shards
            * len(step.conditions)
            * math.prod(max(1, len(exact[name])) for name in step.lists)
            for step in self.planned.steps
        )

    def _margin(self, exact: Mapping[str, Any]) -> float:
        """Return the factor by which more items are generated than a call needs on average.

        A call may send several queries, and chance decides how many items each of them finds. With
        the extra items, each query finds enough to reach the limit.
        """
        limit = self._limit(exact, 0.0)
        if not limit or self._queries(exact) == 1:
            return _MARGIN
        return max(_MARGIN, 1 + _DEVIATIONS / math.sqrt(limit))

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
        found = self.shape.volume(entity) * share
        if entity not in self.arguments.ask.targets:
            return found
        return max(found, min(self.shape.volume(entity), found * chances.excess))

    def _generated(
        self, collection: KeyCollection, count: int, exact: Mapping[str, Any], most: float
    ) -> list[Any]:
        """Return ``count`` of the ``most`` items of a collection.

        The declared share of these items has the values that the call asks for.
        """
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
        matches = {**collection.fixed, **single}, several
        rest = collection.fixed, others
        for part, (fixed, given) in _interleaved(matching, max(0, count - matching), matches, rest):
            found += self.generator.items(
                entity,
                fixed,
                part,
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
                self.shape.guesses.add(
                    f"{shown} keeps a third of the items; declare share({shown}, ...)"
                )
            found.conditions.setdefault(entity, []).append((condition, share))

    def _is_settled(self, exact: Mapping[str, Any]) -> bool:
        """Whether all arguments are compared for equality, so that no range must be chosen."""
        return self.pattern.parameters.keys() <= exact.keys()

    def _fit(self, entity: type[Entity], returns: float, found: _Chances, is_settled: bool) -> None:
        """Adjust the shares that nothing declares, until a call returns ``returns`` items.

        The last condition is adjusted first. For example, a pattern that finds the open ride of a
        driver has ``returns=1``. If a driver has 1,500 rides, one in 1,500 is then open. If a limit
        or a range decides how much a call returns, shares are only raised.
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
        if is_settled:
            current *= self._fit_presence(entity, fixed, returns / current)
        self._pinned |= found.pinned
        found.excess = max(1.0, returns / current)
        if not 1 / MOST_CONTRADICTED < max(1.0, current) / returns < MOST_CONTRADICTED:
            note = (
                f"returns={returns:g}, but the declared volumes and facts give "
                f"{amount(current)} {'item' if amount(current) == '1' else 'items'}; correct one "
                "of them"
            )
            if note not in self.notes:
                self.notes.append(note)

    def _fit_presence(
        self, entity: type[Entity], fixed: Mapping[str, Any], missing: float
    ) -> float:
        """Raise the guessed shares of items that have a compared optional field.

        Returns how many times more items a call returns now: ``missing`` times, if the shares can
        be raised that far.
        """
        factor = 1.0
        for name in dict.fromkeys(map(source_field, fixed)):
            declared = info(entity).fields[name]
            if not isinstance(declared.shape, Maybe) or fixed.get(name) is None:
                continue
            if self.shape.is_presence_declared(entity, name) or factor >= missing:
                continue
            before = self.shape.present_share(entity, name)
            share = min(1.0, before * missing / factor)
            if share > before:
                self.shape.settle_presence(entity, name, share)
                self.shape.guesses.drop_presence(f"{info(entity).name}.{name}")
                factor *= share / before
        return factor


_K = TypeVar("_K")


def _interleaved(matching: int, others: int, matches: _K, rest: _K) -> Iterator[tuple[int, _K]]:
    """Yield ``(count, kind)`` for alternating runs of matching and other items, evenly spread.

    Times and numbers of items grow in the order in which items are generated. If all matching items
    came first, a read from the newest item would pass all others before it found one.
    """
    runs = max(1, min(_RUNS, matching, others))
    for at in range(runs):
        for total, kind in ((matching, matches), (others, rest)):
            part = total * (at + 1) // runs - total * at // runs
            if part:
                yield part, kind


def _is_met(condition: Condition, collection: KeyCollection) -> bool:
    """Whether a condition only asks for a field that all items of a collection have."""
    return (
        isinstance(condition, Comparison)
        and condition.operator == "exists"
        and (
            condition.field.name in collection.present
            or collection.fixed.get(condition.field.name) is not None
        )
    )

"""A design: entities, patterns, how many items there are and how often they are written."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

from stator.design.entities.entity import Entity, info
from stator.design.patterns.pattern import Change, Pattern, WritePattern
from stator.errors import DesignError

if TYPE_CHECKING:
    from stator.design.cost.cost import CostOptions, CostReport
    from stator.design.lint.finding import Report
    from stator.design.plan.plan import Plan

Layout = Literal["single-table", "aggregate", "table-per-entity"]
_DEFAULT_VOLUME = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Per:
    """So many for each item of another entity."""

    entity: type[Entity]
    count: float


def per(entity: type[Entity], count: float) -> Per:
    """``volumes={Order: per(User, 12)}``: twelve orders for each user."""
    return Per(entity, count)


class Design:
    """What a system stores and what it asks. Everything else is derived from it.

    ``names`` gives tables, indexes and key attributes names of your own: ``{"PK": "pk", "GSI1": "by_email"}``.
    ``ignore`` silences findings of ``check``: ``["ST304"]``, or only one with ``["ST304:Post.likes"]``.
    """

    def __init__(
        self,
        name: str,
        entities: Iterable[type[Entity]],
        patterns: Iterable[Pattern[..., Any] | WritePattern] = (),
        *,
        volumes: Mapping[type[Entity], float | Per] | None = None,
        writes: Mapping[type[Entity], float] | None = None,
        sizes: Mapping[type[Entity], int] | None = None,
        layout: Layout = "single-table",
        names: Mapping[str, str] | None = None,
        ignore: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.entities = tuple(entities)
        everything = tuple(patterns)
        self.reads = tuple(pattern for pattern in everything if isinstance(pattern, Pattern))
        self.write_patterns = tuple(
            pattern for pattern in everything if isinstance(pattern, WritePattern)
        )
        self.layout = layout
        self.names = dict(names or {})
        self.ignore = tuple(ignore)
        self._volumes = dict(volumes or {})
        self._writes = dict(writes or {})
        self.sizes = dict(sizes or {})
        self._lock: Plan | None = None
        self._plans: list[tuple[Plan | None, Plan]] = []
        self._check(everything)
        for pattern in self.reads:
            pattern.design = self

    def __repr__(self) -> str:
        return f"<design {self.name}: {len(self.entities)} entities, {len(self.reads)} reads>"

    def _check(self, everything: tuple[Any, ...]) -> None:
        names = [info(entity).name for entity in self.entities]
        _refuse_repeats(names, "entities")
        _refuse_repeats(
            [pattern.name for pattern in everything if hasattr(pattern, "name")], "patterns"
        )
        for pattern in everything:
            if not isinstance(pattern, (Pattern, WritePattern)):
                shown = getattr(pattern, "__name__", repr(pattern))
                raise DesignError(
                    f"{shown} is not an access pattern",
                    hint="decorate it with @read(...) or @write(...)",
                )
        if self.layout not in ("single-table", "aggregate", "table-per-entity"):
            raise DesignError(
                f"unknown layout {self.layout!r}",
                hint="single-table, aggregate or table-per-entity",
            )
        known = set(self.entities)
        for pattern in self.reads:
            self._refuse_strangers(pattern, pattern.trace().targets)
        for written in self.write_patterns:
            self._refuse_strangers(written, tuple(change.entity for change in written.trace()))
        for entity in (*self._volumes, *self._writes, *self.sizes):
            if entity not in known:
                raise DesignError(
                    f"{entity.__name__} has a volume or rate but is not in the design",
                    hint="add it to entities",
                )
        for entity in self.entities:
            self.volume(entity)

    def _refuse_strangers(
        self, pattern: Pattern[..., Any] | WritePattern, targets: tuple[type[Entity], ...]
    ) -> None:
        for target in targets:
            if target not in self.entities:
                raise DesignError(
                    f"{pattern.where}: {pattern.name} is about {target.__name__}, which is not in the design",
                    hint=f"add {target.__name__} to the entities of {self.name}",
                )

    def volume(self, entity: type[Entity]) -> float:
        """How many items of an entity there are, relative volumes worked out."""
        return self._volume(entity, ())

    def _volume(self, entity: type[Entity], above: tuple[type[Entity], ...]) -> float:
        if entity in above:
            chain = " per ".join(each.__name__ for each in (*above, entity))
            raise DesignError(
                f"volumes go round in a circle: {chain}", hint="give one of them as a number"
            )
        declared = self._volumes.get(entity, _DEFAULT_VOLUME)
        if isinstance(declared, Per):
            return declared.count * self._volume(declared.entity, (*above, entity))
        return float(declared)

    def keep_to(self, lock: Plan | None) -> None:
        """Plan from this lock on, wherever no other is given: what it has fixed stays, unless a change is worth moving the data."""
        self._lock = lock

    def plan(self, previous: Plan | None = None) -> Plan:
        """Keys, indexes and requests: the cheapest design that serves every pattern.

        ``previous`` is the plan that data was written under, as ``read_lock`` gives it: by default what ``keep_to`` was told.
        ``stator.design.planner.locked_choices`` has the rule by which it is kept."""
        from stator.design.planner.planner import plan  # the planner needs this module's classes

        lock = previous or self._lock
        for known, planned in self._plans:  # a design does not change
            if known is lock:
                return planned
        self._plans.append((lock, plan(self, lock)))
        return self._plans[-1][1]

    def without(self, pattern: str) -> Design:
        """The design without one of its read patterns."""
        smaller = copy.copy(self)
        smaller.reads = tuple(each for each in self.reads if each.name != pattern)
        smaller._plans = []
        return smaller

    def cost(self, **options: Unpack[CostOptions]) -> CostReport:
        """What the design costs a month: ``shop.cost(region="eu-west-1", mode="provisioned", utilisation=0.7)``."""
        from stator.design.cost.cost import cost  # pricing needs this module's classes

        return cost(self, **options)

    def check(self, lock: Plan | None = None) -> Report:
        """What will go wrong with this design, and how it differs from the plan in ``lock``."""
        from stator.design.lint.check import check  # the rules need this module's classes

        return check(self, lock)

    @property
    def declared_writes(self) -> Mapping[type[Entity], float]:
        """Creations a second that ``writes=`` declares, beside those of the write patterns."""
        return self._writes

    def changes(self) -> list[tuple[Change, float]]:
        """Every declared change with its rate a second."""
        found = [(Change("create", entity), rate) for entity, rate in self._writes.items()]
        for pattern in self.write_patterns:
            found += [(change, pattern.rps * change.times) for change in pattern.trace()]
        return found


def _refuse_repeats(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DesignError(f"two {what} have the name {name}", hint="names must differ")

"""The user's declaration: entities, access patterns, volumes and rates, checked and kept as data.

``Declaration`` knows nothing about keys, plans or prices. The planner, the cost report, the lint
rules, the documents and the exports all read it; ``stator.design.design.Design`` adds the methods
that call them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from stator.design.entities.entity import Entity, info
from stator.design.patterns.daily_window import DailyWindow
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.quantities import MOST, MOST_A_SECOND, check_quantity
from stator.design.patterns.write_pattern import DeclaredWrite, WritePattern
from stator.design.plan.lock_file import LockFile, defining_file
from stator.design.plan.plan import Plan
from stator.design.table_settings import TableSettings
from stator.design.value_facts import Fact, ValueFacts
from stator.errors import DesignError

Layout = Literal["single-table", "aggregate", "table-per-entity"]
_DEFAULT_VOLUME = 1_000_000.0


@dataclass(frozen=True, slots=True)
class Per:
    """A volume relative to another entity: ``count`` items for each item of that entity."""

    entity: type[Entity]
    count: float


def per(entity: type[Entity], count: float) -> Per:
    """Declare a relative volume.

    ``volumes={Order: per(User, 12)}`` means twelve orders for each user.
    """
    check_quantity(f"the count of per({getattr(entity, '__name__', entity)}, ...)", count)
    return Per(entity, count)


class Declaration:
    """The entities, patterns, volumes and rates of one design.

    It is immutable. Two declarations are equal only if they are the same object.
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
        facts: Iterable[Fact] = (),
        layout: Layout = "single-table",
        names: Mapping[str, str] | None = None,
        ignore: Iterable[str] = (),
        settings: TableSettings | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise DesignError(
                f"the name of a design must be a str, not {type(name).__name__}",
                hint='write Design("shop", [Order], [orders_of_user])',
            )
        self.name = name
        self.entities = _listed(name, "entities", entities)
        everything = _listed(name, "patterns", patterns)
        self.reads = tuple(pattern for pattern in everything if isinstance(pattern, Pattern))
        self.write_patterns = tuple(
            pattern for pattern in everything if isinstance(pattern, WritePattern)
        )
        self.layout = layout
        self.names = dict(names or {})
        self.ignore = tuple(ignore)
        self.settings = settings
        """What the tables need in addition to keys and indexes."""
        self._volumes = dict(volumes or {})
        self._writes = dict(writes or {})
        self.sizes = dict(sizes or {})
        self.facts = ValueFacts(_listed(name, "facts", facts))
        file = defining_file()
        self.lock_file = None if file is None else LockFile(name, file.parent)
        """The lock file next to the file that defines this design, whether or not it exists."""
        self._chosen_lock: tuple[Plan | None] | None = None
        self._check(everything)

    def __repr__(self) -> str:
        return f"<design {self.name}: {len(self.entities)} entities, {len(self.reads)} reads>"

    @property
    def lock(self) -> Plan | None:
        """The plan that existing data was written under, or None.

        By default, ``plan()`` keeps the base keys of this plan. The plan is read from
        ``lock_file``, unless the program has set this property.
        """
        if self._chosen_lock is not None:
            return self._chosen_lock[0]
        return None if self.lock_file is None else self.lock_file.read()

    @lock.setter
    def lock(self, plan: Plan | None) -> None:
        self._chosen_lock = (plan,)

    def _check(self, everything: tuple[Any, ...]) -> None:
        for entity in self.entities:
            if info(entity).is_variant:
                root = info(entity).root.__name__
                raise DesignError(
                    f"{self.name}: {entity.__name__} is a variant of {root}, not an entity",
                    hint=f"list {root} alone; its variants belong to it",
                )
        if not self.entities:
            raise DesignError(
                f"the design {self.name} has no entities", hint="list them: Design(name, [Order])"
            )
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
                hint="use single-table, aggregate or table-per-entity",
            )
        known = set(self.entities)
        for pattern in self.reads:
            self._refuse_strangers(pattern, pattern.trace().targets)
        for written in self.write_patterns:
            self._refuse_strangers(written, tuple(change.entity for change in written.trace()))
        for entity in (*self._volumes, *self._writes, *self.sizes):
            if entity not in known:
                raise DesignError(
                    f"{entity.__name__} has a volume, rate or size but is not in the design",
                    hint=f"add {entity.__name__} to the entities of {self.name}",
                )
        self._check_numbers()
        for entity in self.entities:  # a count of per() times another volume may be too large
            check_quantity(f"{self.name}: the volume of {entity.__name__}", self.volume(entity))
        self.facts.check(self.name, self.entities, self.volume)

    def _check_numbers(self) -> None:
        for what, given in (
            ("volumes", self._volumes),
            ("writes", self._writes),
            ("sizes", self.sizes),
        ):
            for entity, value in given.items():
                number = value.count if isinstance(value, Per) else value
                most = MOST_A_SECOND if what == "writes" else MOST
                check_quantity(f"{self.name}: {what} of {entity.__name__}", number, most=most)

    def _refuse_strangers(
        self, pattern: Pattern[..., Any] | WritePattern, targets: tuple[type[Entity], ...]
    ) -> None:
        for target in targets:
            if target not in self.entities:
                raise DesignError(
                    f"{pattern.where}: {pattern.name} is about {target.__name__}, "
                    f"which is not in the design",
                    hint=f"add {target.__name__} to the entities of {self.name}",
                )

    def volume(self, entity: type[Entity]) -> float:
        """Return the number of items of an entity.

        A volume that is declared per item of another entity is multiplied by that entity's volume.
        """
        return self._volume(entity, ())

    def _volume(self, entity: type[Entity], above: tuple[type[Entity], ...]) -> float:
        if entity in above:
            chain = " per ".join(each.__name__ for each in (*above, entity))
            raise DesignError(
                f"the volumes depend on each other in a circle: {chain}",
                hint="declare one of these volumes as a number",
            )
        declared = self._volumes.get(entity, _DEFAULT_VOLUME)
        if isinstance(declared, Per):
            return declared.count * self._volume(declared.entity, (*above, entity))
        return float(declared)

    def has_volume(self, entity: type[Entity]) -> bool:
        """Whether ``volumes=`` declares the entity's volume. Otherwise the volume is a guess."""
        return entity in self._volumes

    def without(self, pattern: str) -> Self:
        """Return a copy without one of the read patterns."""
        smaller = copy.copy(self)
        smaller.reads = tuple(each for each in self.reads if each.name != pattern)
        return smaller

    @property
    def declared_volumes(self) -> Mapping[type[Entity], float | Per]:
        """The volumes as they were declared. Entities without a declared volume are absent."""
        return self._volumes

    @property
    def declared_writes(self) -> Mapping[type[Entity], float]:
        """The number of items of each entity that ``writes=`` creates each second.

        Creations by write patterns are not included.
        """
        return self._writes

    @property
    def windows(self) -> Mapping[str, DailyWindow]:
        """The parts of the day in which patterns are called, by pattern; others run all day."""
        found = {each.name: each.traffic.window for each in self.reads}
        found |= {each.name: each.window for each in self.write_patterns}
        return {name: window for name, window in found.items() if window is not None}

    def busiest(self, means: Mapping[str, float]) -> tuple[int, float]:
        """Return the moment of the day at which patterns ask for most together, and how much.

        ``means`` has what each pattern asks for in the mean of a day. A pattern with a window asks
        for all of it there. The moment is in seconds after midnight, the first of equal ones.
        """
        windows = self.windows

        def asked(clock: int) -> float:
            total = 0.0
            for name, mean in means.items():
                window = windows.get(name)
                if window is None:
                    total += mean
                elif window.contains(clock):
                    total += mean / window.share
            return total

        starts = sorted({0, *(windows[name].start for name in means if name in windows)})
        clock = max(starts, key=asked)
        return clock, asked(clock)

    def busy_changes(self) -> list[list[tuple[DeclaredWrite, float]]]:
        """Return the declared changes with their rates, at each moment when a window opens.

        There is no moment with more writes than all of these. The list is empty if all write
        patterns run all day.
        """
        starts = sorted({each.window.start for each in self.write_patterns if each.window})
        return [self._changes_at(start) for start in starts]

    def _changes_at(self, clock: int) -> list[tuple[DeclaredWrite, float]]:
        found = [(DeclaredWrite("create", entity), rate) for entity, rate in self._writes.items()]
        for pattern in self.write_patterns:
            if pattern.window is None or pattern.window.contains(clock):
                found += [(change, pattern.busy_rps * change.times) for change in pattern.trace()]
        return found

    def changes(self) -> list[tuple[DeclaredWrite, float]]:
        """Return all declared changes, each with its rate a second.

        This includes the changes of write patterns, and the creations that ``writes=`` declares.
        """
        found = [(DeclaredWrite("create", entity), rate) for entity, rate in self._writes.items()]
        for pattern in self.write_patterns:
            found += [(change, pattern.rps * change.times) for change in pattern.trace()]
        return found


def _refuse_repeats(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DesignError(f"two {what} have the name {name}", hint="rename one of them")


def _listed(design: str, what: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise DesignError(
            f"{design}: {what} must be a list, not {type(given).__name__}",
            hint=f"write Design({design!r}, [Order], [orders_of_user])"
            if what != "facts"
            else "write facts=[distinct(Order.status, values=5)]",
        )
    return tuple(given)

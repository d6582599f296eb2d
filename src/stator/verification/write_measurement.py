"""Measures writes: sample calls of a write pattern, or of the creations that ``writes=`` declares.

Items that are updated or deleted are created first, through the data layer, so that their unique
values are guarded. They are passed as objects: a key made of several fields needs all of them.
Values are those of the declared shape, so a sparse index gets an entry as often as declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stator.design.design import Design
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Choice, Scalar
from stator.design.patterns.pattern import DeclaredWrite
from stator.design.plan.plan import Plan
from stator.tables.db import Db
from stator.verification.declared_shape import DeclaredShape, Guesses, inner, plain
from stator.verification.item_generator import ItemGenerator
from stator.verification.metered_engine import MeteredEngine
from stator.verification.read_measurement import Measurement

_CALLS: Final = 24
_MOST_WRITES: Final = 480
_TRANSACTION_ITEMS: Final = 100
_TRIES: Final = 50


class WriteMeasurement:
    """Measures calls that make the given changes. Several changes are one transaction."""

    def __init__(
        self,
        design: Design,
        plan: Plan,
        changes: Sequence[DeclaredWrite],
        named: Mapping[type[Entity], frozenset[str]],
    ) -> None:
        self.design, self.plan, self.changes = design, plan, tuple(changes)
        self.shape = DeclaredShape(design)
        self.shape.guesses = Guesses()
        self.generator = ItemGenerator(self.shape, named)
        self.notes: list[str] = []
        self._serial = 1_000_000

    @property
    def guesses(self) -> tuple[str, ...]:
        return self.shape.guesses.texts

    def run(self, step: Callable[[], None]) -> Measurement:
        writes = sum(change.times for change in self.changes)
        calls = max(1, min(_CALLS, int(_MOST_WRITES / max(1.0, writes))))
        with MeteredEngine(self.design, self.plan) as engine:
            batches = [self._batch(call) for call in range(calls)]
            made = 0
            for batch in batches:
                for change, item in batch:
                    if change.kind != "create":
                        engine.db.create(item)  # which sets its version
                        made += 1
            engine.start()
            for batch in batches:
                self._call(engine.db, batch)
                step()
            consumed = engine.consumed
            return Measurement(
                {place: units / calls for place, units in sorted(consumed.write_units.items())},
                consumed.items_read / calls,
                0.0,
                consumed.pages / calls,
                consumed.requests / calls,
                consumed.seconds / calls,
                calls,
                made,
                other_units=sum(consumed.read_units.values()) / calls,
            )

    def _batch(self, call: int) -> list[tuple[DeclaredWrite, Any]]:
        """Return the changes of one call, each with the item it writes.

        A change that happens 0.25 times a call is in every fourth batch.
        """
        found = []
        for change in self.changes:
            count = math.floor((call + 1) * change.times + 1e-6) - math.floor(
                call * change.times + 1e-6
            )
            made = self.generator.items(change.entity, {}, count)
            found += [(change, item) for item in made]
        return found

    def _call(self, db: Db, batch: list[tuple[DeclaredWrite, Any]]) -> None:
        if len(self.changes) == 1:
            for change, item in batch:
                self._single(db, change, item)
            return
        if len(batch) > _TRANSACTION_ITEMS:
            batch = batch[:_TRANSACTION_ITEMS]
            note = f"a transaction has at most {_TRANSACTION_ITEMS} items; no more were written"
            if note not in self.notes:
                self.notes.append(note)
        if not batch:
            return
        with db.transaction() as transaction:
            for change, item in batch:
                if change.kind == "create":
                    transaction.create(item)
                elif change.kind == "delete":
                    transaction.delete(item)
                else:
                    with transaction.update(item) as changed:
                        for name, value in self._changes(change, item).items():
                            setattr(changed, name, value)

    def _single(self, db: Db, change: DeclaredWrite, item: Any) -> None:
        if change.kind == "create":
            db.create(item)
            return
        if change.kind == "delete":
            db.delete(item)
            return
        with db.update(item) as changed:
            for name, value in self._changes(change, item).items():
                setattr(changed, name, value)

    def _changes(self, change: DeclaredWrite, item: Any) -> dict[str, Any]:
        """Return new values for the fields of an update, each different from the stored one."""
        known = info(type(item))
        names = known.python_names
        return {
            names.get(name, name): self._other(change.entity, name, getattr(item, name, None))
            for name in change.fields
            if name in known.own_fields
        }

    def _other(self, entity: type[Entity], name: str, value: Any) -> Any:
        if info(entity).fields[name].role == "unique":
            return getattr(self.generator.items(entity, {}, 1)[0], name)
        named = self._named_values(entity, name)
        if named:
            self._serial += 1
            others = [each for each in named if plain(each) != plain(value)]
            return others[self._serial % len(others)] if others else value
        found = value
        for _ in range(_TRIES):
            if plain(found) != plain(value):
                break
            self._serial += 1
            found = self.generator.draw(entity, name, self._serial)
        return found

    @staticmethod
    def _named_values(entity: type[Entity], name: str) -> list[Any]:
        """Return the values of an Enum, a Literal or a bool; none for any other type.

        An update moves an item from one to any other. Shares say where items rest, not where an
        update takes them.
        """
        match inner(info(entity).fields[name].shape):
            case Choice(values, _, enum):
                return [each if enum is None else enum(each) for each in values]
            case Scalar(python) if python is bool:
                return [False, True]
        return []

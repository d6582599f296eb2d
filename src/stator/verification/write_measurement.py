"""Measures writes: sample calls of a write pattern, or of the creations that ``writes=`` declares.

Items that are updated or deleted are created first, through the data layer, so that their unique
values are guarded. The calls pass whole objects, because a key may consist of several fields.
Values follow the declared shape, so a sparse index gets an entry as often as declared.

A created item has the default values of fields that updates change. An Enum, a Literal or a bool
with a default then goes through its values in the order of its type, one for each update. So an
index of queued jobs gets an entry from each create, and loses it by one of the updates. A field
that new items lack is set by one of the updates: if each stay is created once and left once, every
update of ``left_at`` finds an open stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from stator.design.design import Design
from stator.design.entities.conditions import Comparison
from stator.design.entities.derived_parts import DerivedPart, derived_part
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.patterns.write_pattern import DeclaredWrite
from stator.design.plan.plan import Plan
from stator.design.value_facts import MovingFact
from stator.model.quantities import amount
from stator.tables.db import Db
from stator.verification.declared_shape import DeclaredShape, Guesses, inner, plain
from stator.verification.item_generator import ItemGenerator
from stator.verification.measurement import Measurement
from stator.verification.metered_engine import MeteredEngine
from stator.verification.sample_parts import part_text, with_part
from stator.verification.unit_boundaries import nearby_write_units

_CALLS: Final = 24
_MOST_WRITES: Final = 480
_TRANSACTION_ITEMS: Final = 100
# Time goes on between calls, so that an updated() field gets another value.
_TICK_SECONDS: Final = 0.001
_SET_BY_WRITES: Final = ("version", "created", "updated", "write_token")
_TRIES: Final = 50
_STEP: Final = math.sqrt(2)
"""Multiples of it are spread evenly, and independently of the values of items."""
_LONG_SECONDS: Final = 365 * 86_400
_UNKNOWN: Final = object()


class WriteMeasurement:
    """Measures calls of a write pattern. If a call makes several changes, it is a transaction."""

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
        self._scale = 1.0
        writes = sum(change.times for change in self.changes)
        if len(self.changes) == 1 and writes > _MOST_WRITES:
            self._scale = writes / _MOST_WRITES
            self.changes = (replace(self.changes[0], times=_MOST_WRITES),)
            self.notes.append(
                f"{_MOST_WRITES} of the {amount(writes)} items of a call were written, and counted "
                f"for all"
            )
        self._calls = 0
        self._moved: dict[tuple[type[Entity], str], int] = {}

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
                    engine.weigh(item)
                    if change.kind != "create":
                        engine.db.create(item)  # which sets its version
                        made += 1
            engine.start()
            for batch in batches:
                engine.clock.advance(_TICK_SECONDS)
                self._call(engine.db, batch)
                step()
            consumed = engine.consumed
            low, high = nearby_write_units(consumed.write_units, engine.sizes)
            whole = calls / self._scale  # as many calls as these writes make
            return Measurement(
                {place: units / whole for place, units in sorted(consumed.write_units.items())},
                consumed.items_read / whole,
                0.0,
                consumed.pages / whole,
                consumed.requests / whole,
                consumed.seconds / whole,
                calls,
                made,
                other_units=sum(consumed.read_units.values()) / whole,
                nearby_units=(low / whole, high / whole),
                item_bytes=engine.sizes.of_tables(),
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
            found += [(change, self._item(change, call)) for _ in range(count)]
        return found

    def _item(self, change: DeclaredWrite, call: int) -> Any:
        """Return the item that a change creates, or that it finds and updates or deletes.

        The item has the values of the declared state: ``after=`` of a create, ``before=`` of other
        changes. In a new item, other fields that updates change have their defaults. In an item to
        update, they have one of the values that the item takes in its life (``_life``).
        """
        entity, known = change.entity, info(change.entity)
        states = change.after if change.kind == "create" else change.before
        fixed = self._declared(entity, states, call)
        if change.kind == "create":
            for name in sorted(self._changing(entity) - fixed.keys()):
                value = self._default(entity, name)
                if value is not _UNKNOWN:
                    fixed[name] = value
        for name in change.fields if change.kind == "update" else ():
            life = [] if name in fixed else self._life(entity, name)
            if life:
                fixed[name] = life[call % (len(life) - 1)]
            elif name not in fixed:
                absent = self._absent_share(entity, name)
                if absent is not None:
                    is_due = math.floor((call + 1) * absent) > math.floor(call * absent)
                    fixed[name] = None if is_due else self.generator.draw(entity, name, call)
        names = {name for name in fixed if name in known.own_fields}
        [item] = self.generator.items(entity, {name: fixed[name] for name in sorted(names)}, 1)
        return item

    def _declared(
        self, entity: type[Entity], states: Sequence[Comparison], call: int
    ) -> dict[str, Any]:
        """Return field values that meet declared states (``before=`` or ``after=``)."""
        found: dict[str, Any] = {}
        for each in states:
            name = each.field.name
            if each.operator == "exists":
                found[name] = self.generator.draw(entity, name, call)
            else:
                found[name] = None if each.operator == "not_exists" else each.values[0]
        return found

    def _changing(self, entity: type[Entity]) -> set[str]:
        """Return the fields of an entity that some declared update changes."""
        return {
            name
            for pattern in self.design.write_patterns
            for change in pattern.trace()
            if change.entity is entity and change.kind == "update"
            for name in change.fields
        }

    def _default(self, entity: type[Entity], name: str) -> Any:
        """Return the default of a field, or ``_UNKNOWN`` if it differs from item to item."""
        maker = info(entity).default_maker(name)
        if maker is None or info(entity).fields[name].role not in (None, "ident"):
            return _UNKNOWN
        value = maker()
        return value if plain(value) == plain(maker()) else _UNKNOWN

    def _life(self, entity: type[Entity], name: str) -> list[Any]:
        """Return the values that a field has in the life of an item, in the order of its type.

        An item begins with the default. Each of its updates goes to the next value. Returns nothing
        if the field has no default, or if no items are created.
        """
        named = self._named_values(entity, name)
        default = self._default(entity, name)
        texts = [plain(each) for each in named]
        if default is _UNKNOWN or plain(default) not in texts:
            return []
        created, updated = 0.0, 0.0
        for pattern in self.design.write_patterns:
            for change in pattern.trace():
                if change.entity is not entity:
                    continue
                if change.kind == "create":
                    created += pattern.rps * change.times
                elif change.kind == "update" and name in change.fields:
                    updated += pattern.rps * change.times
        created += self.design.declared_writes.get(entity, 0.0)
        if not created:
            return []
        steps = max(1, round(updated / created))
        first = texts.index(plain(default))
        return [named[(first + at) % len(named)] for at in range(steps + 1)]

    def _absent_share(self, entity: type[Entity], name: str) -> float | None:
        """Return the share of undeclared updates of a field that find an item without it.

        As many items get a value as are created without one. Returns None if every item has the
        field, or if no items are created without it.
        """
        known = info(entity).fields.get(name)
        if known is None or not isinstance(known.shape, Maybe) or self._named_values(entity, name):
            return None
        gained, open_rate = 0.0, 0.0
        writes = [
            (change, pattern.rps * change.times)
            for pattern in self.design.write_patterns
            for change in pattern.trace()
        ]
        writes += [
            (DeclaredWrite("create", each), rate)
            for each, rate in self.design.declared_writes.items()
        ]
        is_created = False
        for change, rate in writes:
            if change.entity is not entity or not rate:
                continue
            before = _absence(change.before, name)
            after = _absence(change.after, name)
            if change.kind == "create":
                if after is None and self._default(entity, name) is not None:
                    return None  # every new item has a value, or some do
                is_created = True
                gained += rate * (1.0 if after is None else float(after))
            elif change.kind == "delete":
                share = 1.0 - self.shape.present_share(entity, name)
                gained -= rate * (share if before is None else float(before))
            elif name in change.fields and (before, after) == (None, None):
                open_rate += rate
            elif name in change.fields:
                gained += rate * (float(after or False) - float(before or False))
        if not is_created or not open_rate or gained <= 0:
            return None
        return min(1.0, gained / open_rate)

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
        """Return new values for the fields of an update, each different from the stored one.

        Fields that every update sets by itself are left out.
        """
        known = info(type(item))
        names = known.python_names
        self._calls += 1
        declared = self._declared(change.entity, change.after, self._calls)
        found = {}
        for name in change.fields:
            if name in known.own_fields and known.fields[name].role not in _SET_BY_WRITES:
                before = getattr(item, name, None)
                found[names.get(name, name)] = (
                    declared[name] if name in declared else self._other(change.entity, name, before)
                )
        return found

    def _other(self, entity: type[Entity], name: str, value: Any) -> Any:
        if info(entity).fields[name].role == "unique":
            return getattr(self.generator.items(entity, {}, 1)[0], name)
        named = self._named_values(entity, name)
        life = self._life(entity, name)
        if plain(value) in map(plain, life[:-1]):
            return life[[plain(each) for each in life].index(plain(value)) + 1]
        kept = self._kept_part(entity, name, value)
        if kept is not None:
            return kept
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
        return self._with_other_prefixes(entity, name, found)

    def _with_other_prefixes(self, entity: type[Entity], name: str, value: Any) -> Any:
        """Return the text ``value`` with new prefixes, if keys contain prefixes of the field.

        All generated texts of a field start alike, so such a key would otherwise not change.
        """
        for part in sorted(self._prefixes(entity, name), key=lambda each: each.length):
            value = with_part(part, part_text(part, self._serial), value, 0, 1)
            self._serial += 1
        return value

    def _prefixes(self, entity: type[Entity], name: str) -> set[DerivedPart]:
        """Return the prefixes of a field that the entity's keys contain."""
        known = info(entity)
        return {
            part
            for key in self.plan.entity(known.name).keys
            for one in key.template.parts
            if (part := derived_part(one.name)) is not None
            and part.field == name
            and not part.is_time
        }

    def _kept_part(self, entity: type[Entity], name: str, value: Any) -> Any:
        """Return a new value that changes the derived part in a key as often as declared.

        A ``moving`` fact says what share of the updates changes the part. These updates are spread
        evenly. Without a fact, half of the updates change a prefix, which is a guess, and a time
        grows by the average time between two updates. None lets the caller choose any new value.
        """
        for fact in self.design.facts.all:
            if not isinstance(fact, MovingFact) or fact.entity is not entity:
                continue
            part = derived_part(fact.name)
            if part is None or part.field != name:
                continue
            key = entity, name
            at = self._moved[key] = self._moved.get(key, 0) + 1
            is_due = (at * _STEP) % 1.0 < fact.part
            if is_due and isinstance(value, str):
                self._serial += 1
                return f"{self._serial:0{part.length}d}"[-part.length :] + value[part.length :]
            if is_due:
                return None  # this update changes the part
            if isinstance(value, str):
                return value[: part.length] + value[part.length :][::-1] + "~"
            if isinstance(value, datetime):
                return value.replace(second=(value.second + 1) % 60)
        prefixes = self._prefixes(entity, name)
        if isinstance(value, str) and prefixes:
            for part in prefixes:
                shown = f"{entity.__name__}.{name}"
                self.shape.guesses.add(
                    f"half of the changes of {shown} change {part.shown(shown)}; declare "
                    f"moving({part.shown(shown)}, ...)"
                )
            key = entity, name
            at = self._moved[key] = self._moved.get(key, 0) + 1
            longest = max(part.length for part in prefixes)
            return value[:longest] + value[longest:][::-1] + "~" if at % 2 else None
        if isinstance(value, datetime):
            rate = sum(
                pattern.rps * change.times
                for pattern in self.design.write_patterns
                for change in pattern.trace()
                if change.entity is entity and name in change.fields
            )
            between = self.shape.volume(entity) / rate if rate else 0.0
            if 0 < between < _LONG_SECONDS:
                return value + timedelta(seconds=max(0.001, between))
        return None

    @staticmethod
    def _named_values(entity: type[Entity], name: str) -> list[Any]:
        """Return the values of an Enum, a Literal or a bool; none for any other type.

        An update changes such a field to any other value with the same likelihood. Declared shares
        are not used here: they say how frequent values are, not what updates change them to.
        """
        match inner(info(entity).fields[name].shape):
            case Choice(values, _, enum):
                return [each if enum is None else enum(each) for each in values]
            case Scalar(python) if python is bool:
                return [False, True]
        return []


def _absence(states: Sequence[Comparison], name: str) -> bool | None:
    """Return whether declared states say that a field is absent, or None if they do not say."""
    for each in states:
        if each.field.name == name:
            is_none = each.operator == "=" and each.values == (None,)
            return each.operator == "not_exists" or is_none
    return None

"""Generates items of the declared shape, one collection at a time. Every run gives the same items.

A collection is the items of one entity that share some values, such as the orders of one user. The
other fields take all their declared values, whether or not the items they name are generated: the
orders of one user name products out of the whole catalogue.

Values are spread by additive recurrences (``frac(n * sqrt(prime))``, one prime for each field)
rather than at random. The values are evenly spread in every field and every combination of fields.
This holds even for the first hundred items of a million, so a small collection has no sampling
noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, Final

from stator.design.entities.conditions import Comparison, Condition
from stator.design.entities.derived_parts import PartComparison, derived_part, source_field
from stator.design.entities.entity import Entity, EntityField, EntityInfo, info
from stator.design.entities.entity_versions import UNKNOWN
from stator.design.entities.shapes import (
    CLASS_TAG,
    Choice,
    Epoch,
    ListOf,
    Maybe,
    Scalar,
    SetOf,
    Shape,
)
from stator.design.patterns.condition_contents import references
from stator.design.patterns.param import Param
from stator.design.value_facts import possible_values
from stator.model.values import item_size
from stator.verification.condition_evaluator import holds
from stator.verification.declared_shape import DeclaredShape, inner, plain
from stator.verification.sample_parts import part_text, sample_with_part, with_part
from stator.verification.sample_values import (
    LARGE_BYTES,
    TEXT_BYTES,
    ValueDomain,
    filler,
    holds_text,
    make,
)

_PRIMES: Final = (
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 43, 67, 73, 97, 151, 179, 199, 373, 379, 389, 409, 467,
    521, 523, 617, 647, 967, 977, 1033, 1151, 1193,
)  # fmt: skip
"""Primes whose roots spread a dozen numbers well, each alone and every two of them together.

Others do not: the root of 101 is 10.05, so twenty numbers in a row are close to each other.
"""
_ROOTS: Final = tuple(math.sqrt(prime) for prime in _PRIMES)
_FIELD_SLOTS: Final = 20
_PRESENCE_SLOTS: Final = 8
_EXPIRES: Final = datetime(2035, 1, 1, tzinfo=UTC)
_MOST_SERIALS: Final = 2**31
_MOST_DAYS: Final = 2**21
"""The most different dates that are generated: dates end with the year 9999."""
_LARGE_TEXT_BYTES: Final = LARGE_BYTES * 4 // 3
"""Letters and digits compress to three quarters of their size."""
_TRIES: Final = 24
_PADDING: Final = "_"
"""An attribute that no class knows. It takes the bytes that the texts of an item cannot."""
_SIZED: Final = 60
"""The number of items whose mean size is compared with the declared size."""
_ROUNDS: Final = 6
_TOO_LARGE: Final = 0.01
"""Items may be larger than declared by this share before the report mentions it."""


class ItemGenerator:
    """Makes the items of one measurement. Two items never have the same identity."""

    def __init__(self, shape: DeclaredShape, named: Mapping[type[Entity], frozenset[str]]) -> None:
        """Create a generator.

        ``named`` has the fields that patterns, keys and indexes name. Padding an item to its
        declared size does not change these fields.
        """
        self.shape = shape
        self._named = named
        self._serials: dict[type[Entity], int] = {}
        self._domains: dict[tuple[type[Entity], str], ValueDomain] = {}
        self._constants: dict[tuple[type[Entity], str], list[Any]] = {}
        self._shares: dict[tuple[type[Entity], str], list[tuple[Any, float]]] = {}
        self._slots: dict[tuple[type[Entity], str], int] = {}
        self._lengths: dict[type[Entity], dict[str, int]] = {}

    def items(
        self,
        entity: type[Entity],
        fixed: Mapping[str, Any],
        count: int,
        *,
        chances: Mapping[str, tuple[tuple[Any, ...], float]] | None = None,
        conditions: Sequence[tuple[Condition, float]] = (),
        present: frozenset[str] = frozenset(),
        most: int | None = None,
    ) -> list[Any]:
        """Return ``count`` items that have the ``fixed`` values.

        ``chances`` maps each filtered field to the values that the filter accepts, and to the share
        of items that get one of them. ``conditions`` pairs each condition with the share of items
        that meet it. ``present`` names fields that are never None. ``most`` is the size of the
        whole collection, ``count`` by default: several calls may generate one collection.
        """
        made = []
        for _ in range(count):
            serial = self._serials.get(entity, 0)
            self._serials[entity] = serial + 1
            cls = self._class_of(entity, fixed, serial)
            values = self._values(
                entity, cls, fixed, serial, chances or {}, present, count if most is None else most
            )
            for at, (condition, share) in enumerate(conditions):
                self._settle(entity, values, at, condition, share, serial, fixed)
            made.append(self._object(entity, cls, values))
        return made

    def draw(self, entity: type[Entity], name: str, serial: int) -> Any:
        """Return the value of a field for the item with this number.

        Over many items, the values are as frequent as declared.
        """
        at = _spread(self._slot(entity, name), serial)
        declared = self._declared_shares(entity, name)
        for value, share in declared:
            if at < share:
                return value
            at -= share
        left = max(1e-9, 1 - sum(share for _, share in declared))
        count = self.domain(entity, name).count
        if not declared:
            return self.value(entity, name, math.floor(at * count))
        taken = {plain(value) for value, _ in declared}
        return self._other_than(entity, name, math.floor(at / left * count), taken)

    def _declared_shares(self, entity: type[Entity], name: str) -> list[tuple[Any, float]]:
        """Return the values whose share of the items is declared, with their shares.

        The value of a ``largest()`` fact is the field's value number 0.
        """
        found = self._shares.get((entity, name))
        if found is None:
            found = [
                (self._typed(entity, name, value), share)
                for value, share in self.shape.spread(entity, name)
            ]
            heavy = self.shape.largest(entity, name)
            if heavy is not None and not found:
                found = [(self.value(entity, name, 0), heavy)]
            self._shares[entity, name] = found
        return found

    def _other_than(self, entity: type[Entity], name: str, number: int, declared: set[Any]) -> Any:
        found = self.value(entity, name, number)
        for step in range(1, len(declared) + 1):
            if plain(found) not in declared:
                break
            found = self.value(entity, name, number + step)
        return found

    def value(self, entity: type[Entity], name: str, number: int) -> Any:
        """Return a field's value by its number, counted from 0.

        The first numbers stand for the constants that patterns compare the field with.
        """
        part = derived_part(name)
        if part is not None:
            return part_text(part, number % max(1, math.floor(self.domain(entity, name).count)))
        domain = self.domain(entity, name)
        constants = self._known_constants(entity, name)
        number %= max(1, math.floor(domain.count))
        if number < len(constants):
            return constants[number]
        size = possible_values(info(entity), name)
        if size is not None:  # each of the few values has one number
            known = {plain(each) for each in constants}
            others = [each for each in map(domain.value, range(size)) if plain(each) not in known]
            number -= len(constants)
            return others[number % len(others)] if others else constants[number % len(constants)]
        return domain.value(number)

    def domain(self, entity: type[Entity], name: str) -> ValueDomain:
        found = self._domains.get((entity, name))
        if found is None:
            declared = info(entity).fields[source_field(name)]
            text_bytes = self._text_bytes(entity, declared)
            with self.shape.unrecorded():
                count = self.shape.values(entity, (name,))
            word = self._word(entity, source_field(name), 0)
            found = ValueDomain(declared.shape, word, count, text_bytes)
            self._domains[entity, name] = found
        return found

    # -- one item

    def _class_of(self, entity: type[Entity], fixed: Mapping[str, Any], serial: int) -> type[Any]:
        variants = info(entity).variants
        if not variants:
            return entity
        tag = fixed.get(CLASS_TAG)
        return variants[tag] if tag in variants else list(variants.values())[serial % len(variants)]

    def _values(
        self,
        entity: type[Entity],
        cls: type[Any],
        fixed: Mapping[str, Any],
        serial: int,
        chances: Mapping[str, tuple[tuple[Any, ...], float]],
        present: frozenset[str],
        most: int,
    ) -> dict[str, Any]:
        known = info(cls)
        found = {name: value for name, value in fixed.items() if name in known.own_fields}
        found |= self._identity(entity, known, fixed, serial, most, chances)
        for name, declared in known.own_fields.items():
            if name in found:
                continue
            if name in chances:
                found[name] = self._chosen(entity, name, *chances[name], serial)
            elif self._is_absent(entity, declared, serial, present):
                found[name] = None
            else:
                found[name] = self._field(entity, declared, serial)
        self._set_parts(entity, found, fixed, serial, chances)
        return found

    def _set_parts(
        self,
        entity: type[Entity],
        values: dict[str, Any],
        fixed: Mapping[str, Any],
        serial: int,
        chances: Mapping[str, tuple[tuple[Any, ...], float]],
    ) -> None:
        """Change fields of an item so that they have the wanted derived parts, such as a month.

        ``fixed`` has the derived parts that all items of the collection have; ``chances`` those
        that a call asks for. If several derived parts are wanted for one field, the finest decides.
        """
        wanted = {name: str(text) for name, text in fixed.items()}
        wanted |= {
            name: str(texts[0])
            for name, (texts, share) in chances.items()
            if texts and _spread(self._slot(entity, source_field(name)), serial) < share
        }
        parts = [(part, text) for name, text in wanted.items() if (part := derived_part(name))]
        number = serial * _stride(_MOST_SERIALS) % _MOST_SERIALS
        for part, text in sorted(parts, key=lambda each: each[0].length):
            if part.field in values and part.field not in fixed:
                drawn = values[part.field]
                if drawn is None:
                    declared = info(entity).fields[part.field]
                    drawn = self._field(entity, declared, serial)
                values[part.field] = with_part(part, text, drawn, number, _MOST_SERIALS)

    def _chosen(
        self, entity: type[Entity], name: str, wanted: tuple[Any, ...], share: float, serial: int
    ) -> Any:
        if wanted and _spread(self._slot(entity, name), serial) < share:
            return wanted[serial % len(wanted)]
        asked = [plain(value) for value in wanted]
        other = self.draw(entity, name, serial)
        for step in range(1, _TRIES):
            if plain(other) not in asked:
                break
            other = self.draw(entity, name, serial + step * 7)
        return other

    def _is_absent(
        self, entity: type[Entity], declared: EntityField, serial: int, present: frozenset[str]
    ) -> bool:
        if declared.role == "soft_delete":
            return True
        if not isinstance(declared.shape, Maybe) or declared.name in present:
            return False
        if declared.name not in self._named.get(entity, ()) or declared.role == "ttl":
            return False
        with self.shape.unrecorded():
            present_share = self.shape.present_share(entity, declared.name)
        return _spread(self._presence_slot(entity, declared.name), serial) >= present_share

    def _field(self, entity: type[Entity], declared: EntityField, serial: int) -> Any:
        shape = inner(declared.shape)
        if declared.role == "version":
            return 1
        if declared.role == "write_token":
            return f"{serial:016d}"
        if declared.role == "ttl":
            moment = _EXPIRES + timedelta(seconds=serial)
            return int(moment.timestamp()) if shape == Scalar(int) else moment
        if declared.role == "unique" or declared.name == CLASS_TAG:
            return make(shape, self._word(entity, declared.name, 0), serial, _MOST_SERIALS)
        return self.draw(entity, declared.name, serial)

    def _identity(
        self,
        entity: type[Entity],
        known: EntityInfo,
        fixed: Mapping[str, Any],
        serial: int,
        most: int,
        chances: Mapping[str, tuple[tuple[Any, ...], float]],
    ) -> dict[str, Any]:
        """Return values for the identity fields not in ``fixed``, so that the identity is unique.

        The field with the most values gets a different value in every item. The other fields can
        therefore be spread like any field.
        """
        free = [name for name in known.identity if name not in fixed]
        if not free:
            return {}
        chosen = max(free, key=lambda name: (self.domain(entity, name).count, name))
        found = {
            name: self._chosen(entity, name, *chances.get(name, ((), 0.0)), serial)
            for name in free
            if name != chosen
        }
        domain = self.domain(entity, chosen)
        room = math.floor(domain.count)
        if len(free) == len(known.identity) or room < 4 * most:
            room = max(room, _MOST_DAYS if inner(domain.shape) == Scalar(date) else _MOST_SERIALS)
        is_number = inner(domain.shape) == Scalar(int)
        number = serial if is_number else (serial * _stride(room)) % room
        found[chosen] = make(domain.shape, domain.word, number, room, domain.text_bytes)
        if found[chosen] in chances.get(chosen, ((), 0.0))[0]:  # a value that a call asks for
            found[chosen] = make(domain.shape, domain.word, room + serial, room, domain.text_bytes)
        return found

    def _object(self, entity: type[Entity], cls: type[Any], values: Mapping[str, Any]) -> Any:
        names = info(cls).python_names
        made = cls(**{names.get(name, name): value for name, value in values.items()})
        missing = self._lengths.get(entity, {}).get(_PADDING, 0)
        if missing > 0:
            text = filler(missing - len(_PADDING), 0)
            vars(made)[UNKNOWN] = {_PADDING: {"S": text}}
        return made

    # -- conditions with constants

    def _settle(
        self,
        entity: type[Entity],
        values: dict[str, Any],
        at: int,
        condition: Condition,
        share: float,
        serial: int,
        fixed: Mapping[str, Any],
    ) -> None:
        """Change the ``values`` of one item so that it meets a condition, or does not meet it.

        The item's ``serial`` decides which, so that a ``share`` of all items meets the condition.
        ``at`` is the index of the condition. Only fields that the condition names and that are not
        in ``fixed`` are changed. After ``_TRIES`` attempts, the last values stay.
        """
        wanted = _spread(_FIELD_SLOTS + _PRESENCE_SLOTS + at, serial) < share
        names = [
            name
            for name in dict.fromkeys(each.name for each in references(condition))
            if name in values and name not in fixed
        ]
        for attempt in range(_TRIES):
            if holds(condition, SimpleNamespace(**values), {}) == wanted or not names:
                return
            name = names[attempt % len(names)]
            options = self._options(entity, name, condition, serial + attempt * 13)
            values[name] = options[attempt // len(names) % len(options)]

    def _options(
        self, entity: type[Entity], name: str, condition: Condition, serial: int
    ) -> list[Any]:
        declared = info(entity).fields[name]
        found = [self.draw(entity, name, serial)]
        for value in _constants(condition, name, inner(declared.shape)):
            found += _neighbours(value, inner(declared.shape), found[0])
        return found + ([None] if isinstance(declared.shape, Maybe) else [])

    def _typed(self, entity: type[Entity], name: str, value: Any) -> Any:
        shape = inner(info(entity).fields[name].shape)
        is_enum = isinstance(shape, Choice) and shape.enum is not None
        return shape.enum(value) if is_enum else value  # type: ignore[union-attr,misc]

    def _known_constants(self, entity: type[Entity], name: str) -> list[Any]:
        """Return the constants that patterns compare a field with, unless its type lists them."""
        found = self._constants.get((entity, name))
        if found is None:
            found = []
            shape = inner(info(entity).fields[name].shape)
            if isinstance(shape, Scalar) and shape.python is not bool:
                tests = [
                    test
                    for pattern in self.shape.design.reads
                    for test in pattern.trace().tests
                    if test.operator in ("=", "in") and test.field.path == (name,)
                    and issubclass(entity, test.field.owner)
                ]  # fmt: skip
                values = [value for test in tests for value in test.values if value is not None]
                found = list(
                    dict.fromkeys(value for value in values if not isinstance(value, Param))
                )
            self._constants[entity, name] = found
        return found

    # -- words, sizes and slots

    def _word(self, entity: type[Entity], name: str, depth: int) -> str:
        """Return the word that the values of a field start with: ``status`` for Order.status.

        The word of an identity is the entity's name. A field that refers to another entity has the
        word of that entity's identity, so that both fields have the same values.
        """
        known = info(entity)
        if known.identity != (name,) and depth < 4:
            for reference in self.shape.references[entity]:
                theirs = dict(reference.fields).get(name)
                if theirs is not None:
                    return self._word(reference.parent, theirs, depth + 1)
        return known.name.lower() if known.identity == (name,) else name.removesuffix("_id")

    def _text_bytes(self, entity: type[Entity], declared: EntityField) -> int:
        if entity not in self._lengths:
            self._lengths[entity] = {}
            self._lengths[entity] = self._padding(entity)
        default = _LARGE_TEXT_BYTES if declared.role == "large" else TEXT_BYTES
        return self._lengths[entity].get(declared.name, default)

    def _padding(self, entity: type[Entity]) -> dict[str, int]:
        """Return, by field, the length of text that gives items their declared size on average.

        The entry ``_PADDING`` has the number of bytes that are still missing. An extra attribute of
        each item fills them. Returns an empty dict if no size is declared.
        """
        wanted = self.shape.design.sizes.get(entity)
        if wanted is None:
            self.shape.guesses.add(
                f"the size of {info(entity).name} follows from its types; declare "
                f"sizes={{{entity.__name__}: ...}}"
            )
            return {}
        padded = self._padded_fields(entity)
        missing = wanted - self._mean_bytes(entity, {})
        best: tuple[dict[str, int], float] = {}, missing
        length = float(TEXT_BYTES)
        for _ in range(_ROUNDS if padded else 0):
            length = max(1.0, math.floor(length + missing / len(padded)))
            length += length == TEXT_BYTES  # which would make each text of a list as long
            lengths = dict.fromkeys(padded, int(length))
            missing = wanted - self._mean_bytes(entity, lengths)
            # Texts in a list are cut to equal lengths, so some bytes may be left for _PADDING.
            if 0 <= missing < best[1] or best[1] < 0:
                best = lengths, missing
            if 0 <= missing < 1:
                break
        lengths, missing = best
        if missing < -wanted * _TOO_LARGE:
            self.shape.guesses.add(
                f"a {info(entity).name} has at least {wanted - missing:,.0f} bytes, with "
                f"identifiers of {TEXT_BYTES}; declare sizes={{{entity.__name__}: ...}} of that or "
                "more"
            )
        return {**lengths, _PADDING: max(0, round(missing))}

    def _mean_bytes(self, entity: type[Entity], lengths: Mapping[str, int]) -> float:
        """Return the mean size of an entity's items if its texts have these lengths."""
        trial = ItemGenerator(self.shape, self._named)
        trial._lengths[entity] = dict(lengths)
        samples = trial.items(entity, {}, _SIZED)
        return sum(item_size(info(type(each)).codec.encode(each)) for each in samples) / _SIZED

    def _padded_fields(self, entity: type[Entity]) -> list[str]:
        """Return the fields that take up the declared size: large fields, or else any free text."""
        known = info(entity)
        texts = {
            name: each
            for name, each in known.fields.items()
            if each.role in (None, "large") and holds_text(each.shape)
        }
        free = {
            name: each for name, each in texts.items() if name not in self._named.get(entity, ())
        }
        return [name for name, each in free.items() if each.role == "large"] or list(free)

    def _slot(self, entity: type[Entity], name: str) -> int:
        found = self._slots.get((entity, name))
        if found is None:
            named = self._named.get(entity, frozenset())
            fields = sorted(info(entity).fields, key=lambda each: each not in named)
            found = self._slots[entity, name] = fields.index(name) % _FIELD_SLOTS
        return found

    def _presence_slot(self, entity: type[Entity], name: str) -> int:
        return _FIELD_SLOTS + self._slot(entity, name) % _PRESENCE_SLOTS


def _spread(slot: int, serial: int) -> float:
    """Return the number from 0 to 1 that belongs to item number ``serial``.

    A slot is the sequence of numbers for one field. The numbers in a slot are evenly spread, and
    the slots are independent of each other.
    """
    return (serial + 0.5) * _ROOTS[slot % len(_ROOTS)] % 1.0


def _stride(room: int) -> int:
    """Return a step for which ``n * step % room`` gives every number below ``room`` once.

    The step is large, so that neighbouring items get distant numbers.
    """
    step = max(1, int(room * 0.6180339887498949)) | 1
    while math.gcd(step, room) != 1:
        step += 2
    return step


def _constants(condition: Condition, name: str, shape: Shape) -> list[Any]:
    if isinstance(condition, Comparison) and condition.field.name != name:
        return []
    if isinstance(condition, PartComparison):
        return [sample_with_part(condition.derived, condition.values[0], shape)]
    if isinstance(condition, Comparison):
        return list(condition.values)
    operands = getattr(condition, "operands", None) or (condition.operand,)  # type: ignore[attr-defined]
    return [value for each in operands for value in _constants(each, name, shape)]


def _neighbours(value: Any, shape: Any, drawn: Any) -> list[Any]:
    """Return values of a field that lie near a constant of a condition.

    Usually the condition is true for some of them and false for others. ``value`` is the constant,
    ``shape`` the field's shape, and ``drawn`` a generated value of the field. The results are the
    constant and its neighbours, a list or text that contains it, or all values of an Enum or
    Literal.
    """
    if isinstance(shape, Choice):
        return [shape.enum(each) if shape.enum else each for each in shape.values]
    if isinstance(shape, (ListOf, SetOf)):
        return [type(drawn)([value, *list(drawn)[1:]])]
    if isinstance(value, bool):
        return [value, not value]
    if isinstance(value, (int, float, Decimal)):
        return [value, value - 1, value + 1]
    if isinstance(value, (datetime, date)) and shape != Scalar(Epoch):
        return [value, value - timedelta(days=1), value + timedelta(days=1)]
    if isinstance(value, str):
        return [value, value + "~", str(drawn)[:8] + value]
    return [value]

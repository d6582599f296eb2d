"""The arguments of sample calls: values that exist, and ranges that match as much as declared.

Values that are compared for equality are chosen before the items are generated, spread over all
values of the field. Ranges are chosen afterwards, from the items: so that a call returns as many as
``returns`` declares, or a third of the items under the other conditions if it does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from stator.design.entities.conditions import (
    All,
    Any_,
    Comparison,
    Condition,
    FieldRef,
    Inverse,
)
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import ListOf, Scalar, SetOf, Shape
from stator.design.patterns.pattern import Ask, Param, Pattern
from stator.verification.condition_evaluator import field_value, holds, params_of
from stator.verification.declared_shape import (
    KEPT_SHARE,
    DeclaredShape,
    compared_name,
    inner,
    plain,
)
from stator.verification.item_generator import ItemGenerator
from stator.verification.sample_values import make

_EQUAL: Final = ("=", "in", "in_list", "part")
_MEMBERS: Final = 5
"""The members of a list argument."""
_LIMIT: Final = 25
"""The limit of a call whose limit is an argument, if ``returns`` is not declared."""


class CallArguments:
    """Chooses the arguments of calls of one pattern."""

    def __init__(
        self, pattern: Pattern[..., Any], shape: DeclaredShape, generator: ItemGenerator
    ) -> None:
        self.pattern = pattern
        self.ask: Ask = pattern.trace()
        self.shape = shape
        self.generator = generator

    def conditions(self, entity: type[Entity]) -> list[Condition]:
        """Return the pattern's conditions on one of its entities."""
        return [
            each
            for each in (*self.ask.tests, *self.ask.filters)
            if all(issubclass(entity, one.field.owner) for one in comparisons(each))
        ]

    def asked(self, entity: type[Entity], exact: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        """Return the values that a call asks for: each field with one value, or one of several.

        A pattern over several entities compares a field of one of them. Those of the others that
        have the same name have the same value.
        """
        found: dict[str, tuple[Any, ...]] = {}
        for test in self._equal_tests():
            is_own = issubclass(entity, test.field.owner)
            name = compared_name(test)
            if test.field.name not in info(entity).fields or (name in found and not is_own):
                continue
            options = _options(test, exact)
            if options is not None and (is_own or test.operator in ("=", "part")):
                found[name] = options
        return found

    def filters(self, entity: type[Entity]) -> list[Condition]:
        """Return the conditions without arguments that are no equalities."""
        equal = self._equal_tests()
        return [
            each
            for each in self.conditions(entity)
            if not params_of(each) and all(each is not one for one in equal)
        ]

    def _equal_tests(self) -> list[Comparison]:
        """Return the comparisons of fields, and of parts of them, with one or several values."""
        return [
            each
            for each in (*self.ask.tests, *self.ask.filters)
            if isinstance(each, Comparison)
            and len(each.field.path) == 1
            and (each.operator in _EQUAL or each.operator == "not_exists")
        ]

    def samples(self) -> int:
        """Return how many calls with different values there can be."""
        with self.shape.unrecorded():
            counts = [
                self.shape.values(entity, (name,)) for entity, name, _, _ in self._equalities()
            ]
        return max(1, math.floor(max(counts))) if counts else 1

    def exact(self, sample: int, samples: int) -> dict[str, Any]:
        """Return the arguments that fields are compared with for equality."""
        found: dict[str, Any] = {}
        for entity, name, params, is_list in self._equalities():
            count = max(1, math.floor(self.generator.domain(entity, name).count))
            first = math.floor((sample + 0.5) / samples * count)
            if is_list:
                self.shape.guesses.add(f"{params[0]} has {_MEMBERS} members")
                numbers = range(first, first + min(_MEMBERS, count))
                members = [self._value(entity, name, number, count) for number in numbers]
                found.setdefault(params[0], members)
                continue
            for at, param in enumerate(params):
                found.setdefault(param, self._value(entity, name, first + at, count))
        limit = self.ask.limit
        if isinstance(limit, Param):
            returns = self.pattern.traffic.returns
            if returns is None:
                self.shape.guesses.add(f"{limit.name} is {_LIMIT}; declare returns=...")
            found[limit.name] = _LIMIT if returns is None else max(1, round(returns))
        return found

    def _value(self, entity: type[Entity], name: str, number: int, count: int) -> Any:
        number %= count
        if self.shape.largest(entity, name) is not None and number == 0 and count > 1:
            number = 1  # number 0 is the largest value, which no usual call asks for
        return self.generator.value(entity, name, number)

    def _equalities(self) -> list[tuple[type[Entity], str, list[str], bool]]:
        """Return the fields, and parts of fields, that are compared with arguments for equality.

        Each comes with the names of the arguments, and whether the argument is a list.
        """
        found = []
        for test in self._equal_tests():
            params = [each.name for each in test.values if isinstance(each, Param)]
            entity = self._owner(test)
            if params and entity is not None:
                found.append((entity, compared_name(test), params, test.operator == "in_list"))
        return found

    def _owner(self, test: Comparison) -> type[Entity] | None:
        owners = [each for each in self.ask.targets if issubclass(each, test.field.owner)]
        return cast("type[Entity]", owners[0]) if owners else None

    def whole(
        self, exact: dict[str, Any], items: Sequence[Any], *, everything: bool = False
    ) -> dict[str, Any]:
        """Return all arguments: the exact ones, and those of ranges and filters.

        With ``everything``, the range that decides how much a call returns covers all items.
        """
        found = dict(exact)
        groups = self._open_groups(found)
        returns = self.pattern.traffic.returns
        for at, group in enumerate(reversed(groups)):
            entity = self._owner(group[0])
            assert entity is not None
            open_params = set(self.pattern.parameters) - found.keys()
            known = [
                each
                for each in self.conditions(entity)
                if not open_params & {param.name for param in params_of(each)}
            ]
            matching = [
                each
                for each in items
                if isinstance(each, entity) and all(holds(one, each, found) for one in known)
            ]
            is_last = at == len(groups) - 1
            if returns is not None and is_last:
                wanted = min(len(matching), max(1, round(returns)))
                if isinstance(self.ask.limit, int) and returns >= self.ask.limit:
                    # The limit cuts the result off, so the range keeps more.
                    wanted = max(wanted, round(len(matching) * KEPT_SHARE))
                if everything:
                    matching = [each for each in items if isinstance(each, entity)]
                    wanted = len(matching)
            else:
                self.shape.guesses.add(
                    f"{group[0].field!r} {group[0].operator} ... keeps a third; declare returns=..."
                )
                wanted = round(len(matching) * KEPT_SHARE)
            found |= self._chosen(entity, group, matching, wanted)
        for name in self.pattern.parameters:
            found.setdefault(name, None)
        return found

    def _put_inside(
        self, entity: type[Entity], test: Comparison, matching: list[Any], wanted: int
    ) -> Any:
        """Return a value that as many items contain as wanted, after putting it into some of them.

        Those at the end get it first: they may not have been stored yet.
        """
        name, shape = test.field.name, inner(info(entity).fields[test.field.name].shape)
        element = "~" if shape == Scalar(str) else _new_element(shape)
        if element is None or len(test.field.path) > 1:
            values = [field_value(test.field, each) for each in matching]
            return next(iter(next((each for each in values if each), ("",))))
        having = [each for each in matching if element in (getattr(each, name) or ())]
        others = [each for each in matching if getattr(each, name) and each not in having]
        missing = wanted - len(having)
        half = others[len(others) // 2 :] if missing <= len(others) // 2 else others
        for at in range(max(0, min(missing, len(half)))):
            chosen = half[at * len(half) // missing]
            object.__setattr__(chosen, name, _added(getattr(chosen, name), element))
        return element

    def _open_groups(self, known: dict[str, Any]) -> list[list[Comparison]]:
        """Return the comparisons with arguments that are not known yet, by field."""
        groups: dict[tuple[Any, ...], list[Comparison]] = {}
        for condition in (*self.ask.tests, *self.ask.filters):
            for test in comparisons(condition):
                if any(isinstance(each, Param) and each.name not in known for each in test.values):
                    groups.setdefault(test.field.path, []).append(test)
        return list(groups.values())

    def _chosen(
        self, entity: type[Entity], group: list[Comparison], matching: list[Any], wanted: int
    ) -> dict[str, Any]:
        name = group[0].field.name
        values = [field_value(group[0].field, each) for each in matching]
        values = sorted((each for each in values if each is not None), key=_sort_key)
        if not values:
            values = [self.generator.value(entity, name, number) for number in range(3)]
            values.sort(key=_sort_key)
        wanted = min(max(wanted, 0), len(values))
        if group[0].operator == "contains" and isinstance(group[0].values[0], Param):
            return {group[0].values[0].name: self._put_inside(entity, group[0], matching, wanted)}
        is_double = len({_side(test) for test in group} & {"low", "high"}) == 2
        found: dict[str, Any] = {}
        for test in group:
            first = (len(values) - wanted) // 2 if is_double else len(values) - wanted
            last = first + wanted - 1 if is_double else wanted - 1
            bounds = _bounds(test, values, first, last)
            for value, given in zip(test.values, bounds):
                if isinstance(value, Param):
                    found[value.name] = given
        return found


def _new_element(shape: Shape) -> Any:
    """Return an element that generated lists or sets of this shape do not have, or None."""
    if isinstance(shape, SetOf):
        return make(shape.element, "chosen", 99, 100)
    if isinstance(shape, ListOf) and not shape.fixed:
        return make(shape.elements[0], "chosen", 99, 100)
    return None


def _added(value: Any, element: Any) -> Any:
    """Return a text, list or set with an element in it that it did not have."""
    if isinstance(value, str):
        return f"{value[: -len(element)]}{element}"
    return type(value)([element, *list(value)[1:]])


def _options(test: Comparison, exact: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the values that an equality allows, or None if they are not known."""
    if test.operator == "not_exists":
        return (None,)
    found: list[Any] = []
    for value in test.values:
        if isinstance(value, FieldRef) or (isinstance(value, Param) and value.name not in exact):
            return None
        given = exact[value.name] if isinstance(value, Param) else value
        found += given if test.operator == "in_list" else [given]
    return tuple(found)


def comparisons(condition: Condition) -> list[Comparison]:
    """Return every comparison in a condition."""
    match condition:
        case Comparison():
            return [condition]
        case All(operands) | Any_(operands):
            return [each for operand in operands for each in comparisons(operand)]
        case Inverse(operand):
            return comparisons(operand)
    raise AssertionError(condition)


def _sort_key(value: Any) -> Any:
    found = plain(value)
    return found if isinstance(found, (int, float, Decimal, str, bytes, date)) else str(found)


def _side(test: Comparison) -> str:
    if test.operator in (">", ">="):
        return "low"
    return "high" if test.operator in ("<", "<=") else test.operator


def _bounds(test: Comparison, values: list[Any], first: int, last: int) -> tuple[Any, ...]:
    """Return the values to compare with, so that ``values[first:last + 1]`` or so match."""
    size = len(values)
    match test.operator:
        case ">=":
            return (values[first] if first < size else _beyond(values[-1], 1),)
        case ">":
            return (values[first - 1] if first >= 1 else _beyond(values[0], -1),)
        case "<=":
            return (values[last] if last >= 0 else _beyond(values[0], -1),)
        case "<":
            return (values[last + 1] if last + 1 < size else _beyond(values[-1], 1),)
        case "between":
            count = last + 1
            low = (size - count) // 2
            return values[low], values[max(low, low + count - 1)]
        case "begins_with":
            return (_prefix(values, last + 1),)
    return tuple(values[size // 2] for _ in test.values)


def _prefix(values: list[Any], wanted: int) -> Any:
    """Return the start of a value that about this many values have."""
    middle = values[len(values) // 2]
    starts = [middle[:length] for length in range(1, len(middle) + 1)]
    return min(
        starts, key=lambda start: abs(sum(each.startswith(start) for each in values) - wanted)
    )


def _beyond(value: Any, direction: int) -> Any:
    """Return a value just above or below a value."""
    found = plain(value)
    if isinstance(found, (datetime, date)):
        return found + timedelta(days=direction)
    if isinstance(found, (int, float, Decimal)):
        return found + direction
    if isinstance(found, str):
        return found + "~" if direction > 0 else found[:-1]
    return value

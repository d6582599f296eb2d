"""The arguments of sample calls: values that exist, and ranges that match enough items.

Values that are compared for equality are chosen before the items are generated, spread over all
values of the field. Ranges are chosen afterwards, from the generated items, so that a call returns
as many items as ``returns`` declares. If ``returns`` is not declared, a range covers a third of the
items that meet the other conditions.
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
from stator.design.patterns.ask import Ask
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import Pattern
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
"""The number of members in a list argument of a sample call."""
_LETTERS: Final = (*range(ord("z"), ord("a"), -1), *range(ord("Z"), ord("A"), -1))
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
        """Return, for each compared field of an entity, the values that a call accepts.

        Usually this is a single value. ``exact`` has the arguments of the call. If a pattern over
        several entities compares the field of only one of them, fields with the same name in the
        other entities have the same value.
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
        """Return the entity's conditions without arguments that are not equality comparisons."""
        equal = self._equal_tests()
        return [
            each
            for each in self.conditions(entity)
            if not params_of(each) and all(each is not one for one in equal)
        ]

    def _equal_tests(self) -> list[Comparison]:
        """Return the equality comparisons (=, IN, absence) of fields and of derived parts."""
        return [
            each
            for each in (*self.ask.tests, *self.ask.filters)
            if isinstance(each, Comparison)
            and len(each.field.path) == 1
            and (each.operator in _EQUAL or each.operator == "not_exists")
        ]

    def samples(self) -> int:
        """Return how many calls with different arguments are possible."""
        with self.shape.unrecorded():
            counts = [
                self.shape.values(entity, (name,)) for entity, name, _, _ in self._equalities()
            ]
        return max(1, math.floor(max(counts))) if counts else 1

    def exact(self, sample: int, samples: int) -> dict[str, Any]:
        """Return the equality arguments of call number ``sample`` out of ``samples`` calls."""
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
        """Return the equality comparisons whose values are arguments.

        Each result has the entity, the field or derived part, the names of the arguments, and
        whether the argument is a list.
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
        """Return all arguments of a call: ``exact``, and the values of its ranges and filters.

        The values are chosen from ``items``, so that the call returns as many items as declared.
        With ``everything``, the range that decides how much the call returns covers all items.
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
                    f"{group[0].field!r} {group[0].operator} ... keeps a third of the items; "
                    f"declare returns=..."
                )
                wanted = round(len(matching) * KEPT_SHARE)
            found |= self._chosen(entity, group, matching, wanted, known, found)
            self._balance(entity, group, items, matching, found)
        for name in self.pattern.parameters:
            found.setdefault(name, None)
        return found

    def _put_inside(
        self, entity: type[Entity], test: Comparison, matching: list[Any], wanted: int
    ) -> Any:
        """Return the argument of a ``contains`` condition that ``wanted`` items should meet.

        The argument is a new value, which is added to some of the ``matching`` items. Items in the
        second half are preferred, because the first ones may be stored already. If the field's type
        allows no new value, a value of an existing item is returned.
        """
        name, shape = test.field.name, inner(info(entity).fields[test.field.name].shape)
        element = "~" if shape == Scalar(str) else _new_element(shape)
        if element is None or len(test.field.path) > 1:
            values = [field_value(test.field, each) for each in matching]
            return next(iter(next((each for each in values if each), ("",))))
        having = [each for each in matching if element in (getattr(each, name) or ())]
        others = [each for each in matching if getattr(each, name) and each not in having]
        for chosen in _from_the_end(others, wanted - len(having)):
            object.__setattr__(chosen, name, _added(getattr(chosen, name), element))
        return element

    def _put_in_front(
        self,
        entity: type[Entity],
        test: Comparison,
        matching: list[Any],
        wanted: int,
        known: list[Condition],
        arguments: Mapping[str, Any],
    ) -> Any:
        """Return a prefix with which exactly ``wanted`` of the ``matching`` items start.

        Generated texts start alike, so most numbers of items have no prefix of their own. Then some
        items get another first letter. Items at the end are changed first, because they may not
        have been stored yet. Each item still meets the ``known`` conditions.
        """
        name = test.field.name
        values = [field_value(test.field, each) for each in matching]
        values = sorted(each for each in values if each)
        found = _prefix(values, wanted) if values else ""
        is_exact = sum(each.startswith(found) for each in values) == wanted
        if is_exact or not values or len(test.field.path) > 1:
            return found
        own = info(entity).fields[name]
        if own.role is not None and own.role != "ident":
            return found
        first = _new_start(values)
        having = [each for each in matching if (getattr(each, name) or first[:0])[:1] == first]
        others = [each for each in matching if getattr(each, name) and each not in having]
        for chosen in _from_the_end(others, wanted - len(having)):
            before = getattr(chosen, name)
            object.__setattr__(chosen, name, first + before[1:])
            if not all(holds(each, chosen, arguments) for each in known):
                object.__setattr__(chosen, name, before)  # a prefix of the field is in the key
                return found
        return first

    def _balance(
        self,
        entity: type[Entity],
        group: list[Comparison],
        items: Sequence[Any],
        matching: list[Any],
        arguments: Mapping[str, Any],
    ) -> None:
        """Put as many filtered-out items into the range of a call as into the whole collection.

        ``matching`` are the items that pass the filters. A range of 20 items out of 10,000 may by
        chance have none of the 8 % that a filter drops. So some of these get another value of the
        ranged field: the value of an item inside of the range, or outside of it.
        """
        field, known = group[0].field, info(entity)
        if len(field.path) > 1 or field.name in known.identity or not matching:
            return
        if known.fields[field.name].role is not None or group[0].operator == "contains":
            return
        passing = set(map(id, matching))
        dropped = [each for each in items if isinstance(each, entity) and id(each) not in passing]

        def is_inside(item: Any) -> bool:
            return all(holds(test, item, arguments) for test in group)

        within = [each for each in matching if is_inside(each)]
        beyond = [each for each in matching if not is_inside(each)]
        inside = [each for each in dropped if is_inside(each)]
        outside = [each for each in dropped if not is_inside(each)]
        wanted = round(len(within) * len(dropped) / len(matching))
        for moved, count, places in (
            (outside, wanted - len(inside), within),
            (inside, len(inside) - wanted, beyond),
        ):
            if count > 0 and places:
                for at, chosen in enumerate(_from_the_end(moved, count)):
                    value = getattr(places[at % len(places)], field.name)
                    object.__setattr__(chosen, field.name, value)

    def _open_groups(self, known: dict[str, Any]) -> list[list[Comparison]]:
        """Return the comparisons with an argument that is not in ``known``.

        There is one list for each field.
        """
        groups: dict[tuple[Any, ...], list[Comparison]] = {}
        for condition in (*self.ask.tests, *self.ask.filters):
            for test in comparisons(condition):
                if any(isinstance(each, Param) and each.name not in known for each in test.values):
                    groups.setdefault(test.field.path, []).append(test)
        return list(groups.values())

    def _chosen(
        self,
        entity: type[Entity],
        group: list[Comparison],
        matching: list[Any],
        wanted: int,
        known: list[Condition],
        arguments: Mapping[str, Any],
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
        if group[0].operator == "begins_with" and isinstance(group[0].values[0], Param):
            start = self._put_in_front(entity, group[0], matching, wanted, known, arguments)
            return {group[0].values[0].name: start}
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


def _from_the_end(items: list[Any], count: int) -> list[Any]:
    """Return ``count`` of the items, evenly spread over their last half if there are enough."""
    half = items[len(items) // 2 :] if count <= len(items) // 2 else items
    return [half[at * len(half) // count] for at in range(max(0, min(count, len(half))))]


def _new_start(values: list[Any]) -> Any:
    """Return a letter with which none of the texts or bytes starts."""
    taken = {each[:1] for each in values}
    letters = [bytes((at,)) if isinstance(values[0], bytes) else chr(at) for at in _LETTERS]
    return next((each for each in letters if each not in taken), letters[0])


def _new_element(shape: Shape) -> Any:
    """Return an element that generated lists or sets of this shape do not have, or None."""
    if isinstance(shape, SetOf):
        return make(shape.element, "chosen", 99, 100)
    if isinstance(shape, ListOf) and not shape.fixed:
        return make(shape.elements[0], "chosen", 99, 100)
    return None


def _added(value: Any, element: Any) -> Any:
    """Return a copy of a text, list or set that contains ``element``.

    The element replaces the end of a text, or the first member of a list or set.
    """
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
    """Return the values to compare with, so that about ``values[first:last + 1]`` match.

    ``values`` are the sorted values of the field.
    """
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
    """Return a prefix that about ``wanted`` of the values start with."""
    middle = values[len(values) // 2]
    starts = [middle[:length] for length in range(1, len(middle) + 1)]
    return min(
        starts, key=lambda start: abs(sum(each.startswith(start) for each in values) - wanted)
    )


def _beyond(value: Any, direction: int) -> Any:
    """Return a value above ``value`` if ``direction`` is 1, and below it if ``direction`` is -1."""
    found = plain(value)
    if isinstance(found, (datetime, date)):
        return found + timedelta(days=direction)
    if isinstance(found, (int, float, Decimal)):
        return found + direction
    if isinstance(found, str):
        return found + "~" if direction > 0 else found[:-1]
    return value

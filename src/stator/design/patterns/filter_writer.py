"""Writes conditions as DynamoDB filter expressions, with placeholders for a pattern's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stator.design.entities.conditions import All, Any_, Comparison, Condition, FieldRef, Inverse
from stator.design.entities.derived_parts import PartComparison
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import (
    ListOf,
    MapOf,
    Maybe,
    Nested,
    OneOf,
    SetOf,
    Shape,
    TypedMap,
    is_packed,
)
from stator.design.entities.wire import encoder
from stator.design.patterns.compared_parts import check_part
from stator.design.patterns.pattern import Param
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Filter, FilterValue, wire_value
from stator.errors import DesignError
from stator.model.values import Value

_OF_PACKED = frozenset({"=", "<>", "in", "exists", "not_exists"})
_OPERATORS = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class FilterWriter:
    """Collects the attribute names and values of the conditions it writes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[FilterValue] = []
        self._terms: list[str] = []

    def add(self, condition: Condition, known: EntityInfo) -> None:
        self._terms.append(self._write(condition, known))

    def term(self, condition: Condition, known: EntityInfo) -> str:
        """Return one condition as expression text.

        Its placeholders are unique within this writer.
        """
        return self._write(condition, known)

    @property
    def names(self) -> dict[str, str]:
        return {placeholder: name for name, placeholder in self._names.items()}

    @property
    def values(self) -> dict[str, Value]:
        """The placeholders of all conditions, with the values they stand for.

        No condition may contain a parameter of a pattern, because its value is not known here.
        """
        return {value.placeholder: value.fill({}) for value in self._values}

    def add_type(self, attribute: str, types: Iterable[str]) -> None:
        """Add a condition that keeps only items of these entities, by their type attribute."""
        self._terms.append(self._is_type(attribute, sorted(types)))

    def add_unless_other(
        self, attribute: str, type_: str, conditions: list[Condition], known: EntityInfo
    ) -> None:
        """Add conditions that apply only to the items of one entity.

        Items of other entities pass.
        """
        written = " AND ".join(self._write(condition, known) for condition in conditions)
        self._terms.append(
            f"({self._name(attribute)} <> {self._constant({'S': type_})} OR ({written}))"
        )

    def done(self) -> Filter | None:
        if not self._terms:
            return None
        names = tuple((placeholder, name) for name, placeholder in self._names.items())
        return Filter(" AND ".join(self._terms), names, tuple(self._values))

    # -- one condition

    def _write(self, condition: Condition, known: EntityInfo) -> str:
        match condition:
            case All(operands):
                return "(" + " AND ".join(self._write(each, known) for each in operands) + ")"
            case Any_(operands):
                return "(" + " OR ".join(self._write(each, known) for each in operands) + ")"
            case Inverse(operand):
                return f"(NOT {self._write(operand, known)})"
            case Comparison():
                return self._compare(condition, known)
        raise AssertionError(condition)

    def _compare(self, test: Comparison, known: EntityInfo) -> str:
        path = self._path(test.field)
        if isinstance(test, PartComparison):
            return f"begins_with({path}, {self._part(test, known)})"
        shape = shape_at(known, test.field)
        if test.operator in ("=", "<>") and test.values[0] is None:
            return self._is_none(path, shape, inverted=test.operator == "<>")
        if is_packed(shape) and test.operator not in _OF_PACKED:
            raise DesignError(
                f"{test.field!r} is packed: DynamoDB can only tell whether it equals a value",
                hint="store the number unpacked, or compare it after reading",
            )
        if test.operator == "contains":
            shape = _element(shape)
        if test.operator == "in_list":
            return f"{path} IN ({self._list(test.values[0], shape)})"
        values = [self._value(value, shape) for value in test.values]
        match test.operator:
            case "exists" | "not_exists":
                return f"attribute_{test.operator}({path})"
            case "begins_with" | "contains":
                return f"{test.operator}({path}, {values[0]})"
            case "between":
                return f"{path} BETWEEN {values[0]} AND {values[1]}"
            case "in":
                return f"{path} IN ({', '.join(values)})"
        return f"{path} {_OPERATORS[test.operator]} {values[0]}"

    def _is_none(self, path: str, shape: Shape | None, *, inverted: bool) -> str:
        if not (isinstance(shape, Maybe) and shape.kept):
            return f"attribute_{'exists' if inverted else 'not_exists'}({path})"
        null = self._constant({"S": "NULL"})
        if inverted:
            return f"(attribute_exists({path}) AND NOT attribute_type({path}, {null}))"
        return f"(attribute_not_exists({path}) OR attribute_type({path}, {null}))"

    def _is_type(self, attribute: str, types: list[str]) -> str:
        values = [self._constant({"S": each}) for each in types]
        name = self._name(attribute)
        return f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"

    # -- names and values

    def _path(self, field: FieldRef) -> str:
        written = ""
        for step in field.path:
            written += (
                f"[{step}]"
                if isinstance(step, int)
                else ("." if written else "") + self._name(step)
            )
        return written

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#f{len(self._names)}")

    def _constant(self, value: Value) -> str:
        self._values.append(FilterValue(f":f{len(self._values)}", constant=value))
        return self._values[-1].placeholder

    def _value(self, value: Any, shape: Shape | None) -> str:
        if isinstance(value, FieldRef):
            return self._path(value)
        if shape is not None and is_packed(shape):
            return self._packed(value, shape)
        encoding = keys.encoding_of(shape) if shape is not None else None
        name = encoding.name if encoding is not None else "any"
        if isinstance(value, Param):
            self._values.append(
                FilterValue(f":f{len(self._values)}", param=value.name, encoding=name)
            )
            return self._values[-1].placeholder
        return self._constant(wire_value(name, value))

    def _part(self, test: PartComparison, known: EntityInfo) -> str:
        check_part(known, test.derived)
        encoding, [value] = f"{test.part}.{test.part}", test.values
        if not isinstance(value, Param):
            return self._constant(wire_value(encoding, value))
        self._values.append(
            FilterValue(f":f{len(self._values)}", param=value.name, encoding=encoding)
        )
        return self._values[-1].placeholder

    def _list(self, value: Any, shape: Shape | None) -> str:
        assert isinstance(value, Param)
        encoding = keys.encoding_of(shape) if shape is not None else None
        if encoding is None:
            raise DesignError(
                f"the list argument {value.name!r} is compared with a field of no plain type",
                hint="compare text, numbers, times or UUIDs",
            )
        self._values.append(
            FilterValue(
                f":f{len(self._values)}", param=value.name, encoding=encoding.name, is_list=True
            )
        )
        return self._values[-1].placeholder

    def _packed(self, value: Any, shape: Shape) -> str:
        if isinstance(value, Param):
            raise DesignError(
                f"a pattern compares a packed field with the argument {value.name!r}",
                hint="compare packed fields with constants only, or store the field unpacked",
            )
        return self._constant(encoder(shape)(value))


def shape_at(known: EntityInfo, field: FieldRef) -> Shape | None:
    """Return the shape of the referenced field, or None if the declared types do not define it."""
    declared = known.fields.get(field.name)
    shape = declared.shape if declared is not None else None
    for step in field.path[1:]:
        shape = _inside(shape, step)
    return shape


def _inside(shape: Shape | None, step: str | int) -> Shape | None:
    match shape:
        case Maybe(inner):
            return _inside(inner, step)
        case Nested(_, fields) | TypedMap(_, fields):
            return next((inner for name, inner, _ in fields if name == step), None)
        case OneOf(_, members):
            found = (_inside(member, step) for _, member in members)
            return next((inner for inner in found if inner is not None), None)
        case MapOf(values):
            return values
        case ListOf(elements):
            return elements[0]
    return None


def _element(shape: Shape | None) -> Shape | None:
    match shape:
        case Maybe(inner):
            return _element(inner)
        case ListOf(elements):
            return elements[0]
        case SetOf(element):
            return element
    return shape

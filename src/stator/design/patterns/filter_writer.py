"""Writes conditions as DynamoDB filter expressions, with placeholders for a pattern's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

from stator.design.entities.conditions import All, Any_, Comparison, Condition, FieldRef, Inverse
from stator.design.entities.derived_parts import PartComparison
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import (
    CLASS_TAG,
    Anything,
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
from stator.design.entities.stored_defaults import (
    StoredDefault,
    compared_fields,
    stored_defaults,
    value_at,
)
from stator.design.entities.wire import encoder
from stator.design.patterns.compared_parts import check_part
from stator.design.patterns.param import Param
from stator.design.plan import key_text as keys
from stator.design.plan.templates import Filter, FilterValue, wire_value
from stator.errors import DesignError
from stator.expr.bind import bind_condition
from stator.expr.condition import evaluate
from stator.expr.parser import parse_condition
from stator.model.values import Value

_OF_PACKED = frozenset({"=", "<>", "in", "exists", "not_exists"})
_OPERATORS = {"=": "=", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class FilterWriter:
    """Collects the attribute names and values of the conditions it writes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: list[FilterValue] = []
        self._terms: list[str] = []
        self._key: str | None = None
        """An attribute of every item, if there may be no item at all."""
        self._is_as_stored = False
        """Whether a missing attribute is left missing, instead of counting as a default."""
        self._stand_ins: dict[str, Value] = {}
        """The defaults that are written in place of fields, by field."""
        self._arguments: dict[str, str] | None = None
        """The placeholders of arguments, while one comparison is written twice."""

    def add(self, condition: Condition, known: EntityInfo) -> None:
        """Add a condition on items. A missing attribute counts as the default of its field."""
        self._terms.append(self._write(condition, known))

    def term(
        self,
        condition: Condition,
        known: EntityInfo,
        key: str | None = None,
        *,
        creates: bool = False,
    ) -> str:
        """Return one condition as expression text.

        Its placeholders are unique within this writer. ``key`` is an attribute that every item has.
        If it is given, an attribute that an item lacks counts as the field's default. Otherwise the
        condition is about the attributes as they are. With ``creates``, an absent item has the
        defaults as well.
        """
        self._key, self._is_as_stored = None if creates else key, key is None
        try:
            return self._write(condition, known)
        finally:
            self._key, self._is_as_stored = None, False

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
        """Add conditions on the items of one entity only; items of other entities pass.

        ``attribute`` is the type attribute, which equals ``type_`` in the items of this entity.
        """
        terms = [self._write(condition, known) for condition in conditions]
        written = f"({' AND '.join(terms)})" if len(terms) > 1 else terms[0]
        if len(terms) == 1 and not written.startswith("("):
            written = f"({written})"
        self._terms.append(
            f"({self._name(attribute)} <> {self._constant({'S': type_})} OR {written})"
        )

    def done(self) -> Filter | None:
        if not self._terms:
            return None
        names = tuple((placeholder, name) for name, placeholder in self._names.items())
        return Filter(" AND ".join(self._terms), names, tuple(self._values))

    # -- one condition

    def _write(self, condition: Condition, known: EntityInfo) -> str:
        match condition:
            case All((operand,)) | Any_((operand,)):  # DynamoDB refuses a second pair of ()
                return self._write(operand, known)
            case All(operands):
                return "(" + " AND ".join(self._write(each, known) for each in operands) + ")"
            case Any_(operands):
                return "(" + " OR ".join(self._write(each, known) for each in operands) + ")"
            case Inverse(operand):
                return f"(NOT {self._write(operand, known)})"
            case Comparison():
                if self._is_as_stored:
                    return self._compare(condition, known)
                return self._compare_with_defaults(condition, known)
        raise AssertionError(condition)

    # -- missing attributes

    def _compare_with_defaults(self, test: Comparison, known: EntityInfo) -> str:
        """Return a comparison that treats missing attributes as the defaults of their fields.

        An absent item has no defaults: for it, the comparison is as DynamoDB evaluates it.
        """
        names = compared_fields(test)
        if len(names) > 1:
            return self._compare_fields(test, known, sorted(names))
        [name] = names
        defaults = stored_defaults(known, name)
        is_about_presence = test.operator in ("exists", "not_exists")
        if not defaults or (is_about_presence and not _keeps_none(shape_at(known, test.field))):
            return self._compare(test, known)
        self._arguments = {}
        try:
            return self._compare_one(test, known, name, defaults)
        finally:
            self._arguments = None

    def _compare_one(
        self, test: Comparison, known: EntityInfo, name: str, defaults: tuple[StoredDefault, ...]
    ) -> str:
        passes_missing = _passes(test, known, {})
        written = self._compare(test, known)
        for default in defaults:
            item = {name: default.value}
            passes = None if _has_argument(test) else _passes(test, known, item)
            if passes is passes_missing:
                continue
            compared = None if passes is not None else self._compare_default(test, known, item)
            if passes_missing:
                terms = [*self._there(name, default), *([] if compared is None else [compared])]
                there = terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"
                written = f"({there} AND {written})"
            else:
                terms = [*self._lacks(name, default), *([] if compared is None else [compared])]
                missing = terms[0] if len(terms) == 1 else f"({' AND '.join(terms)})"
                written = f"({written} OR {missing})"
        return written

    def _lacks(self, name: str, default: StoredDefault) -> list[str]:
        """Return the terms that are all true for an item without the attribute of the field."""
        terms = [f"attribute_not_exists({self._name(name)})"]
        if self._key is not None:
            terms.append(f"attribute_exists({self._name(self._key)})")
        if default.variants:
            terms.append(self._is_type(CLASS_TAG, list(default.variants)))
        return terms

    def _there(self, name: str, default: StoredDefault) -> list[str]:
        """Return the terms of which one is true for an item that ``_lacks`` does not describe."""
        terms = [f"attribute_exists({self._name(name)})"]
        if self._key is not None:
            terms.append(f"attribute_not_exists({self._name(self._key)})")
        if default.variants:
            terms.append(f"NOT {self._is_type(CLASS_TAG, list(default.variants))}")
        return terms

    def _compare_default(self, test: Comparison, known: EntityInfo, item: dict[str, Value]) -> str:
        """Return the comparison with default values in place of the fields."""
        self._stand_ins = item
        try:
            return self._compare(test, known)
        finally:
            self._stand_ins = {}

    def _compare_fields(self, test: Comparison, known: EntityInfo, names: list[str]) -> str:
        """Return a comparison of fields: one case for each set of fields that may be missing."""
        found = {name: stored_defaults(known, name) for name in names}
        choices = {name: each for name, each in found.items() if each}
        if not choices:
            return self._compare(test, known)
        cases = []
        for size in range(len(choices) + 1):
            for missing in combinations(choices, size):
                there = [each for each in choices if each not in missing]
                for defaults in product(*(choices[name] for name in missing)):
                    given = dict(zip(missing, defaults))
                    terms = [f"attribute_exists({self._name(name)})" for name in there]
                    for name, default in given.items():
                        terms += self._lacks(name, default)
                    item = {name: default.value for name, default in given.items()}
                    terms.append(self._compare_default(test, known, item))
                    cases.append(f"({' AND '.join(terms)})")
        if self._key is None:
            return f"({' OR '.join(cases)})"
        stored = self._name(self._key)
        absent = f"(attribute_not_exists({stored}) AND {self._compare(test, known)})"
        return f"({absent} OR (attribute_exists({stored}) AND ({' OR '.join(cases)})))"

    def _compare(self, test: Comparison, known: EntityInfo) -> str:
        path = self._path(test.field)
        if isinstance(test, PartComparison):
            return f"begins_with({path}, {self._part(test, known)})"
        shape = shape_at(known, test.field)
        if test.operator in ("=", "<>") and test.values[0] is None:
            return self._is_none(path, shape, inverted=test.operator == "<>")
        if test.operator in ("exists", "not_exists") and _keeps_none(shape):
            return self._is_none(path, shape, inverted=test.operator == "exists")
        if is_packed(shape) and test.operator not in _OF_PACKED:
            raise DesignError(
                f"{test.field!r} is packed: DynamoDB can only tell whether it equals a value",
                hint="store the number unpacked, or compare it after reading",
            )
        if test.operator == "contains":
            shape = _element(shape)
        if test.operator == "in_list":
            return f"{path} IN ({self._list(test.values[0], shape)})"
        values = [self._value(value, shape, repr(test.field)) for value in test.values]
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
        if not _keeps_none(shape):
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
        if field.name in self._stand_ins:
            value = value_at(self._stand_ins[field.name], field.path[1:])
            if value is not None:
                return self._constant(value)
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

    def _value(self, value: Any, shape: Shape | None, name: str) -> str:
        if isinstance(value, FieldRef):
            return self._path(value)
        if shape is not None and is_packed(shape):
            return self._packed(value, shape)
        encoding = keys.encoding_of(shape) if shape is not None else None
        written = encoding.name if encoding is not None else "any"
        if isinstance(value, Param):
            return self._argument(value, written)
        return self._constant(wire_value(written, value, name))

    def _part(self, test: PartComparison, known: EntityInfo) -> str:
        check_part(known, test.derived)
        encoding, [value] = f"{test.part}.{test.part}", test.values
        if not isinstance(value, Param):
            return self._constant(wire_value(encoding, value, repr(test.field)))
        return self._argument(value, encoding)

    def _argument(self, given: Param, encoding: str, *, is_list: bool = False) -> str:
        known = self._arguments
        if known is not None and given.name in known:
            return known[given.name]
        self._values.append(
            FilterValue(
                f":f{len(self._values)}", param=given.name, encoding=encoding, is_list=is_list
            )
        )
        if known is not None:
            known[given.name] = self._values[-1].placeholder
        return self._values[-1].placeholder

    def _list(self, value: Any, shape: Shape | None) -> str:
        assert isinstance(value, Param)
        encoding = keys.encoding_of(shape) if shape is not None else None
        if encoding is None:
            raise DesignError(
                f"the list argument {value.name!r} is compared with a field that has no plain type",
                hint="compare a field that holds text, a number, a time or a UUID",
            )
        return self._argument(value, encoding.name, is_list=True)

    def _packed(self, value: Any, shape: Shape) -> str:
        if isinstance(value, Param):
            raise DesignError(
                f"a pattern compares a packed field with the argument {value.name!r}",
                hint="compare packed fields with constants only, or store the field unpacked",
            )
        return self._constant(encoder(shape)(value))


def _keeps_none(shape: Shape | None) -> bool:
    """Whether None is a stored value (NULL), because a missing attribute means another one."""
    shape = shape.inner if isinstance(shape, Maybe) and not shape.kept else shape
    return isinstance(shape, Anything) or (isinstance(shape, Maybe) and shape.kept)


def _has_argument(test: Comparison) -> bool:
    return any(isinstance(each, Param) for each in test.values)


def _passes(test: Comparison, known: EntityInfo, item: dict[str, Value]) -> bool:
    """Whether an item with these attributes passes a comparison with values of its own."""
    if _has_argument(test):  # only <> is true for a missing attribute
        return test.operator == "<>"
    plain = FilterWriter()
    text = plain.term(test, known)
    tree = bind_condition(parse_condition(text), plain.names, plain.values)
    return evaluate(tree, item)


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

"""Which items the requests of a call reach: the collections under its key conditions.

A query reads the items under its key condition and nothing else, so a measurement needs no other
items. The items of a collection belong to one entity. They share the values in the partition key,
and the values at the start of the sort key. A query also reads other entities that the plan keeps
in the same partition, unless their sort keys lie outside of the condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from stator.design.entities.derived_parts import PartComparison, argument_text, source_field
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Choice, Maybe
from stator.design.patterns.ask import Ask
from stator.design.patterns.param import Param
from stator.design.plan import key_text as keys
from stator.design.plan.plan import EntityPlan, KeyConditionPart, PatternPlan, Plan, Step
from stator.design.plan.templates import Part, PlannedKeyAttribute, Template
from stator.errors import StatorError
from stator.model.values import Value
from stator.verification.declared_shape import compared_name, inner

_HIGHEST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class KeyCollection:
    """Items of one entity under a key condition.

    ``fixed`` maps fields to the value that all these items have. ``present`` names optional fields
    that none of these items lacks.
    """

    entity: type[Entity]
    fixed: Mapping[str, Any]
    present: frozenset[str]


class CollectionFinder:
    """Finds which collections a call of a pattern reads, from the key templates of the plan."""

    def __init__(self, plan: Plan, entities: tuple[type[Entity], ...]) -> None:
        self.plan = plan
        self._entities = {info(each).name: each for each in entities}

    def collections(
        self, pattern: PatternPlan, ask: Ask, arguments: Mapping[str, Any]
    ) -> list[KeyCollection]:
        """Return the collections of one call. ``arguments`` may lack the bounds of ranges."""
        found: list[KeyCollection] = []
        for step in pattern.steps:
            for each in self._of_step(step, ask, arguments):
                if each not in found:
                    found.append(each)
        return found

    def _of_step(
        self, step: Step, ask: Ask, arguments: Mapping[str, Any]
    ) -> Iterator[KeyCollection]:
        if step.guard is not None:
            param = step.key[0].bounds[0].parts[-1].value
            fixed = {step.guard.field: arguments[param]}
            yield KeyCollection(self._entities[step.entities[0]], fixed, frozenset())
            return
        for plan in self.plan.entities:
            if plan.table != step.table or plan.name not in self._entities:
                continue
            entity = self._entities[plan.name]
            if step.operation == "Scan":
                yield KeyCollection(entity, {}, frozenset())
                continue
            for given in _one_by_one(step, arguments):
                for tests in step.conditions:
                    reader = _KeyReader(plan, entity, step, ask, given)
                    found = reader.collection(tests, self._attributes(step))
                    if found is not None:
                        yield found

    def _attributes(self, step: Step) -> tuple[str, ...]:
        """Return the key attributes of the index or table that a step reads."""
        table = self.plan.table(step.table)
        if step.index is None:
            return (table.partition, *(() if table.sort is None else (table.sort,)))
        index = next(each for each in table.indexes if each.name == step.index)
        return (*index.partition, *index.sort)


def _one_by_one(step: Step, arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments of each request, with one member of every list argument in the key."""
    for chosen in product(*(arguments[name] for name in step.lists)):
        yield {**arguments, **dict(zip(step.lists, chosen))}


@dataclass(frozen=True, slots=True)
class _KeyReader:
    """Reads the values of an entity's fields out of a key condition."""

    plan: EntityPlan
    entity: type[Entity]
    step: Step
    ask: Ask
    arguments: Mapping[str, Any]

    def collection(
        self, tests: tuple[KeyConditionPart, ...], attributes: tuple[str, ...]
    ) -> KeyCollection | None:
        """Return the entity's items under a key condition, or None if none can meet it."""
        templates: dict[str, Template] = {}
        fixed: dict[str, Any] = {}
        for name in attributes:
            key = self._key(name)
            if key is None:
                return None
            templates[name] = key.template
            for template, text in key.when:
                found = (
                    dict.fromkeys(_fields(template))
                    if text is None
                    else self._matched(template, {"S": text})
                )
                if found is None:
                    return None
                fixed |= found
        for test in tests:
            template = templates[test.attribute]
            if test.operator == "=":
                filled = test.bounds[0].fill(self.arguments, 0)
                found = None if filled is None else self._matched(template, filled)
                if found is None or any(
                    fixed.get(each, found[each]) != found[each] for each in found
                ):
                    return None
                fixed |= found
            elif template.native:
                if test.operator == "begins_with":
                    bounds = [_known_text(bound, self.arguments) for bound in test.bounds]
                    fixed |= self._start_of(template.parts[0], "", bounds)
            else:
                bounds = [_known_text(bound, self.arguments) for bound in test.bounds]
                if not _may_lie_in(template, test.operator, bounds):
                    return None
                fixed |= self._prefix(template, bounds, fixed)
        held = {name for template in templates.values() for name in _fields(template)}
        optional = {
            name for name in map(source_field, held - fixed.keys())
            if isinstance(info(self.entity).fields[name].shape, Maybe)
        }  # fmt: skip
        return KeyCollection(self.entity, fixed, frozenset(optional))

    def _key(self, attribute: str) -> PlannedKeyAttribute | None:
        found = [each for each in self.plan.keys if each.name == attribute]
        if found:
            return next((each for each in found if each.index == self.step.index), found[0])
        declared = info(self.entity).fields.get(attribute)
        encoding = None if declared is None else keys.encoding_of(declared.shape)
        if encoding is None:  # items of this entity lack the attribute, and are not in the index
            return None
        return PlannedKeyAttribute(
            attribute, Template((Part("field", attribute, encoding.name),), native=True)
        )

    def _matched(self, template: Template, value: Value) -> dict[str, Any] | None:
        """Return the field values in the value of a key attribute, or None if it does not fit.

        The template ``USER#{id}`` and the value ``USER#u1`` give ``{"id": "u1"}``.
        """
        if template.native:
            [part] = template.parts
            if part.kind == "text":
                return {} if part.value in value.values() else None
            decode = info(self.entity).codec.decode_field[part.value]
            return {part.value: decode(value)}
        text = value.get("S")
        pattern = "".join(
            re.escape(part.value) if part.kind == "text" else "([^#]*)" for part in template.parts
        )
        match = None if text is None else re.fullmatch(pattern, str(text))
        if match is None:
            return None
        holes = [part for part in template.parts if part.kind != "text"]
        try:
            return {
                part.name: self._decoded(part, group)
                for part, group in zip(holes, match.groups())
                if part.kind == "field"
            }
        except (ValueError, ArithmeticError, LookupError, StatorError):
            return None  # keys written by hand: a text in place of a time, for example

    def _decoded(self, part: Part, text: str) -> Any:
        value = keys.decode(part.encoding, text, inverted=part.inverted)
        if keys.is_part(part.encoding):
            return value
        shape = inner(info(self.entity).fields[part.value].shape)
        if isinstance(shape, Choice) and shape.enum is not None:
            return shape.enum(value)
        candidates = [*self.arguments.values(), *_compared(self.ask, self.entity, part.value)]
        return next((each for each in candidates if _is_same(part, each, text)), value)

    def _prefix(
        self, template: Template, bounds: list[str], fixed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of the leading sort key fields that are the same in all ``bounds``.

        The condition reaches only items with these values. For example, the template
        ``{status}#{placed_at}`` and two bounds that begin with ``open#`` give
        ``{"status": "open"}``.
        """
        if info(self.entity).name not in self.step.entities:
            return {}
        found: dict[str, Any] = {}
        text = ""
        for part in template.parts:
            if part.kind == "text":
                text += part.value
                continue
            if part.kind != "field":
                break
            options = [fixed[part.name]] if part.name in fixed else self._options(part)
            fitting = [
                each for each in options
                if all(bound.startswith(text + _encoded(part, each)) for bound in bounds)
            ]  # fmt: skip
            if len(fitting) != 1:
                found |= self._start_of(part, text, bounds)
                break
            text += _encoded(part, fitting[0])
            found[part.name] = fitting[0]
        return found

    def _start_of(self, part: Part, text: str, bounds: list[str]) -> dict[str, Any]:
        """Return the derived part, such as a month, that follows ``text`` in every bound.

        Only derived parts that the pattern compares are tried. The result is empty if none fits.
        """
        for test in self.ask.tests:
            if not isinstance(test, PartComparison) or test.field.name != part.value:
                continue
            if not issubclass(self.entity, test.field.owner):
                continue
            [value] = test.values
            given = self.arguments.get(value.name) if isinstance(value, Param) else value
            if given is None:
                continue
            shown = argument_text(test.part, given)
            start = keys.encode(f"{test.part}.{test.part}", shown, inverted=part.inverted)
            if all(bound.startswith(text + start) for bound in bounds):
                return {str(test.derived): shown}
        return {}

    def _options(self, part: Part) -> list[Any]:
        """Return the known values that the pattern compares a field or a derived part with."""
        found = []
        for value in _compared(self.ask, self.entity, part.name):
            if not isinstance(value, Param):
                found.append(value)
            elif value.name in self.arguments:
                found.append(self.arguments[value.name])
        return found


def _compared(ask: Ask, entity: type[Entity], name: str) -> list[Any]:
    return [
        value
        for test in ask.tests
        if test.operator in ("=", "in", "in_list", "part") and len(test.field.path) == 1
        and compared_name(test) == name and issubclass(entity, test.field.owner)
        for value in test.values
    ]  # fmt: skip


def _encoded(part: Part, value: Any) -> str:
    """Return ``value`` as the text that it has in a key.

    ``part`` is the piece of the key template that ``value`` fills: a field, or a derived part such
    as a month. For a derived part, ``value`` is the derived value, not the whole field.
    """
    own = part.encoding.partition(".")[2]
    if own:
        return keys.encode(f"{own}.{own}", value, inverted=part.inverted)
    return keys.encode(part.encoding, value, inverted=part.inverted)


def _is_same(part: Part, value: Any, text: str) -> bool:
    try:
        return not isinstance(value, Param) and _encoded(part, value) == text
    except Exception:  # a value of another type
        return False


def _fields(template: Template) -> set[str]:
    return {part.name for part in template.parts if part.kind == "field"}


def _known_text(bound: Template, arguments: Mapping[str, Any]) -> str:
    """Return the start of a bound, up to the first argument that is not known yet."""
    text = ""
    for part in bound.parts:
        if part.kind == "shard" or (part.kind == "param" and part.value not in arguments):
            return text
        text += str(part.fill(arguments, 0))
    return text


def _may_lie_in(template: Template, operator: str, bounds: list[str]) -> bool:
    """Whether sort keys of this template can meet a condition, judged by their fixed first text."""
    label = ""
    for part in template.parts:
        if part.kind != "text":
            break
        label += part.value
    is_whole = all(part.kind == "text" for part in template.parts)
    lowest, highest = label, label if is_whole else label + _HIGHEST
    if operator == "begins_with":
        return label.startswith(bounds[0]) or (not is_whole and bounds[0].startswith(label))
    low = bounds[0] if operator in (">", ">=", "BETWEEN") else ""
    high = bounds[-1] + _HIGHEST if operator in ("<", "<=", "BETWEEN") else _HIGHEST
    if operator == "BETWEEN" and bounds[-1].endswith(keys.AFTER):
        high = bounds[-1]
    return lowest <= high and highest >= low

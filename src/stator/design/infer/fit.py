"""Checks that an inferred design fits the tables that it was inferred from.

The file is run and planned. The plan must have the keys and indexes of the tables, and each item of
the sample must become an object whose keys are those of the item. So an inference ends in a design
that works, or in an error that says why not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import count
from types import ModuleType
from typing import Any

from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.infer.design_file import design_file
from stator.design.infer.inference import GuessedTable, Inference, TableSample
from stator.design.infer.table_keys import Item
from stator.design.plan.drift import drift
from stator.design.plan.key_text import unescape
from stator.design.plan.plan import EntityPlan, Plan
from stator.design.plan.templates import PlannedKeyAttribute
from stator.design.planner.planner import plan as plan_of
from stator.errors import DesignError, StatorError

_NUMBERS = count(1)


def loaded(text: str) -> Declaration:
    """Run a design file, and return its design."""
    module = ModuleType(f"stator_inferred_{next(_NUMBERS)}")
    sys.modules[module.__name__] = module  # annotations are looked up there
    try:
        exec(compile(text, "<inferred>", "exec"), module.__dict__)  # noqa: S102 - our own text
        design = next(each for each in vars(module).values() if isinstance(each, Declaration))
        for entity in design.entities:
            _ = info(entity).codec  # reads the annotations while the module is known
    finally:
        del sys.modules[module.__name__]
    return design


def without_unserved(found: Inference, sample: TableSample) -> Inference:
    """Return the inference without patterns that the table's own keys and indexes do not serve."""
    [table] = found.tables
    try:
        plan = plan_of(loaded(design_file(found)))
    except DesignError:
        kept = [each for each in table.patterns if _serves(found, table, each.name)]
        return _with_patterns(found, table, {each.name for each in kept})
    if sample.description is None:
        return found
    unserved = {
        name
        for index in plan.tables[0].indexes
        if index.name not in table.keys.indexes
        for name in index.patterns
    }
    if not unserved:
        return found
    kept_names = {each.name for each in table.patterns} - unserved
    return without_unserved(_with_patterns(found, table, kept_names), sample)


def _serves(found: Inference, table: GuessedTable, name: str) -> bool:
    try:
        plan_of(loaded(design_file(_with_patterns(found, table, {name}))))
    except DesignError:
        return False
    return True


def _with_patterns(found: Inference, table: GuessedTable, names: set[str]) -> Inference:
    kept = tuple(each for each in table.patterns if each.name in names)
    return replace(found, tables=(replace(table, patterns=kept),))


def problem_of(found: Inference, samples: Sequence[TableSample]) -> str | None:
    """Return the first reason why a design does not fit its tables, or None if it fits."""
    try:
        design = loaded(design_file(found))
        plan = plan_of(design)
        for table, sample in zip(found.tables, samples):
            for each in _problems(table, sample, design, plan):
                return each
    except (StatorError, SyntaxError, ValueError, TypeError, LookupError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _problems(
    table: GuessedTable, sample: TableSample, design: Declaration, plan: Plan
) -> Iterator[str]:
    if sample.description is not None:
        own = replace(plan, tables=tuple(each for each in plan.tables if each.name == table.name))
        if not own.tables:
            yield f"the plan has no table {table.name}"
        for difference in drift(own, {table.name: sample.description}, settings=design.settings):
            yield str(difference)
    names = {each.name: each.label or each.name for each in table.entities}
    entities = [
        (entity, plan.entity(entity)) for entity in design.entities if entity.__name__ in names
    ]
    for item in sample.items:
        fitting = [each for each in entities if _fits(each[1], item, table.type_name)]
        if len(fitting) > 1:
            most = max(_literals(each[1]) for each in fitting)
            fitting = [each for each in fitting if _literals(each[1]) == most]
        if len(fitting) != 1:
            yield f"the key of an item fits {len(fitting)} entities"
            continue
        [(entity, entity_plan)] = fitting
        made = info(entity).codec.decode(_with_key_fields(entity, entity_plan, item))
        written = entity_plan.item_keys(made)
        again = info(entity).codec.encode(made)
        for name, value in again.items():
            if name in item and not _same(item[name], value):
                yield f"{entity_plan.name}: {name} would be {value}, and is {item[name]}"
        for key in entity_plan.keys:
            if written.get(key.name) != item.get(key.name):
                yield (
                    f"{entity_plan.name}: the attribute {key.name} would be "
                    f"{written.get(key.name)}, and is {item.get(key.name)}"
                )


def _same(one: Any, other: Any) -> bool:
    """Whether two values in DynamoDB JSON are equal. Numbers may be written in several ways."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return False
        if "N" in one:
            return Decimal(one["N"]) == Decimal(other["N"])
        if kinds := {"SS", "BS", "NS"} & one.keys():
            kind = kinds.pop()
            read = Decimal if kind == "NS" else str
            return {read(each) for each in one[kind]} == {read(each) for each in other[kind]}
        return all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _base(plan: EntityPlan) -> list[PlannedKeyAttribute]:
    return [key for key in plan.keys if key.index is None]


def _fits(plan: EntityPlan, item: Item, type_name: str | None) -> bool:
    if type_name:
        return item.get(type_name) == {"S": plan.name}
    return all(_read(key, item) is not None for key in _base(plan))


def _literals(plan: EntityPlan) -> int:
    return sum(
        len(part.value) for key in _base(plan) for part in key.template.parts if part.kind == "text"
    )


def _read(key: PlannedKeyAttribute, item: Item) -> dict[str, str] | None:
    """Return the values in a composed key attribute, by field.

    Returns None if the item's attribute does not fit the key's template.
    """
    if key.template.native:
        return {}
    parts = key.template.parts
    pattern = "".join(re.escape(part.value) if part.kind == "text" else "([^#]*)" for part in parts)
    found = re.fullmatch(pattern, item.get(key.name, {}).get("S", ""), re.DOTALL)
    if found is None:
        return None
    fields = [part.value for part in parts if part.kind == "field"]
    return dict(zip(fields, found.groups()))


def _with_key_fields(entity: type[Any], plan: EntityPlan, item: Item) -> Item:
    """Return the item with fields added that only its keys contain, as the data layer adds them."""
    found: Item = {}
    for key in plan.keys:
        for name, value in (_read(key, item) or {}).items():
            if name not in item:
                found[name] = {"S": unescape(value)}
    return item | found

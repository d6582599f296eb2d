"""Rules about items: their size, their depth, the names in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS, half_read_units, write_units
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import info
from stator.design.entities.shapes import ListOf, MapOf, Maybe, Nested, Shape
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.patterns.pattern import references
from stator.design.plan.key_sizes import bounds, limit_of
from stator.design.planner.weights import (
    READ_UNIT_DOLLARS,
    STORAGE_BYTE_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from stator.model.limits import ITEM_SIZE_BYTES, NESTING_LEVELS, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from stator.model.wording import about_dollars, amount, size

_NEAR: Final = 0.5
_DEEP: Final = 4
_LONG_NAME: Final = 20
_NAMES_SHARE: Final = 0.25
_NAMES_BYTES: Final = 1024**3


def over_one_kilobyte(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        plan, rate = facts.entity_plan(entity), facts.rate(entity, "create", "update", "delete")
        if not WRITE_UNIT_BYTES < plan.item_bytes <= ITEM_SIZE_BYTES or not rate:
            continue
        units = write_units(plan.item_bytes)
        monthly = rate * units * MONTH_SECONDS * WRITE_UNIT_DOLLARS
        yield facts.on_entity(
            "ST201",
            "note",
            entity,
            f"an item of {plan.name} has {size(plan.item_bytes)}: each write costs {units} units instead of 1, even one "
            f"that changes a single attribute ({about_dollars(monthly)} a month)",
            "keep what changes often in an item of its own, under the same partition key; large() compresses a field",
        )


def over_four_kilobytes(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        plan = facts.entity_plan(entity)
        if not READ_UNIT_BYTES < plan.item_bytes <= ITEM_SIZE_BYTES:
            continue
        units = half_read_units(plan.item_bytes)
        monthly = sum(
            each.units_per_month * READ_UNIT_DOLLARS
            for pattern, each in facts.planned_reads()
            if entity in pattern.trace().targets
        )
        yield facts.on_entity(
            "ST202",
            "note",
            entity,
            f"an item of {plan.name} has {size(plan.item_bytes)}: each read costs {units} times a small one, and a page of "
            f"1 MB holds {1024**2 / plan.item_bytes:.0f} (reads cost {about_dollars(monthly)} a month)",
            "move what lists do not show into an item of its own, or offload it: large(offload_over_bytes=4096)",
        )


def over_four_hundred_kilobytes(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        plan = facts.entity_plan(entity)
        if plan.item_bytes <= ITEM_SIZE_BYTES * _NEAR:
            continue
        over = plan.item_bytes > ITEM_SIZE_BYTES
        yield facts.on_entity(
            "ST203",
            "error" if over else "warning",
            entity,
            f"an item of {plan.name} has {size(plan.item_bytes)} on average; DynamoDB "
            f"{'refuses' if over else 'has room for'} 400 KB, names included"
            + ("" if over else ", and some will be larger than the average"),
            "split lists into items of their own, and offload the rest: large(offload_over_bytes=300_000)",
        )


def nested_member_compared(facts: Facts) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for pattern in facts.design.reads:
        ask = pattern.trace()
        for reference in (each for test in (*ask.tests, *ask.filters) for each in references(test)):
            key = (pattern.name, repr(reference))
            if len(reference.path) > 1 and key not in seen:
                seen.add(key)
                yield _compared(facts, pattern.name, reference)
    for known, field in facts.fields():
        depth = _depth(field.shape)
        if depth >= _DEEP:
            yield facts.on_field(
                "ST204",
                "error" if depth > NESTING_LEVELS else "note",
                known.cls,
                field.name,
                f"{known.name}.{field.name} nests {depth} levels deep: its inner members cannot be keys, and each level is "
                f"paid for ({NESTING_LEVELS} are allowed)",
                "bring what is asked for or changed alone to the top of the entity",
            )


def _compared(facts: Facts, pattern: str, reference: FieldRef) -> Finding:
    flat = "_".join(str(step) for step in reference.path)
    return facts.on_pattern(
        "ST204",
        "warning",
        pattern,
        f"{pattern} compares {reference!r}, which is inside a map: no key can be made of it, so it only filters what was read",
        f"make it a field of {info(reference.owner).name} of its own, as in `{flat}: ...`",
    )


def _depth(shape: Shape) -> int:
    match shape:
        case Maybe(inner):
            return _depth(inner)
        case Nested(_, fields):
            return 1 + max((_depth(inner) for _, inner, _ in fields), default=0)
        case MapOf(values):
            return 1 + _depth(values)
        case ListOf(elements):
            return 1 + max((_depth(element) for element in elements), default=0)
    return 0


def long_names(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        plan, volume = facts.entity_plan(entity), facts.design.volume(entity)
        names = list(info(entity).fields)
        spent = sum(map(len, names))
        longest = max(names, key=len)
        if (
            len(longest) < _LONG_NAME
            or spent < plan.item_bytes * _NAMES_SHARE
            or spent * volume < _NAMES_BYTES
        ):
            continue
        copies = 1 + sum(
            plan.name in index.entities and index.projection == "ALL"
            for table in facts.plan.tables
            for index in table.indexes
        )
        monthly = spent * volume * copies * STORAGE_BYTE_DOLLARS
        yield facts.on_field(
            "ST205",
            "note",
            entity,
            longest,
            f"the names of {plan.name}'s attributes take {spent / plan.item_bytes:.0%} of each item: {size(spent * volume * copies)} "
            f"in {amount(volume)} items and {copies - 1} indexes, {about_dollars(monthly)} a month",
            f"shorten {longest}: every item carries its attributes' names",
        )


def key_too_long(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        shapes = {name: field.shape for name, field in info(entity).fields.items()}
        for key in facts.entity_plan(entity).keys:
            least, most = bounds(key.template, shapes)
            if (most or least) <= limit_of(key):
                continue
            always = least > limit_of(key)
            yield facts.on_entity(
                "ST206",
                "error" if always else "warning",
                entity,
                f"the {'sort' if key.is_sort else 'partition'} key {key.name} = {key.template} of {info(entity).name} "
                f"{f'has at least {least}' if always else f'can have {most}'} bytes; DynamoDB takes {limit_of(key)}",
                "key by fewer or shorter fields: give an Enum short values, and show long ones elsewhere",
            )

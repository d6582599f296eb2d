"""Rules about items: their size, nesting, attribute names and the length of their keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stator.design.capacity_units import MONTH_SECONDS, half_read_units, write_units
from stator.design.cost.report import CostReport, cost
from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import info
from stator.design.entities.shapes import ListOf, MapOf, Maybe, Nested, OneOf, Shape, TypedMap
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.patterns.condition_contents import references
from stator.design.plan.key_sizes import bounds, limit_of
from stator.design.planner.weights import (
    READ_UNIT_DOLLARS,
    STORAGE_BYTE_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from stator.model.limits import ITEM_SIZE_BYTES, NESTING_LEVELS, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from stator.model.quantities import about_dollars, amount, plural, size

_NEAR: Final = 0.5
_DEEP: Final = 4
_LONG_NAME: Final = 20
_NAMES_SHARE: Final = 0.25
_NAMES_BYTES: Final = 1024**3
_BOUNDARY: Final = 0.01
_FEW_UNITS: Final = 4
_WORTHWHILE: Final = 0.1
"""The share of a table's cost that another table class must save to be reported."""


def over_one_kilobyte(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        plan, rate = facts.entity_plan(entity), facts.billed_writes(entity)
        if not WRITE_UNIT_BYTES < plan.item_bytes <= ITEM_SIZE_BYTES or not rate:
            continue
        units = write_units(plan.item_bytes)
        monthly = rate * units * MONTH_SECONDS * WRITE_UNIT_DOLLARS
        yield facts.on_entity(
            "ST201",
            "note",
            entity,
            f"{plan.name} items have {size(plan.item_bytes)} each: a write costs {units} units "
            f"instead of 1, even if it changes one attribute ({about_dollars(monthly)} a month; "
            f"{about_dollars(monthly * (units - 1) / units)} less with items of 1 KB)",
            "move the fields that change often to a separate item under the same partition key, "
            "or compress a large field with large()",
            monthly * (units - 1) / units,
        )


def near_unit_boundary(facts: Facts) -> Iterator[Finding]:
    """Report items whose size is within 1 % of a whole number of write units.

    A few bytes more or less then change the price of a write. Items of many units are skipped,
    because one unit hardly changes their price. Guessed sizes are skipped, too.
    """
    for entity in facts.design.entities:
        plan, rate = facts.entity_plan(entity), facts.billed_writes(entity)
        units = round(plan.item_bytes / WRITE_UNIT_BYTES)
        beyond = round(plan.item_bytes) - units * WRITE_UNIT_BYTES
        is_near = abs(beyond) <= plan.item_bytes * _BOUNDARY and 1 <= units <= _FEW_UNITS
        if not is_near or not rate or facts.estimates.is_size_guessed(entity):
            continue
        monthly = rate * MONTH_SECONDS * WRITE_UNIT_DOLLARS
        whole = size(units * WRITE_UNIT_BYTES)
        yield facts.on_entity(
            "ST208",
            "note",
            entity,
            f"{plan.name} items have {plan.item_bytes:,.0f} bytes, keys included, which is "
            + (
                f"{beyond:,} more than {whole}: a write costs {units + 1} units instead of {units} "
                f"({about_dollars(monthly)} a month for the extra unit)"
                if beyond > 0
                else f"{-beyond:,} below the end of {whole}: if they grow by more, a write costs "
                f"{units + 1} units instead of {units} ({about_dollars(monthly)} a month more)"
            ),
            "measure real items, since a few bytes decide; shorten identifiers, or attribute names "
            'with stored("t")',
            monthly,
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
            f"{plan.name} items have {size(plan.item_bytes)} each: reading one costs {units} times "
            f"a small item, and a page of 1 MB holds {1024**2 / plan.item_bytes:.0f} "
            f"(reads cost {about_dollars(monthly)} a month)",
            "move the fields that lists do not show to a separate item, "
            "or offload them with large(offload_over_bytes=4096)",
            monthly,
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
            f"{plan.name} items have {size(plan.item_bytes)} on average; DynamoDB allows 400 KB, "
            f"attribute names included"
            + ("" if over else ", and some items will exceed the average"),
            "split lists into separate items, and offload the rest with "
            "large(offload_over_bytes=300_000)",
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
                f"{known.name}.{field.name} nests {depth} levels deep, and DynamoDB allows "
                f"{NESTING_LEVELS}: inner members cannot be keys, and each level adds to the size",
                "make the members that are queried or updated alone fields of the entity",
            )


def _compared(facts: Facts, pattern: str, reference: FieldRef) -> Finding:
    flat = "_".join(str(step) for step in reference.path)
    return facts.on_pattern(
        "ST204",
        "warning",
        pattern,
        f"{pattern} compares {reference!r}, which is inside a map: it cannot be a key, so it only "
        f"filters items that were already read",
        f"make it a field of {info(reference.owner).name}, for example `{flat}: ...`",
    )


def _depth(shape: Shape) -> int:
    match shape:
        case Maybe(inner):
            return _depth(inner)
        case OneOf(_, members):
            return max(_depth(member) for _, member in members)
        case Nested(_, fields) | TypedMap(_, fields):
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
            f"attribute names take {spent / plan.item_bytes:.0%} of each {plan.name} item: "
            f"{size(spent * volume * copies)} in {amount(volume)} items and "
            f"{plural(copies - 1, 'index')}, {about_dollars(monthly)} a month",
            _shorter_name(entity, longest),
        )


def _shorter_name(entity: type[Any], longest: str) -> str:
    """Return the advice to store a field under the first letters of its name's words."""
    known = info(entity)
    field = known.python_names.get(longest, longest)
    letters = "".join(word[0] for word in longest.split("_") if word)
    short = letters if letters not in known.fields else "a shorter name"
    marker = known.fields[longest].marker
    call = f'stored("{short}")' if marker is None else f'{marker.role}(stored="{short}")'
    return (
        f"keep the field and store it under a short name: {field} = {call}; items that are stored "
        "already need an entity version"
    )


def key_too_long(facts: Facts) -> Iterator[Finding]:
    for entity in facts.design.entities:
        shapes = {name: field.shape for name, field in info(entity).fields.items()}
        for key in facts.entity_plan(entity).keys:
            least, most = bounds(key.template, shapes)
            if (most or least) <= limit_of(key):
                continue
            always = least > limit_of(key)
            length = f"has at least {least:,}" if always else f"can have {most:,}"
            yield facts.on_entity(
                "ST206",
                "error" if always else "warning",
                entity,
                f"the {'sort' if key.is_sort else 'partition'} key {key.name} = {key.template} of "
                f"{info(entity).name} {length} bytes; DynamoDB allows {limit_of(key):,}",
                "use fewer or shorter fields in the key, and give an Enum short values",
            )


def rarely_read(facts: Facts) -> Iterator[Finding]:
    """Report tables that would cost less in the class Standard-Infrequent Access.

    That class has cheaper storage and dearer requests.
    """
    settings = facts.design.settings
    if settings is not None and settings.table_class == "STANDARD_INFREQUENT_ACCESS":
        return
    standard = _dollars_by_table(cost(facts.plan, facts=facts.design))
    infrequent = _dollars_by_table(
        cost(facts.plan, facts=facts.design, table_class="infrequent_access")
    )
    for table in facts.plan.tables:
        before, after = standard.get(table.name, 0.0), infrequent.get(table.name, 0.0)
        if before - after < before * _WORTHWHILE:
            continue
        yield facts.of(
            "table",
            "ST207",
            "note",
            table.name,
            f"table {table.name} is stored more than it is used: it costs {about_dollars(before)} "
            f"a month, and {about_dollars(after)} in the class Standard-Infrequent Access",
            'choose the class with TableSettings(table_class="STANDARD_INFREQUENT_ACCESS"), or '
            "export old items to S3 and let ttl() delete them",
            before - after,
        )


def _dollars_by_table(report: CostReport) -> dict[str, float]:
    totals: dict[str, float] = {}
    for line in report.lines:
        totals[line.table] = totals.get(line.table, 0.0) + float(line.dollars)
    return totals

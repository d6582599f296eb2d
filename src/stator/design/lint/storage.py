"""Rules about stored data: old items of a log, and entities that no pattern reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from stator.design.capacity_units import ITEM_OVERHEAD_BYTES, MONTH_SECONDS
from stator.design.cost.prices import prices
from stator.design.cost.report import settings_options
from stator.design.entities.entity import Entity, info
from stator.design.entities.shapes import Epoch, Scalar
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding
from stator.design.plan.usage import StoredItems
from stator.design.planner.weights import STORAGE_BYTE_DOLLARS, WRITE_UNIT_DOLLARS
from stator.model.quantities import about_dollars, amount, size

_RECENT_DAYS: Final = 90
_RECENT_SECONDS: Final = _RECENT_DAYS * 86_400
_OLD_SHARE: Final = 0.5
_OLD_BYTES: Final = 10 * 1024**3
_S3_GB_DOLLARS: Final = 0.023
"""S3 Standard in us-east-1, first 50 TB of a month: https://aws.amazon.com/s3/pricing."""
_GB: Final = 1024**3


def old_items(facts: Facts) -> Iterator[Finding]:
    """Report logs whose items are mostly older than 90 days.

    The age follows from the rate of creations: 900 new items a second are 7 billion in 90 days.
    """
    infrequent = STORAGE_BYTE_DOLLARS - float(prices()["ia_storage_gb_month"]) / _GB
    for entity in facts.design.entities:
        moment = _time_of(facts, entity)
        if moment is None:
            continue
        stored = [each for each in facts.plan.stored if each.entity == info(entity).name]
        volume = facts.design.volume(entity)
        if not volume:
            continue
        recent = facts.rate(entity, "create") * _RECENT_SECONDS
        share = max(0.0, 1 - recent / volume)
        held = [each for each in stored if not each.is_guard]
        old_bytes = share * sum(map(_bytes, held))
        old_dollars = share * sum(_dollars(facts, each) for each in held)
        if share < _OLD_SHARE or old_bytes < _OLD_BYTES:
            continue
        saved = old_dollars - old_bytes * _S3_GB_DOLLARS / _GB
        yield facts.on_entity(
            "ST209",
            "note",
            entity,
            f"{share:.0%} of the {amount(volume)} {info(entity).name} items are older than "
            f"{_RECENT_DAYS} days at {amount(facts.rate(entity, 'create'))} new ones a second: "
            f"{size(old_bytes)} with index entries, "
            f"{about_dollars(old_dollars)} a month",
            f"archive what is older than {_RECENT_DAYS} days by {moment}: a sink writes changes "
            f"to S3 and ttl() deletes them here, which saves {about_dollars(saved)} a month; a "
            f"table of class Standard-IA for them saves {about_dollars(old_bytes * infrequent)}",
            saved,
        )


def _time_of(facts: Facts, entity: type[Entity]) -> str | None:
    """Return the time of an item in a log, or None if the entity is no log that keeps all items.

    The items of a log are created, and neither changed nor deleted. They do not expire.
    """
    known = info(entity)
    roles = {each.role for each in known.fields.values()}
    if not facts.rate(entity, "create") or facts.rate(entity, "update", "delete") or "ttl" in roles:
        return None
    times = [
        name
        for name, field in known.fields.items()
        if isinstance(field.shape, Scalar) and field.shape.python in (datetime, Epoch)
    ]  # fmt: skip
    created = [name for name in times if known.fields[name].role in ("created", "ident")]
    keyed = [name for name in times if _orders(facts, entity, name)]
    return next(iter((*created, *keyed)), None)


def _orders(facts: Facts, entity: type[Entity], name: str) -> bool:
    """Whether a sort key of the entity holds this field, so that items lie by their age."""
    return any(
        key.is_sort and any(part.name == name for part in key.template.parts)
        for key in facts.entity_plan(entity).keys
    )


def _bytes(stored: StoredItems) -> float:
    return stored.count * (stored.item_bytes + ITEM_OVERHEAD_BYTES)


def _dollars(facts: Facts, stored: StoredItems) -> float:
    """Return the monthly cost of stored items: their storage, and the recovery of a table."""
    price = STORAGE_BYTE_DOLLARS
    if stored.index is None and not stored.is_guard and settings_options(facts.design).get("pitr"):
        price += float(prices()["pitr_gb_month"]) / _GB
    return _bytes(stored) * price


def unused_entities(facts: Facts) -> Iterator[Finding]:
    """Report stored entities that no pattern reads, or that none writes either."""
    read = {target for each in facts.design.reads for target in each.trace().targets}
    written = {change.entity for change, _ in facts.changes}
    for entity in facts.design.entities:
        if entity in read:
            continue
        if entity in written:
            if read:  # a design without any read is not complete yet
                yield _never_read(facts, entity)
            continue
        name = info(entity).name
        monthly = sum(_dollars(facts, each) for each in facts.plan.stored if each.entity == name)
        table = facts.plan.table(facts.entity_plan(entity).table)
        alone = table.entities == (name,)
        yield facts.on_entity(
            "ST210",
            "note",
            entity,
            f"no pattern reads or writes {name}, which is stored for {about_dollars(monthly)} a "
            f"month" + (f" in a table of its own, {table.name}" if alone else ""),
            f"declare the patterns that use {name}, so that its keys and costs count, or remove it "
            f"from the design",
            monthly,
        )


def _never_read(facts: Facts, entity: type[Entity]) -> Finding:
    """Report an entity that patterns write, and none reads."""
    name = info(entity).name
    stored = sum(_dollars(facts, each) for each in facts.plan.stored if each.entity == name)
    units = sum(each.units for each in facts.plan.uses if each.entity == name)
    monthly = stored + units * MONTH_SECONDS * WRITE_UNIT_DOLLARS
    return facts.on_entity(
        "ST210",
        "note",
        entity,
        f"no pattern reads {name}, which costs {about_dollars(monthly)} a month to write and store",
        "declare the patterns that read it, gets by identity included, so that they are planned "
        "and priced; if only a consumer of the stream or an export reads it, write it to a queue "
        "or to S3 instead",
        monthly,
    )

"""The content of a design document, collected once for every format."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from stator.design.cost.charges import a_month
from stator.design.cost.report import DEFAULT_REGION, CostReport, cost
from stator.design.declaration import Declaration
from stator.design.documents.diagram import Diagram, diagram_of
from stator.design.documents.item_collections import CollectionView, collection_views
from stator.design.entities.entity import info
from stator.design.entities.shapes import described_type
from stator.design.plan.example_items import item_of, shown_value
from stator.design.plan.plan import EntityPlan, IndexPlan, PatternPlan, Plan, TablePlan
from stator.design.planner.planner import plan as plan_of
from stator.model.quantities import plural


@dataclass(frozen=True, slots=True)
class PatternEntry:
    """What a document says about one pattern: its request, price and reasons."""

    name: str
    summary: str
    operation: str
    place: str
    condition: str
    example: str
    per_second: float
    units: float
    dollars: Decimal
    latency: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    consistent: bool
    filter: str = ""
    """The filter that keeps a part of the items read: ``total > :least``. Empty if none."""


@dataclass(frozen=True, slots=True)
class AttributeEntry:
    """An attribute of an example item. ``role`` is its purpose: identity, expiry or key."""

    name: str
    kind: str
    value: str
    role: str


@dataclass(frozen=True, slots=True)
class EntityEntry:
    """What a document says about one entity: fields, keys and example items."""

    name: str
    summary: str
    table: str
    items: float
    item_bytes: float
    dollars: Decimal
    attributes: tuple[AttributeEntry, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    name: str
    kind: str
    partition: str
    sort: str
    projection: str
    patterns: tuple[str, ...]
    dollars: Decimal
    reason: str


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table.

    ``columns`` are all its key attributes. ``rows`` has an example item of each entity, with one
    value for each column.
    """

    name: str
    partition: str
    sort: str
    indexes: tuple[IndexEntry, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    views: tuple[CollectionView, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a design's page: patterns, entities, keys, tables, example items and costs."""

    name: str
    summary: str
    basis: str
    total: Decimal
    reads: tuple[PatternEntry, ...]
    writes: tuple[PatternEntry, ...]
    entities: tuple[EntityEntry, ...]
    tables: tuple[TableEntry, ...]
    diagram: Diagram
    warnings: tuple[str, ...]


def document_of(
    design: Declaration, plan: Plan | None = None, *, region: str = DEFAULT_REGION
) -> Document:
    """Return the document of a design, priced by its settings in a region."""
    planned = plan_of(design) if plan is None else plan
    priced = cost(planned, facts=design, region=region)
    entities = tuple(_entity(each, planned, priced) for each in design.entities)
    texts = {each.name: _summary(each.function) for each in design.reads}
    texts |= {each.name: _summary(each.function) for each in design.write_patterns}
    patterns = priced.by_pattern()
    entries = [
        (each.kind, _pattern(each, texts.get(each.name, ""), patterns.get(each.name, Decimal(0))))
        for each in planned.patterns
    ]
    return Document(
        design.name,
        _in_numbers(planned),
        f"{priced.basis}, {priced.basis.region}, prices of {priced.prices_as_of}",
        priced.total,
        tuple(entry for kind, entry in entries if kind == "read"),
        (
            *(entry for kind, entry in entries if kind == "write"),
            *_declared_writes(design, planned, priced),
        ),
        entities,
        tuple(_table(table, design, planned, priced) for table in planned.tables),
        diagram_of(design),
        planned.warnings,
    )


def _summary(described: Any) -> str:
    """Return the first paragraph of an object's docstring.

    Returns empty text if there is no docstring, or only the one that a dataclass generates.
    """
    text = (getattr(described, "__doc__", None) or "").strip()
    if text.startswith(f"{getattr(described, '__name__', '')}("):
        return ""  # dataclasses generate such docstrings
    return " ".join(text.split("\n\n")[0].split())


def _in_numbers(plan: Plan) -> str:
    reads = sum(each.kind == "read" for each in plan.patterns)
    indexes = sum(len(table.indexes) for table in plan.tables)
    parts = [
        _counted(len(plan.entities), "entity"),
        _counted(reads, "read"),
        _counted(len(plan.patterns) - reads, "write"),
        _counted(len(plan.tables), "table"),
        _counted(indexes, "index"),
    ]
    return ", ".join(parts[:-1]) + f" and {parts[-1]}"


def _counted(count: int, noun: str) -> str:
    text = plural(count, noun)
    return text if count else f"no{text[1:]}"


def _pattern(plan: PatternPlan, summary: str, dollars: Decimal) -> PatternEntry:
    places = dict.fromkeys(
        step.table if step.index is None else f"{step.table}/{step.index}" for step in plan.steps
    )
    conditions = (
        plan.key_condition
        if plan.kind == "read"
        else ", ".join(_write(step) for step in plan.steps)
    )
    return PatternEntry(
        plan.name,
        summary,
        plan.operation,
        ", ".join(places),
        conditions,
        plan.example,
        plan.requests_per_second,
        plan.units_per_call,
        dollars,
        plan.latency,
        plan.reasons,
        plan.warnings,
        plan.consistent,
        "; ".join(str(each) for step in plan.steps for each in step.filters),
    )


def _declared_writes(design: Declaration, plan: Plan, priced: CostReport) -> list[PatternEntry]:
    """Return entries for the creations that ``writes=`` declares: traffic without a pattern."""
    found = []
    for entity, rate in design.declared_writes.items():
        name = f"writes of {info(entity).name}"
        units = sum((line.quantity for line in priced.lines if line.pattern == name), Decimal(0))
        found.append(
            PatternEntry(
                name=name,
                summary="",
                operation="PutItem",
                place=plan.entity(entity).table,
                condition=f"PutItem {info(entity).name}",
                example="",
                per_second=rate,
                units=float(units / a_month(rate)) if rate else 0.0,
                dollars=priced.by_pattern().get(name, Decimal(0)),
                latency="",
                reasons=(),
                warnings=(),
                consistent=False,
            )
        )
    return found


def _write(step: Any) -> str:
    return f"{step.operation} {' + '.join(step.entities)}"


def _entity(entity: type[Any], plan: Plan, priced: CostReport) -> EntityEntry:
    known, own = info(entity), plan.entity(entity)
    item = item_of(entity, own)
    declared = [
        _attribute(name, item, described_type(field.shape), own, field.role)
        for name, field in known.fields.items()
    ]
    added = [_attribute(name, item, "str", own, None) for name in item if name not in known.fields]
    dollars = priced.by_entity().get(known.name, Decimal(0))
    return EntityEntry(
        known.name,
        _summary(entity),
        own.table,
        own.items,
        own.item_bytes,
        dollars,
        (*added, *declared),
        own.reasons,
    )


def _attribute(
    name: str, item: Any, kind: str, plan: EntityPlan, role: str | None
) -> AttributeEntry:
    keys = [f"key of {key.index or 'the table'}" for key in plan.keys if key.name == name]
    if name == plan.discriminator:
        keys.append("entity name")
    words = {"ident": "identity", "ttl": "expiry"}
    roles = [*([words.get(role, role)] if role else []), *keys]
    return AttributeEntry(
        name, kind, shown_value(item[name]) if name in item else "", ", ".join(dict.fromkeys(roles))
    )


def _table(table: TablePlan, design: Declaration, plan: Plan, priced: CostReport) -> TableEntry:
    columns = tuple(dict.fromkeys([*_names(table.partition, table.sort), *_index_columns(table)]))
    rows = []
    for entity in design.entities:
        own = plan.entity(entity)
        if own.table == table.name:
            item = item_of(entity, own)
            held = {key.name for key in own.keys if key.name in item}
            rows.append(
                (
                    own.name,
                    tuple(shown_value(item[name]) if name in held else "" for name in columns),
                )
            )
    places = priced.by_index()
    indexes = tuple(
        _index(each, places.get(f"{table.name}/{each.name}", Decimal(0))) for each in table.indexes
    )
    views = collection_views(table, design, plan)
    return TableEntry(
        table.name, table.partition, table.sort or "", indexes, columns, tuple(rows), views
    )


def _names(*names: str | None) -> list[str]:
    return [name for name in names if name]


def _index_columns(table: TablePlan) -> list[str]:
    return [name for index in table.indexes for name in (*index.partition, *index.sort)]


def _index(index: IndexPlan, dollars: Decimal) -> IndexEntry:
    projection = index.projection if not index.included else f"INCLUDE {', '.join(index.included)}"
    return IndexEntry(
        index.name,
        index.kind,
        " + ".join(index.partition),
        " + ".join(index.sort),
        projection,
        index.patterns,
        dollars,
        index.reason,
    )

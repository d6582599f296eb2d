"""Item collections: example items grouped by partition, for the table and for each index.

This is the view that NoSQL Workbench and books on DynamoDB show: a partition key, the items under
it in the order of their sort keys, and the attributes of each. An index shows the items that have
its key, with the attributes that it projects.
"""

from __future__ import annotations

from dataclasses import dataclass

from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.plan.example_items import items_of, shown_value
from stator.design.plan.plan import IndexPlan, Plan, TablePlan
from stator.model.values import Item


@dataclass(frozen=True, slots=True)
class CollectionItem:
    """One item of a collection: its entity, its sort key, and its other attributes as text."""

    entity: str
    sort: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ItemCollection:
    """The items that share a partition key, in the order of their sort keys."""

    partition: str
    items: tuple[CollectionItem, ...]


@dataclass(frozen=True, slots=True)
class CollectionView:
    """The collections of a table or of one of its indexes, with the reads that it serves."""

    name: str
    partition: str
    sort: str
    collections: tuple[ItemCollection, ...]
    reads: tuple[str, ...]


def collection_views(
    table: TablePlan, design: Declaration, plan: Plan
) -> tuple[CollectionView, ...]:
    """Return the views of a table: its own key first, then each index."""
    items = [
        (info(entity).name, item)
        for entity in design.entities
        if plan.entity(entity).table == table.name
        for item in items_of(entity, plan.entity(entity))
    ]
    own = tuple(name for name in (table.partition, table.sort) if name)
    return (
        _view(table.name, own[:1], own[1:], items, None, _reads(plan, table.name, None)),
        *(
            _view(
                index.name,
                index.partition,
                index.sort,
                items,
                (index, own),
                _reads(plan, table.name, index.name),
            )
            for index in table.indexes
        ),
    )


def _reads(plan: Plan, table: str, index: str | None) -> tuple[str, ...]:
    return tuple(
        pattern.name
        for pattern in plan.patterns
        if pattern.kind == "read"
        and any(step.table == table and step.index == index for step in pattern.steps)
    )


def _view(
    name: str,
    partition: tuple[str, ...],
    sort: tuple[str, ...],
    items: list[tuple[str, Item]],
    of: tuple[IndexPlan, tuple[str, ...]] | None,
    reads: tuple[str, ...],
) -> CollectionView:
    keys = (*partition, *sort)
    grouped: dict[str, list[tuple[tuple[str, ...], CollectionItem]]] = {}
    for entity, item in items:
        if not all(key in item for key in keys):
            continue  # a sparse index does not hold it
        text = {each: shown_value(value) for each, value in item.items()}
        held = CollectionItem(
            entity,
            " / ".join(text[each] for each in sort),
            tuple(
                (each, value)
                for each, value in text.items()
                if each not in keys and (of is None or _projects(*of, each))
            ),
        )
        group = grouped.setdefault(" / ".join(text[each] for each in partition), [])
        group.append((tuple(text[each] for each in sort), held))
    collections = tuple(
        ItemCollection(value, tuple(each for _, each in sorted(found, key=lambda one: one[0])))
        for value, found in sorted(grouped.items())
    )
    return CollectionView(name, " / ".join(partition), " / ".join(sort), collections, reads)


def _projects(index: IndexPlan, table_key: tuple[str, ...], attribute: str) -> bool:
    return index.projection == "ALL" or attribute in (*index.included, *table_key)

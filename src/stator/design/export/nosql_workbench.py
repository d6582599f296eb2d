"""A data model for NoSQL Workbench, in its JSON format (version 3.0), with example items.

Each entity is a facet that holds its items, as in the models that AWS publishes.

The format has one attribute for each part of a key. If a part of an index key has several
attributes, the model has only the first, and its description says so: import the model to look at
it, and create the table from another export. The format also has one type for each attribute of a
table. If two entities disagree, a note says so.
"""

from __future__ import annotations

import json
from typing import Any, Final

from stator.design.entities.entity import info
from stator.design.export.source import Exported, ExportSource
from stator.design.plan.example_items import item_of
from stator.design.plan.guard_text import GUARD, OWNER, guard_prefix
from stator.design.plan.key_text import SEPARATOR
from stator.design.plan.own_table import ENTITY, FIELD, IDENTITY, guarded_fields
from stator.design.plan.plan import IndexPlan, TablePlan
from stator.model.values import Item

_DATE: Final = "Jan 01, 2026, 12:00 AM"
"""The required date. It is fixed, so that the same design always produces the same file."""


def export(source: ExportSource) -> Exported:
    notes = [
        note
        for table in source.plan.tables
        for note in (*_several(table), *_disagreeing(table, source))
    ]
    model = {
        "ModelName": source.design.name,
        "ModelMetadata": {
            "Author": "stator",
            "DateCreated": _DATE,
            "DateLastModified": _DATE,
            "Description": ". ".join([f"The design {source.design.name}", *notes]),
            "AWSService": "Amazon DynamoDB",
            "Version": "3.0",
        },
        "DataModel": [
            *(_table(table, source) for table in source.plan.tables),
            *(() if source.own_table is None else (_own_table(source.own_table, source),)),
        ],
    }
    return Exported(json.dumps(model, indent=2, ensure_ascii=False) + "\n", tuple(notes))


def _several(table: TablePlan) -> list[str]:
    return [
        f"{index.name} has several attributes in a key "
        f"({', '.join((*index.partition, *index.sort))}); NoSQL Workbench's format holds only the "
        f"first"
        for index in table.indexes
        if len(index.partition) > 1 or len(index.sort) > 1
    ]


def _disagreeing(table: TablePlan, source: ExportSource) -> list[str]:
    kinds: dict[str, set[str]] = {}
    for entity in source.entities(table):
        for name, value in item_of(entity, source.plan.entity(entity)).items():
            kinds.setdefault(name, set()).add(next(iter(value)))
    return [
        f"the type of {name} is {' or '.join(sorted(found))}, depending on the entity; NoSQL "
        f"Workbench's format holds only one"
        for name, found in kinds.items()
        if len(found) > 1
    ]


def _table(table: TablePlan, source: ExportSource) -> dict[str, Any]:
    kinds = dict(table.attributes)
    examples = {
        source.plan.entity(entity).name: item_of(entity, source.plan.entity(entity))
        for entity in source.entities(table)
    }
    found: dict[str, Any] = {
        "TableName": table.name,
        "KeyAttributes": _keys((table.partition,), (table.sort,) if table.sort else (), kinds),
        "NonKeyAttributes": _others(table, examples),
        "TableFacets": [_facet(name, item, table, source) for name, item in examples.items()],
    }
    for member, kind in (("GlobalSecondaryIndexes", "GSI"), ("LocalSecondaryIndexes", "LSI")):
        indexes = [_index(index, kinds) for index in table.indexes if index.kind == kind]
        if indexes:
            found[member] = indexes
    return found | {
        "DataAccess": {"MySql": {}},
        "BillingMode": "PAY_PER_REQUEST",
    }


def _own_table(table: TablePlan, source: ExportSource) -> dict[str, Any]:
    """Return the table ``<design>-stator``, with a facet for each kind of guard.

    A guard reserves a value of a unique field, or an identity. The other items of this table are
    created at run time and have no facet.
    """
    assert table.ttl is not None
    kinds = {OWNER: "S", ENTITY: "S", FIELD: "S", table.ttl: "N"}
    return {
        "TableName": table.name,
        "KeyAttributes": _keys(
            (table.partition,), (table.sort,) if table.sort else (), dict(table.attributes)
        ),
        "NonKeyAttributes": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()
        ],
        "TableFacets": [
            {
                "FacetName": f"{name}.{field} is unique",
                "KeyAttributeAlias": {
                    "PartitionKeyAlias": guard_prefix(name, field) + _value_alias(entity, field),
                    "SortKeyAlias": GUARD,
                },
                "TableData": [],
                "NonKeyAttributes": list(kinds),
                "DataAccess": {"MySql": {}},
            }
            for entity in source.design.entities
            for name in (source.plan.entity(entity).name,)
            for field in guarded_fields(entity, source.plan)
        ],
        "DataAccess": {"MySql": {}},
        "BillingMode": "PAY_PER_REQUEST",
    }


def _value_alias(entity: type[Any], field: str) -> str:
    names = info(entity).identity if field == IDENTITY else (field,)
    return SEPARATOR.join(f"{{{name}}}" for name in names)


def _keys(
    partition: tuple[str, ...], sort: tuple[str, ...], kinds: dict[str, str]
) -> dict[str, Any]:
    keys = {"PartitionKey": {"AttributeName": partition[0], "AttributeType": kinds[partition[0]]}}
    if sort:
        keys["SortKey"] = {"AttributeName": sort[0], "AttributeType": kinds[sort[0]]}
    return keys


def _index(index: IndexPlan, kinds: dict[str, str]) -> dict[str, Any]:
    return {
        "IndexName": index.name,
        "KeyAttributes": _keys(index.partition, index.sort, kinds),
        "Projection": index.request()["Projection"],
    }


def _others(table: TablePlan, examples: dict[str, Item]) -> list[dict[str, str]]:
    """Return the name and type of every attribute except the table's key attributes.

    The type of an attribute comes from the first example item that has it.
    """
    kinds: dict[str, str] = {}
    for item in examples.values():
        for name, value in item.items():
            kinds.setdefault(name, next(iter(value)))
    own = {table.partition, table.sort}
    return [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in kinds.items()
        if name not in own
    ]


def _facet(name: str, item: Item, table: TablePlan, source: ExportSource) -> dict[str, Any]:
    """Return the facet of an entity: an example item, and its key templates as key aliases."""
    templates = {
        key.name: str(key.template) for key in source.plan.entity(name).keys if key.index is None
    }
    alias = {"PartitionKeyAlias": templates[table.partition]}
    if table.sort:
        alias["SortKeyAlias"] = templates[table.sort]
    return {
        "FacetName": name,
        "KeyAttributeAlias": alias,
        "TableData": [item],
        "NonKeyAttributes": [each for each in item if each not in (table.partition, table.sort)],
        "DataAccess": {"MySql": {}},
    }

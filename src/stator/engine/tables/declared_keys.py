"""Key schemas and attribute definitions as CreateTable and UpdateTable declare them.

These are pure checks with AWS's texts, in AWS's order. A table or local index has one HASH and at
most one RANGE attribute; a global index has up to four of each.
"""

from __future__ import annotations

from typing import Any

from stator.engine.requests.shapes import failed, violations
from stator.errors import ValidationFailed
from stator.model.limits import INDEX_KEY_ATTRIBUTES
from stator.model.values import INVALID

Schema = list[dict[str, str]]

_NO_DEFINITION = "Invalid KeySchema: Some index key attribute have no definition"
_FIRST_NOT_HASH = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
_SECOND_NOT_RANGE = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
_SAME_NAME = "Both the Hash Key and the Range Key element in the KeySchema have the same name"
_NOT_EXACT = (
    f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes "
    "defined in AttributeDefinitions"
)


def names(schema: Schema) -> list[str]:
    return [element["AttributeName"] for element in schema]


def plain(schema: list[dict[str, Any]]) -> Schema:
    """Return a key schema with only the AttributeName and KeyType of each element."""
    return [
        {"AttributeName": element["AttributeName"], "KeyType": element["KeyType"]}
        for element in schema
    ]


def read_definitions(definitions: list[dict[str, str]]) -> dict[str, str]:
    """Return the type of each defined attribute, by name.

    A name may be defined only once, even with the same type.
    """
    attributes: dict[str, str] = {}
    for definition in definitions:
        name = definition["AttributeName"]
        if name in attributes:
            raise ValidationFailed(f"Attribute Name is duplicated: {name}")
        attributes[name] = definition["AttributeType"]
    return attributes


def check_table_keys(schema: Schema, attributes: dict[str, str]) -> None:
    check_two_at_most(schema, "keySchema")
    if len(schema) > len(attributes):
        raise ValidationFailed(_NO_DEFINITION)
    check_defined(schema, attributes)
    _check_hash_then_range(schema)


def check_two_at_most(schema: Schema, path: str) -> None:
    if len(schema) > 2:
        shown = ", ".join(
            f"KeySchemaElement(attributeName={element['AttributeName']}, "
            f"keyType={element['KeyType']})"
            for element in schema
        )
        raise violations(
            [failed(f"[{shown}]", path, "Member must have length less than or equal to 2")]
        )


def check_defined(schema: Schema, attributes: dict[str, str]) -> None:
    if not attributes.keys() >= set(names(schema)):
        raise ValidationFailed(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: {_listed(names(schema))}, AttributeDefinitions: {_listed(attributes)}"
        )


def check_all_used(schemas: list[Schema], attributes: dict[str, str]) -> None:
    """Check that every attribute definition belongs to a key. The first schema is the table's."""
    used = {name for schema in schemas for name in names(schema)}
    if used == attributes.keys():
        return
    if len(schemas) == 1:
        raise ValidationFailed(_NOT_EXACT)
    raise ValidationFailed(
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
        f"{_listed(attributes)}, keys used: {_listed(used)}"
    )


def check_local_index_keys(name: str, schema: Schema, table_schema: Schema, path: str) -> None:
    check_two_at_most(schema, path)
    _check_hash_then_range(schema)
    if len(schema) < 2:
        raise ValidationFailed(
            f"{INVALID}Index KeySchema does not have a range key for index: {name}"
        )
    own, table = names(schema)[0], names(table_schema)[0]
    if own != table:
        raise ValidationFailed(
            f"{INVALID}Index KeySchema does not have the same leading hash key as table "
            f"KeySchema for index: {name}. index hash key: {own}, table hash key: {table}"
        )


def check_global_index_keys(schema: Schema) -> None:
    kinds = [element["KeyType"] for element in schema]
    if kinds[0] != "HASH":
        raise ValidationFailed(_FIRST_NOT_HASH)
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > INDEX_KEY_ATTRIBUTES:
            raise ValidationFailed(
                f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} "
                "key attributes"
            )
    if kinds != sorted(kinds):
        raise ValidationFailed(
            f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    kinds_and_names = [(element["KeyType"], element["AttributeName"]) for element in schema]
    if len(set(kinds_and_names)) < len(schema):
        # ScyllaDB's tests, which run on AWS, look for "duplicate"; the rest of the text is ours.
        raise ValidationFailed(f"{INVALID}Duplicate key attributes in the KeySchema")
    if len(set(names(schema))) < len(schema):
        raise ValidationFailed("The KeySchema contains multiple key attributes with the same name")


def _check_hash_then_range(schema: Schema) -> None:
    if len(schema) == 2 and schema[0]["AttributeName"] == schema[1]["AttributeName"]:
        raise ValidationFailed(_SAME_NAME)
    if schema[0]["KeyType"] != "HASH":
        raise ValidationFailed(_FIRST_NOT_HASH)
    if len(schema) == 2 and schema[1]["KeyType"] != "RANGE":
        raise ValidationFailed(_SECOND_NOT_RANGE)


def _listed(attribute_names: Any) -> str:
    """Return names as AWS's messages list them: ``[a, b]``.

    The names are sorted, so that the order is stable. AWS uses the order of a hash map.
    """
    return f"[{', '.join(sorted(attribute_names))}]"

"""The key attributes of a table, from its description or from the names in its items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stator.errors import ConfigurationError

Item = dict[str, dict[str, Any]]
Key = tuple[str, ...]
_USUAL_KEYS: Final = (
    ("PK", "SK"),
    ("pk", "sk"),
    ("Pk", "Sk"),
    ("partitionKey", "sortKey"),
    ("id",),
)
_GENERIC: Final = re.compile(
    r"(?i)_?((gsi|lsi|index|gs|ls|data)?[_-]?\d*[_-]?(pk|sk|partition_?key|sort_?key|hash(_?key)?"
    r"|range(_?key)?)[_-]?\d*|(gsi|lsi)[_-]?\d+|data)"
)


def is_generic(attribute: str) -> bool:
    """Whether an attribute is made for keys, as ``GSI1PK`` is, and means nothing by itself."""
    return bool(_GENERIC.fullmatch(attribute))


@dataclass(frozen=True, slots=True)
class IndexKeys:
    """The key attributes and options of an index. ``included`` are the projected attributes."""

    partition: Key
    sort: Key = ()
    local: bool = False
    projection: str = "ALL"
    included: Key = ()

    @property
    def names(self) -> Key:
        return (*self.partition, *self.sort)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The key attributes of a table and of its indexes.

    ``types`` has the DynamoDB type of each key attribute, as far as it is known. ``ttl`` is the
    attribute that items expire by; None if the table has none, or if that is unknown.
    """

    partition: str
    sort: str | None
    indexes: Mapping[str, IndexKeys] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    ttl: str | None = None
    is_ttl_known: bool = False

    @property
    def own(self) -> Key:
        return (self.partition, self.sort) if self.sort else (self.partition,)

    @property
    def names(self) -> Key:
        """All key attributes. The attributes of the table's key come first."""
        return tuple(
            dict.fromkeys(
                (*self.own, *(name for each in self.indexes.values() for name in each.names))
            )
        )

    @property
    def has_usual_names(self) -> bool:
        """Whether all key attributes have the names that the planner would give them."""
        return self.own == ("PK", "SK") and all(
            each == IndexKeys((f"{name}PK",), (f"{name}SK",)) for name, each in self.indexes.items()
        )

    @property
    def whole(self) -> frozenset[str]:
        """The attributes of multi-attribute index keys, each of which must be a field by itself.

        A partition or sort key of an index may have several attributes. Each of them holds one
        value. If only the partition key has several, the attribute of the sort key is not included.
        """
        return frozenset(
            name
            for each in self.indexes.values()
            for side in (each.partition, each.sort)
            if len(side) > 1
            for name in side
        )


def table_keys(items: Sequence[Item], description: Mapping[str, Any] | None) -> TableKeys:
    """Return the keys from the table's description.

    Without a description, guess them from common attribute names in the items.
    """
    if description is not None:
        return _described(description)
    common = set.intersection(*(set(item) for item in items))
    for names in _USUAL_KEYS:
        if set(names) <= common:
            return TableKeys(
                names[0], names[1] if len(names) > 1 else None, _guessed_indexes(items)
            )
    raise ConfigurationError(
        "the table's key is unknown: an export does not name it, and no attribute looks like one",
        hint="name the key attributes, for example --key user_id or --key user_id,placed_at",
    )


def _described(description: Mapping[str, Any]) -> TableKeys:
    partition, sort = _schema(description["KeySchema"])
    indexes = {}
    for member, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        for each in description.get(member) or ():
            projection = each.get("Projection") or {}
            indexes[each["IndexName"]] = IndexKeys(
                *_schema(each["KeySchema"]),
                local,
                projection.get("ProjectionType", "ALL"),
                tuple(sorted(projection.get("NonKeyAttributes") or ())),
            )
    expiry = description.get("TimeToLiveDescription")
    is_on = expiry is not None and expiry.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TableKeys(
        partition[0],
        sort[0] if sort else None,
        dict(sorted(indexes.items())),
        {
            each["AttributeName"]: each["AttributeType"]
            for each in description.get("AttributeDefinitions") or ()
        },
        expiry["AttributeName"] if expiry is not None and is_on else None,
        expiry is not None,
    )


def _guessed_indexes(items: Sequence[Item]) -> dict[str, IndexKeys]:
    found = sorted(set().union(*items))
    pairs: dict[str, IndexKeys] = {}
    for name in found:
        match = re.fullmatch(r"(?i)(.*\d+.*?)_?(pk)", name)
        if match and all("S" in item[name] for item in items if name in item):
            sort = next(
                (one for one in found if one.lower() == name.lower()[: match.start(2)] + "sk"), None
            )
            pairs[match.group(1)] = IndexKeys((name,), (sort,) if sort else ())
    return pairs


def _schema(schema: Sequence[Mapping[str, str]]) -> tuple[Key, Key]:
    return (
        tuple(each["AttributeName"] for each in schema if each["KeyType"] == "HASH"),
        tuple(each["AttributeName"] for each in schema if each["KeyType"] == "RANGE"),
    )

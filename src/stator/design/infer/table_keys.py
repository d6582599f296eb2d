"""The key attributes of a table, from its description or from the names in its items."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.design.infer.groups import Item
from stator.errors import ConfigurationError

Key = tuple[str, ...]
_USUAL_KEYS: Final = (
    ("PK", "SK"),
    ("pk", "sk"),
    ("Pk", "Sk"),
    ("partitionKey", "sortKey"),
    ("id",),
)


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The key attributes of a table and of its indexes."""

    partition: str
    sort: str | None
    indexes: Mapping[str, Key]

    @property
    def own(self) -> Key:
        return (self.partition, self.sort) if self.sort else (self.partition,)

    def renamed(self) -> dict[str, str]:
        """Return the key attributes that have other names than the planner's: ``{"PK": "pk"}``."""
        pairs = {"PK": self.partition} | ({"SK": self.sort} if self.sort else {})
        for index, names in self.indexes.items():
            pairs |= dict(zip((f"{index}PK", f"{index}SK"), names))
        return {ours: theirs for ours, theirs in pairs.items() if ours != theirs}


def table_keys(items: Sequence[Item], description: Mapping[str, Any] | None) -> TableKeys:
    """Return the keys from the table's description.

    Without a description, guess them from common attribute names in the items.
    """
    if description is not None:
        partition, sort = _schema(description["KeySchema"])
        members = [
            *(description.get("GlobalSecondaryIndexes") or ()),
            *(description.get("LocalSecondaryIndexes") or ()),
        ]
        single = {
            each["IndexName"]: each["KeySchema"] for each in members if len(each["KeySchema"]) <= 2
        }
        indexes = {
            name: tuple(part for part in _schema(schema) if part)
            for name, schema in sorted(single.items())
        }
        return TableKeys(str(partition), sort, indexes)
    common = set.intersection(*(set(item) for item in items))
    for names in _USUAL_KEYS:
        if set(names) <= common:
            indexes = _guessed_indexes(items)
            return TableKeys(names[0], names[1] if len(names) > 1 else None, indexes)
    raise ConfigurationError(
        "the table's key is unknown: an export does not name it, and no attribute looks like one",
        hint="name the key attributes, for example --key user_id or --key user_id,placed_at",
    )


def _guessed_indexes(items: Sequence[Item]) -> dict[str, Key]:
    found = sorted(set().union(*items))
    pairs: dict[str, Key] = {}
    for name in found:
        match = re.fullmatch(r"(?i)(.*\d+.*?)_?(pk)", name)
        if match:
            sort = next(
                (one for one in found if one.lower() == name.lower()[: match.start(2)] + "sk"), None
            )
            pairs[match.group(1)] = (name, sort) if sort else (name,)
    return pairs


def _schema(schema: Sequence[Mapping[str, str]]) -> tuple[str | None, str | None]:
    parts = {each["KeyType"]: each["AttributeName"] for each in schema}
    return parts.get("HASH"), parts.get("RANGE")

"""The table that a job creates if it is missing: by keys, by a design, or like another table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from stator.clock import Clock
from stator.errors import ConfigurationError, ResourceInUse
from stator.pipeline.bulk.retried_call import retried_call
from stator.pipeline.bulk.targets import BulkTarget, described, find_description

KEY_TYPES: Final = ("S", "N", "B")
_POLL_SECONDS = 0.5


def key_creation(table: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return a CreateTable request, billed on demand, for keys such as ``pk=S`` and ``sk=N``.

    The first key is the partition key, the second the sort key.
    """
    parsed = [_parsed_key(each) for each in keys]
    names = [name for name, _ in parsed]
    if not 1 <= len(parsed) <= 2 or len(set(names)) != len(names):
        raise ConfigurationError(
            f"--key names {', '.join(names)}: a key is one or two different attributes",
            hint="name the partition key and, if the table has one, the sort key:"
            " --key pk=S --key sk=N",
        )
    return {
        "TableName": table,
        "KeySchema": [
            {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"))
        ],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in parsed
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


def _parsed_key(text: str) -> tuple[str, str]:
    name, _, kind = text.rpartition("=")
    if not name or kind not in KEY_TYPES:
        raise ConfigurationError(
            f"--key {text} cannot be parsed", hint=f"write --key NAME={'|'.join(KEY_TYPES)}"
        )
    return name, kind


def like_creation(description: dict[str, Any], table: str) -> dict[str, Any]:
    """Return a CreateTable request with the keys and indexes of another table's description.

    The new table is billed on demand.
    """
    request: dict[str, Any] = {
        "TableName": table,
        "KeySchema": description["KeySchema"],
        "AttributeDefinitions": description["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST",
    }
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        indexes = description.get(kind)
        if indexes:
            request[kind] = [
                {name: each[name] for name in ("IndexName", "KeySchema", "Projection")}
                for each in indexes
            ]
    return request


def ensure_table(
    target: BulkTarget, request: dict[str, Any], clock: Clock, chance: random.Random
) -> None:
    """Create a table unless it exists, and wait until it is ACTIVE.

    A table that already exists is no error: another process, a killed run, or an attempt whose
    reply was lost may have created it.
    """
    if find_description(target, clock, chance) is None:
        with suppress(ResourceInUse):
            retried_call(target.transport, clock, chance, "CreateTable", request)
    while described(target, clock, chance)["TableStatus"] != "ACTIVE":
        clock.sleep(_POLL_SECONDS)


def check_same_key(target: BulkTarget, description: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Raise ConfigurationError if an existing table has another key than ``wanted``."""
    found, expected = _key_text(description), _key_text(wanted)
    if found != expected:
        raise ConfigurationError(
            f"the table {target.table} exists with the key {found}, but --key says {expected}",
            hint="leave out --key, or name another table",
        )


def _key_text(description: dict[str, Any]) -> str:
    kinds = {
        each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]
    }
    schema = sorted(description["KeySchema"], key=lambda each: each["KeyType"] != "HASH")
    return " ".join(f"{each['AttributeName']}={kinds[each['AttributeName']]}" for each in schema)

"""Drift: how deployed tables differ from their plan, according to DescribeTable.

The module does no I/O: the caller passes the descriptions. Each difference says what the table has,
what the plan requires, and how to resolve it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stator.design.plan.plan import IndexPlan, Plan, TablePlan
from stator.design.table_settings import TableSettings

Severity = Literal["missing", "different", "extra"]
Description = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``where`` is a table or an index of it; ``remedy`` says how to resolve it."""

    severity: Severity
    where: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.remedy}"


def drift(
    plan: Plan,
    described: Mapping[str, Description | None],
    beside: Iterable[TablePlan] = (),
    settings: TableSettings | None = None,
) -> list[Difference]:
    """Return how deployed tables differ from the tables of a plan.

    ``beside`` has further tables to compare, such as the design's own table. ``described`` maps
    each table name to its description, or to None if the table does not exist. A description is
    what DescribeTable returns. The caller may add ``TimeToLiveDescription`` and
    ``PointInTimeRecoveryDescription``; without them, expiry and recovery are not compared.
    """
    found = []
    for table in (*plan.tables, *beside):
        there = described.get(table.name)
        found += table_drift(table, there)
        if there is not None:
            found += _expiry_drift(table, there)
            found += _settings_drift(table.name, settings or TableSettings(), there)
    return found


def is_provisioned(found: Description) -> bool:
    mode = (found.get("BillingModeSummary") or {}).get("BillingMode", "PROVISIONED")
    return bool(mode == "PROVISIONED")


def is_encrypted_with(key: str, found: Description) -> bool:
    """Whether a table uses this KMS key. DescribeTable shows an alias as the ARN of its key."""
    there = found.get("SSEDescription") or {}
    if there.get("Status") not in ("ENABLED", "ENABLING", "UPDATING"):
        return False
    shown = str(there.get("KMSMasterKeyArn", ""))
    return key.startswith("alias/") or shown == key or shown.rpartition("/")[2] == key


def _expiry_drift(table: TablePlan, found: Description) -> list[Difference]:
    there = found.get("TimeToLiveDescription")
    if there is None:
        return []
    is_on = there.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    shown = there.get("AttributeName") if is_on else None
    if shown == table.ttl:
        return []
    if table.ttl is None:
        remedy = "switch it off, or give an entity a ttl() field with that name"
        return [Difference("extra", table.name, f"items expire by {shown}", remedy)]
    if shown is None:
        remedy = "switch it on: db.ensure(), or UpdateTimeToLive"
        message = f"items do not expire, and the design requires expiry by {table.ttl}"
        return [Difference("missing", table.name, message, remedy)]
    message = f"items expire by {shown}, and the design requires expiry by {table.ttl}"
    remedy = "switch it off, wait an hour, and switch it on with the other attribute"
    return [Difference("different", table.name, message, remedy)]


def _settings_drift(name: str, settings: TableSettings, found: Description) -> list[Difference]:
    """Return how a table differs from the declared settings.

    Settings that the design leaves open (None) are not compared.
    """
    there = {
        "stream": _stream_of(found),
        "deletion protection": bool(found.get("DeletionProtectionEnabled")),
        "table class": (found.get("TableClassSummary") or {}).get("TableClass", "STANDARD"),
        "billing": "provisioned" if is_provisioned(found) else "by request",
    }
    wanted: dict[str, object] = {
        "stream": settings.stream,
        "deletion protection": settings.deletion_protection,
        "table class": settings.table_class,
        "billing": None if settings.capacity is None else "provisioned",
    }
    recovery = found.get("PointInTimeRecoveryDescription")
    if recovery is not None:
        is_on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
        there["point-in-time recovery"] = is_on
        wanted["point-in-time recovery"] = settings.recovers
    differences = [
        Difference(
            "different",
            name,
            f"its {what} is {_word(there[what])}, and the design requires {_word(value)}",
            "change it with db.ensure(), or deploy what stator export-design writes",
        )
        for what, value in wanted.items()
        if value is not None and there[what] != value
    ]
    key = settings.kms_key
    if key is not None and not is_encrypted_with(key, found):
        message = f"it is not encrypted with {key}"
        differences.append(Difference("different", name, message, "change it with db.ensure()"))
    return differences


def _stream_of(found: Description) -> object:
    there = found.get("StreamSpecification") or {}
    return there.get("StreamViewType") if there.get("StreamEnabled") else False


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def table_drift(table: TablePlan, found: Description | None) -> list[Difference]:
    if found is None:
        return [Difference("missing", table.name, "there is no such table", "create it")]
    return [*_key_drift(table, found), *_index_drift(table, found), *_type_drift(table, found)]


def _key_drift(table: TablePlan, found: Description) -> list[Difference]:
    wanted = _shown_key((table.partition,), (table.sort,) if table.sort else ())
    there = _described_key(found["KeySchema"])
    if wanted == there:
        return []
    message = f"its key is {there}, and the design requires {wanted}"
    return [
        Difference(
            "different", table.name, message, "a table's key cannot be changed: move to a new table"
        )
    ]


def _type_drift(table: TablePlan, found: Description) -> list[Difference]:
    there = {each["AttributeName"]: each["AttributeType"] for each in found["AttributeDefinitions"]}
    return [
        Difference(
            "different",
            table.name,
            f"the key attribute {name} has type {there[name]}, and the design requires {kind}",
            "the type of a key cannot be changed: move to a new table, or create the index again "
            "under another name",
        )
        for name, kind in table.attributes
        if name in there and there[name] != kind
    ]


def _index_drift(table: TablePlan, found: Description) -> list[Difference]:
    there: dict[str, tuple[str, Description]] = {}
    for kind, member in (("GSI", "GlobalSecondaryIndexes"), ("LSI", "LocalSecondaryIndexes")):
        there |= {each["IndexName"]: (kind, each) for each in found.get(member) or ()}
    wanted = {index.name: index for index in table.indexes}
    differences: list[Difference] = []
    for name, index in sorted(wanted.items()):
        if name in there:
            differences += _one_index(table.name, index, *there[name])
        else:
            remedy = "add it: UpdateTable fills it from the items that have its key attributes"
            if index.kind == "LSI":
                remedy = "a local index is created with its table only: move to a new table"
            where = f"{table.name}/{name}"
            differences.append(
                Difference("missing", where, f"there is no such {index.kind}", remedy)
            )
    for name in sorted(there.keys() - wanted.keys()):
        remedy = "delete it if nothing else reads it: every write to it is paid for"
        differences.append(
            Difference("extra", f"{table.name}/{name}", "the design has no such index", remedy)
        )
    return differences


def _one_index(table: str, index: IndexPlan, kind: str, found: Description) -> list[Difference]:
    where, anew = (
        f"{table}/{index.name}",
        "an index cannot be changed: add it under another name, then delete this one",
    )
    differences: list[Difference] = []
    if kind != index.kind:
        differences.append(
            Difference(
                "different", where, f"it is a {kind}, and the design requires a {index.kind}", anew
            )
        )
    wanted, there = _shown_key(index.partition, index.sort), _described_key(found["KeySchema"])
    if wanted != there:
        differences.append(
            Difference(
                "different", where, f"its key is {there}, and the design requires {wanted}", anew
            )
        )
    projection = found.get("Projection", {})
    shown = _shown_projection(
        projection.get("ProjectionType", "ALL"), projection.get("NonKeyAttributes") or ()
    )
    desired = _shown_projection(index.projection, index.included)
    if shown != desired:
        differences.append(
            Difference(
                "different", where, f"it projects {shown}, and the design requires {desired}", anew
            )
        )
    status = found.get("IndexStatus", "ACTIVE")
    if status != "ACTIVE":
        differences.append(
            Difference("different", where, f"it is {status}", "wait until it is ACTIVE")
        )
    return differences


def _shown_key(partition: tuple[str, ...], sort: tuple[str, ...]) -> str:
    return " + ".join(partition) + (f" / {' + '.join(sort)}" if sort else "")


def _described_key(schema: list[Mapping[str, str]]) -> str:
    parts = {
        kind: tuple(each["AttributeName"] for each in schema if each["KeyType"] == kind)
        for kind in ("HASH", "RANGE")
    }
    return _shown_key(parts["HASH"], parts["RANGE"])


def _shown_projection(kind: str, included: Any) -> str:
    return f"{kind} ({', '.join(sorted(included))})" if kind == "INCLUDE" else kind

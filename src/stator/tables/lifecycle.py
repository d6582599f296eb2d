"""Table setup: creates a design's tables, and adds indexes, TTL, streams, recovery and tags.

Setup only adds. A change that would lose data, or that requires a table or index to be created
again, is refused before anything is changed. The error lists all the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.backoff import Backoff
from stator.design.plan.drift import (
    Difference,
    is_encrypted_with,
    is_provisioned,
    table_drift,
)
from stator.design.plan.plan import IndexPlan, TablePlan
from stator.design.table_settings import TableSettings, shows
from stator.errors import (
    ContinuousBackupsUnavailable,
    DestructiveChange,
    ResourceInUse,
    ResourceNotFound,
    StatorError,
    ValidationFailed,
)
from stator.tables.context import Context
from stator.tables.schema import Place
from stator.tables.work import Call, Pause, Work

_POLL_SECONDS = 1.0
# The embedded engine is ready at once; AWS takes seconds.
_POLLING = Backoff(base_seconds=0.02, cap_seconds=_POLL_SECONDS, jitter=0.0)


class TableSetup:
    """Adjusts the tables to the design. ``done`` lists what changed, in words."""

    def __init__(self, context: Context, settings: TableSettings) -> None:
        self.context = context
        self.schema = context.schema
        self.settings = settings
        self.done: list[str] = []

    def run(self) -> Work[list[str]]:
        described = {}
        for table in self.schema.plan.tables:
            described[table.name] = yield from self.describe(table.name)
        self._refuse(described)
        for table in self.schema.plan.tables:
            yield from self._table(table, described[table.name])
        yield from self.place(self.schema.place)
        return self.done

    def describe(self, table: str) -> Work[dict[str, Any] | None]:
        try:
            reply = yield Call("DescribeTable", {"TableName": table}, "ensure")
        except ResourceNotFound:
            return None
        found: dict[str, Any] = reply["Table"]
        return found

    def _refuse(self, described: Mapping[str, Any]) -> None:
        blocking: list[Difference] = []
        for table in self.schema.plan.tables:
            found = described[table.name]
            if found is None:
                continue
            for difference in table_drift(table, found):
                is_addition = difference.severity == "missing" and _addable(table, difference)
                if (
                    not is_addition
                    and difference.severity != "extra"
                    and "ACTIVE" not in difference.remedy
                ):
                    blocking.append(difference)
        if blocking:
            raise DestructiveChange(
                "the existing tables cannot be brought to this design without losing data: "
                + "; ".join(map(str, blocking)),
                changes=tuple(map(str, blocking)),
                hint="connect to other tables with prefix=..., or move the data with a migration",
            )

    # -- one table

    def _table(self, table: TablePlan, found: dict[str, Any] | None) -> Work[None]:
        if found is None:
            yield from self._create(table.create_request(), table.name)
        else:
            yield from self._wait(table.name)
            for index in _missing(table, found):
                yield from self._add_index(table, index)
            yield from self._stream(table.name, found)
            yield from self._adjust(table.name, found)
        ttl = self.schema.ttl_of(table.name)
        if ttl is not None:
            yield from self._expiry(table.name, ttl)
        yield from self._recovery(table.name)
        yield from self._tags(table.name)

    def place(self, place: Place) -> Work[None]:
        """Create or adjust a table for items that belong to no entity."""
        found = yield from self.describe(place.table)
        if found is None:
            yield from self._create(place.create_request(), place.table)
        else:
            yield from self._stream(place.table, found)
            yield from self._adjust(place.table, found)
        yield from self._expiry(place.table, place.ttl)
        yield from self._recovery(place.table)
        yield from self._tags(place.table)

    def _create(self, request: dict[str, Any], name: str) -> Work[None]:
        self.settings.create_members(request, name)
        try:
            yield Call("CreateTable", request, "ensure")
        except ResourceInUse:  # another process creates it at the same time
            pass
        else:
            self.done.append(f"created {name}")
        yield from self._wait(name)

    def _add_index(self, table: TablePlan, index: IndexPlan) -> Work[None]:
        names = {*index.partition, *index.sort}
        request = {
            "TableName": table.name,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind}
                for name, kind in table.attributes
                if name in names
            ],
            "GlobalSecondaryIndexUpdates": [{"Create": self._index_request(index)}],
        }
        yield Call("UpdateTable", request, "ensure")
        self.done.append(f"added {index.name} to {table.name}")
        yield from self._wait(table.name)

    def _index_request(self, index: IndexPlan) -> dict[str, Any]:
        request, capacity = index.request(), self.settings.capacity
        if capacity is not None:
            request["ProvisionedThroughput"] = capacity.of_index(index.name).throughput
        return request

    def _wait(self, name: str) -> Work[None]:
        """Wait until the table and all its indexes are ACTIVE."""
        until = self.context.now() + self.settings.timeout_seconds
        timer = self.context.timer(_POLLING)
        while True:
            found = yield from self.describe(name)
            if found is not None and found["TableStatus"] == "ACTIVE":
                indexes = found.get("GlobalSecondaryIndexes") or ()
                if all(index.get("IndexStatus", "ACTIVE") == "ACTIVE" for index in indexes):
                    return
            if self.context.now() >= until:
                raise StatorError(
                    f"{name} was not ready after {self.settings.timeout_seconds:g} seconds",
                    hint="large indexes take long to build: call ensure() again to keep waiting",
                )
            yield Pause(timer.next_delay())

    # -- settings

    def _expiry(self, table: str, attribute: str) -> Work[None]:
        reply = yield Call("DescribeTimeToLive", {"TableName": table}, "ensure")
        now = reply["TimeToLiveDescription"]
        if now.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
            if now.get("AttributeName") != attribute:
                message = (
                    f"items of {table} expire by {now.get('AttributeName')}; "
                    f"the design has {attribute}"
                )
                raise DestructiveChange(
                    message,
                    changes=(message,),
                    hint="disable time to live on the table first, then wait an hour",
                )
            return
        request = {
            "TableName": table,
            "TimeToLiveSpecification": {"Enabled": True, "AttributeName": attribute},
        }
        yield Call("UpdateTimeToLive", request, "ensure")
        self.done.append(f"items of {table} expire by {attribute}")

    def _adjust(self, table: str, found: Mapping[str, Any]) -> Work[None]:
        """Change settings of an existing table, one request each, as DynamoDB requires."""
        for members, done in setting_changes(self.settings, found):
            yield Call("UpdateTable", {"TableName": table, **members}, "ensure")
            self.done.append(f"{table} {done}")
            yield from self._wait(table)

    def _stream(self, table: str, found: Mapping[str, Any]) -> Work[None]:
        wanted = self.settings.stream or self.settings.streams.get(table)
        if wanted is None:
            return
        there = found.get("StreamSpecification") or {}
        if there.get("StreamEnabled"):
            shown = str(there.get("StreamViewType"))
            is_enough = self.settings.stream is None and shows(shown, wanted)
            if shown != wanted and not is_enough:
                message = f"the stream of {table} shows {shown}; the settings ask for {wanted}"
                raise DestructiveChange(
                    message,
                    changes=(message,),
                    hint="disable the stream first; its readers must then start from the beginning",
                )
            return
        specification = {"StreamEnabled": True, "StreamViewType": wanted}
        try:
            yield Call(
                "UpdateTable", {"TableName": table, "StreamSpecification": specification}, "ensure"
            )
        except (ResourceInUse, ValidationFailed):
            # Another process does the same: the table is updating, or has a stream by now.
            yield from self._wait(table)
            now = yield from self.describe(table)
            if now is None or now.get("StreamSpecification") != specification:
                raise
        else:
            self.done.append(f"{table} has a stream of {wanted}")
            yield from self._wait(table)

    def _recovery(self, table: str) -> Work[None]:
        wanted = self.settings.point_in_time_recovery
        if wanted is None:
            return
        reply = yield Call("DescribeContinuousBackups", {"TableName": table}, "ensure")
        now = reply["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        is_on, days = now.get("PointInTimeRecoveryStatus") == "ENABLED", self.settings.recovery_days
        is_long = days is None or now.get("RecoveryPeriodInDays", 35) == days
        if is_on == wanted and (is_long or not wanted):
            return
        if not wanted:
            message = f"turning off the recovery of {table} loses its history"
            raise DestructiveChange(
                message,
                changes=(message,),
                hint="to turn recovery off all the same, call UpdateContinuousBackups",
            )
        request = {
            "TableName": table,
            "PointInTimeRecoverySpecification": self.settings.recovery,
        }
        until = self.context.now() + self.settings.timeout_seconds
        while True:
            try:
                yield Call("UpdateContinuousBackups", request, "ensure")
            except ContinuousBackupsUnavailable:  # AWS needs a while after it creates a table
                if self.context.now() >= until:
                    raise
                yield Pause(_POLL_SECONDS)
            else:
                break
        self.done.append(f"{table} can be restored to any second")

    def _tags(self, table: str) -> Work[None]:
        if not self.settings.tags:
            return
        found = yield from self.describe(table)
        assert found is not None
        arn = found["TableArn"]
        there: dict[str, str] = {}
        request = {"ResourceArn": arn}
        while True:
            reply = yield Call("ListTagsOfResource", request, "ensure")
            there |= {tag["Key"]: tag["Value"] for tag in reply.get("Tags", ())}
            if not reply.get("NextToken"):
                break
            request = {"ResourceArn": arn, "NextToken": reply["NextToken"]}
        missing = {
            key: value for key, value in self.settings.tags.items() if there.get(key) != value
        }
        if missing:
            tags = [{"Key": key, "Value": value} for key, value in missing.items()]
            yield Call("TagResource", {"ResourceArn": arn, "Tags": tags}, "ensure")
            self.done.append(f"tagged {table}")


def setting_changes(
    settings: TableSettings, found: Mapping[str, Any]
) -> list[tuple[dict[str, Any], str]]:
    """Return the UpdateTable members that bring a described table to the settings.

    Each comes with the change in words. Capacity that scales is left alone.
    """
    changes: list[tuple[dict[str, Any], str]] = []
    protected = settings.deletion_protection
    if protected is not None and bool(found.get("DeletionProtectionEnabled")) != protected:
        done = f"is {'now' if protected else 'no longer'} protected against deletion"
        changes.append(({"DeletionProtectionEnabled": protected}, done))
    there = (found.get("TableClassSummary") or {}).get("TableClass", "STANDARD")
    if settings.table_class is not None and there != settings.table_class:
        changes.append(({"TableClass": settings.table_class}, f"has class {settings.table_class}"))
    if settings.kms_key is not None and not is_encrypted_with(settings.kms_key, found):
        done = f"is encrypted with {settings.kms_key}"
        changes.append(({"SSESpecification": settings.encryption}, done))
    capacity = settings.capacity
    if capacity is not None and not is_provisioned(found):
        indexes = [
            {"Update": {"IndexName": name, "ProvisionedThroughput": own.throughput}}
            for name in (each["IndexName"] for each in found.get("GlobalSecondaryIndexes") or ())
            if (own := capacity.of_index(name))
        ]
        members: dict[str, Any] = {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": capacity.throughput,
        }
        members |= {"GlobalSecondaryIndexUpdates": indexes} if indexes else {}
        changes.append((members, "is provisioned"))
    return changes


def _missing(table: TablePlan, found: Mapping[str, Any]) -> list[IndexPlan]:
    there = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes") or ()}
    return [index for index in table.indexes if index.kind == "GSI" and index.name not in there]


def _addable(table: TablePlan, difference: Difference) -> bool:
    name = difference.where.rpartition("/")[2]
    return any(index.name == name and index.kind == "GSI" for index in table.indexes)

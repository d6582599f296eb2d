"""Table setup: creates a design's tables, and adds indexes, TTL, streams, recovery and tags.

Setup only adds. A change that would lose data, or that requires a table or index to be created
again, is refused before anything is changed. The error lists all the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stator.backoff import Backoff
from stator.design.plan.drift import Difference, table_drift
from stator.design.plan.plan import IndexPlan, TablePlan
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
from stator.tables.stream_view import StreamView, shows
from stator.tables.work import Call, Pause, Work

_POLL_SECONDS = 1.0
# The embedded engine is ready at once; AWS takes seconds.
_POLLING = Backoff(base_seconds=0.02, cap_seconds=_POLL_SECONDS, jitter=0.0)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Settings of tables in addition to keys and indexes. None leaves a setting unchanged.

    ``stream`` is the exact view type of every table's stream. ``streams`` maps a table to the
    smallest view type that suffices; a stream that shows more is left as it is.
    """

    stream: StreamView | None = None
    streams: Mapping[str, StreamView] = field(default_factory=dict)
    point_in_time_recovery: bool | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    deletion_protection: bool | None = None
    timeout_seconds: float = 600.0


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
            yield from self._protection(table.name, found)
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
        yield from self._expiry(place.table, place.ttl)

    def _create(self, request: dict[str, Any], name: str) -> Work[None]:
        settings = self.settings
        stream = settings.stream or settings.streams.get(name)
        if stream is not None:
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream}
        if settings.deletion_protection is not None:
            request["DeletionProtectionEnabled"] = settings.deletion_protection
        if settings.tags:
            request["Tags"] = [{"Key": key, "Value": value} for key, value in settings.tags.items()]
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
            "GlobalSecondaryIndexUpdates": [{"Create": index.request()}],
        }
        yield Call("UpdateTable", request, "ensure")
        self.done.append(f"added {index.name} to {table.name}")
        yield from self._wait(table.name)

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

    def _protection(self, table: str, found: Mapping[str, Any]) -> Work[None]:
        wanted = self.settings.deletion_protection
        if wanted is None or bool(found.get("DeletionProtectionEnabled")) == wanted:
            return
        yield Call(
            "UpdateTable", {"TableName": table, "DeletionProtectionEnabled": wanted}, "ensure"
        )
        self.done.append(
            f"{table} is {'now' if wanted else 'no longer'} protected against deletion"
        )
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
        if (now.get("PointInTimeRecoveryStatus") == "ENABLED") == wanted:
            return
        if not wanted:
            message = f"turning off the recovery of {table} loses its history"
            raise DestructiveChange(
                message,
                changes=(message,),
                hint="to turn recovery off all the same, call UpdateContinuousBackups",
            )
        specification = {"PointInTimeRecoveryEnabled": True}
        request = {"TableName": table, "PointInTimeRecoverySpecification": specification}
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


def _missing(table: TablePlan, found: Mapping[str, Any]) -> list[IndexPlan]:
    there = {index["IndexName"] for index in found.get("GlobalSecondaryIndexes") or ()}
    return [index for index in table.indexes if index.kind == "GSI" and index.name not in there]


def _addable(table: TablePlan, difference: Difference) -> bool:
    name = difference.where.rpartition("/")[2]
    return any(index.name == name and index.kind == "GSI" for index in table.indexes)

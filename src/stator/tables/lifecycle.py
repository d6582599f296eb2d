"""Table setup: creates a design's tables, and adds indexes, TTL, streams, recovery and tags.

Setup only adds. A change that would lose data, or that requires a table or index to be created
again, is refused before anything is changed. The error lists all the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    UnknownOperation,
    ValidationFailed,
)
from stator.tables.context import Context
from stator.tables.schema.place import Place
from stator.tables.work import Call, Pause, Work

_POLL_SECONDS = 1.0
# The members of an UpdateTable request, and what they change in words: "added GSI1 to shop".
Change = tuple[dict[str, Any], str]
# The embedded engine is ready at once; AWS takes seconds.
_POLLING = Backoff(base_seconds=0.02, cap_seconds=_POLL_SECONDS, jitter=0.0)


class TableSetup:
    """Creates the design's tables, or adjusts them to the design and the table settings.

    ``done`` lists what changed, in words: "created shop".
    """

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
                "the existing tables cannot be adjusted to this design without losing data: "
                + "; ".join(map(str, blocking)),
                changes=tuple(map(str, blocking)),
                hint="if the tables follow a lock file, put it next to the file that defines the "
                "design, or pass plan=; otherwise connect to other tables with prefix=, or move "
                "the data with a migration",
            )

    # -- one table

    def _table(self, table: TablePlan, found: dict[str, Any] | None) -> Work[None]:
        if found is None:
            yield from self._create(table.create_request(), table.name)
        else:
            yield from self._wait(table.name)
            yield from self._change(table.name, lambda now: self._index_changes(table, now))
            yield from self._stream(table.name, found)
            yield from self._adjust(table.name)
        ttl = self.schema.ttl_of(table.name)
        if ttl is not None:
            yield from self._expiry(table.name, ttl)
        yield from self._recovery(table.name)
        yield from self._tags(table.name)

    def place(self, place: Place) -> Work[None]:
        """Create or adjust ``place``, a table for items that belong to no entity."""
        found = yield from self.describe(place.table)
        if found is None:
            yield from self._create(place.create_request(), place.table)
        else:
            yield from self._wait(place.table)
            yield from self._stream(place.table, found)
            yield from self._adjust(place.table)
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

    def _change(self, table: str, missing: Callable[[dict[str, Any]], list[Change]]) -> Work[None]:
        """Send the changes that a table still needs, one after the other.

        ``missing`` returns them, given the table in the answer of DescribeTable. Another process
        may set up the same table, so a refused change is needed only if it is still missing.
        """
        until = self.context.now() + self.settings.timeout_seconds
        refused: tuple[Change, StatorError] | None = None
        while True:
            found = yield from self.describe(table)
            left = [] if found is None else missing(found)
            if not left:
                return
            if refused is not None and refused[0] in left:
                raise refused[1]
            request, done = left[0]
            try:
                yield Call("UpdateTable", {"TableName": table, **request}, "ensure")
            except ResourceInUse:  # another change is in progress
                if self.context.now() >= until:
                    raise
            except ValidationFailed as error:  # for example: the index or the stream exists
                refused = left[0], error
            else:
                self.done.append(done)
            yield from self._wait(table)

    def _index_changes(self, table: TablePlan, found: Mapping[str, Any]) -> list[Change]:
        return [
            (self._new_index(table, index), f"added {index.name} to {table.name}")
            for index in _missing(table, found)
        ]

    def _new_index(self, table: TablePlan, index: IndexPlan) -> dict[str, Any]:
        names = {*index.partition, *index.sort}
        return {
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind}
                for name, kind in table.attributes
                if name in names
            ],
            "GlobalSecondaryIndexUpdates": [{"Create": self._index_request(index)}],
        }

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
                    f"table {name} was not ready after {self.settings.timeout_seconds:g} seconds",
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
        try:
            yield Call("UpdateTimeToLive", request, "ensure")
        except (ResourceInUse, ValidationFailed):  # another process has enabled it by now
            reply = yield Call("DescribeTimeToLive", {"TableName": table}, "ensure")
            now = reply["TimeToLiveDescription"]
            if now.get("AttributeName") != attribute:
                raise
        else:
            self.done.append(f"items of {table} expire by {attribute}")

    def _adjust(self, table: str) -> Work[None]:
        """Change settings of an existing table, one request each, as DynamoDB requires."""
        yield from self._change(
            table,
            lambda found: [
                (members, f"{table} {done}")
                for members, done in setting_changes(self.settings, found)
            ],
        )

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
        change: Change = (
            {"StreamSpecification": specification},
            f"{table} has a stream of {wanted}",
        )
        yield from self._change(
            table, lambda now: [] if now.get("StreamSpecification") == specification else [change]
        )

    def _recovery(self, table: str) -> Work[None]:
        """Switch point-in-time recovery on, unless the settings say otherwise.

        Recovery is the default of real tables. The embedded engine in this process keeps it off
        unless it is asked for: its log would hold each changed item twice more, in memory or in a
        folder that often lives as long as a test. DynamoDB Local does not have the operation.
        """
        declared = self.settings.point_in_time_recovery
        if declared is None and self.context.is_embedded:
            return
        wanted = self.settings.recovers
        try:
            reply = yield Call("DescribeContinuousBackups", {"TableName": table}, "ensure")
        except UnknownOperation:
            if declared is None:
                return
            raise
        now = reply["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        is_on, days = now.get("PointInTimeRecoveryStatus") == "ENABLED", self.settings.recovery_days
        is_long = days is None or now.get("RecoveryPeriodInDays", 35) == days
        if is_on == wanted and (is_long or not wanted):
            return
        if not wanted:
            message = f"turning off the point-in-time recovery of {table} deletes its history"
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
    """Return the changes that give a table its settings, each with a description.

    A change is members of an UpdateTable request; its description is a text such as "is no longer
    protected against deletion". ``found`` is the table in the answer of DescribeTable. A table that
    is provisioned already keeps its capacity, because auto scaling may have set it.
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

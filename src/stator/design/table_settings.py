"""Settings of tables in addition to keys and indexes: recovery, protection, streams and capacity.

A design declares them (``Design(settings=...)``). ``db.ensure`` applies them, ``export-design``
writes them, and ``stator diff`` compares them with live tables. None leaves a setting open:
``ensure`` does not change it, and ``diff`` does not compare it.

Point-in-time recovery is different: None, and a design without settings, mean that it is on,
because a production table needs it. ``export-design``, ``diff``, ``ensure`` on a server, and every
price follow that one rule (``recovers``). Only the embedded engine in one's own process leaves it
off unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from stator.errors import ConfigurationError
from stator.model.scaling.capacity_window import CapacityWindow, window_actions
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import USUAL_TARGET_PERCENT, CapacityBounds

StreamView = Literal["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"]
TableClass = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
_IMAGES: Final[dict[StreamView, frozenset[str]]] = {
    "KEYS_ONLY": frozenset(),
    "NEW_IMAGE": frozenset({"new"}),
    "OLD_IMAGE": frozenset({"old"}),
    "NEW_AND_OLD_IMAGES": frozenset({"new", "old"}),
}
STREAM_VIEWS: Final = tuple(_IMAGES)
"""KEYS_ONLY < NEW_IMAGE, OLD_IMAGE < NEW_AND_OLD_IMAGES"""

_MOST_RECOVERY_DAYS: Final = 35
_SCALING_TARGETS: Final = (0.2, 0.9)
"""Application Auto Scaling accepts targets between 20 and 90 percent for DynamoDB."""


def shows(view: str, needed: StreamView) -> bool:
    """Whether a stream of view type ``view`` has every image (old, new) that ``needed`` has."""
    return any(view == name and _IMAGES[needed] <= images for name, images in _IMAGES.items())


def smallest_view(needed: Iterable[StreamView]) -> StreamView:
    """Return the view type with exactly the images (old, new) of all the ``needed`` types."""
    images = frozenset[str]().union(*(_IMAGES[each] for each in needed))
    return next(name for name, shown in _IMAGES.items() if shown == images)


@dataclass(frozen=True, slots=True)
class ProvisionedCapacity:
    """Units a second that a table, and each of its global indexes, is provisioned with.

    With ``most_read_units``, ``export-design`` adds auto scaling between ``read_units`` and
    ``most_read_units``; likewise for writes. ``target`` is the share of the units that scaling
    keeps in use. ``read_schedule`` and ``write_schedule`` are windows with other bounds, such as
    ``weekdays 17:50-22:30 min=160``, in ``timezone``; they need scaling. ``indexes`` maps the names
    of indexes to their units, where these differ from the table's.
    """

    read_units: int
    write_units: int
    most_read_units: int | None = None
    most_write_units: int | None = None
    target: float = USUAL_TARGET_PERCENT / 100
    read_schedule: tuple[str, ...] = ()
    write_schedule: tuple[str, ...] = ()
    timezone: str = "UTC"
    indexes: Mapping[str, ProvisionedCapacity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("read_units", "write_units", "most_read_units", "most_write_units"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or type(value) is not int):
                raise ConfigurationError(
                    f"{name}={value!r} is not a whole number", hint="for example read_units=100"
                )
            if value is not None and value < 1:
                raise ConfigurationError(
                    f"{name}={value} is not positive", hint="a table has at least 1 unit"
                )
        for least, most in (
            ("read_units", self.most_read_units),
            ("write_units", self.most_write_units),
        ):
            if most is not None and most < getattr(self, least):
                raise ConfigurationError(
                    f"most_{least}={most} is below {least}={getattr(self, least)}",
                    hint="use a maximum of at least the provisioned units; scaling starts there",
                )
        low, high = _SCALING_TARGETS
        if not low <= self.target <= high:
            raise ConfigurationError(
                f"target={self.target:g} is not between {low:g} and {high:g}",
                hint="use a share such as 0.7, which leaves room for a rise in traffic",
            )
        for name, windows, most in (
            ("read", self.read_schedule, self.most_read_units),
            ("write", self.write_schedule, self.most_write_units),
        ):
            if windows and most is None:
                raise ConfigurationError(
                    f"{name}_schedule needs scaling, and most_{name}_units is not set",
                    hint=f"for example most_{name}_units=1000",
                )
        for dimension, _, _ in self.scaled:
            self.schedule(dimension)  # raises for a window that cannot be read

    def of_index(self, name: str) -> ProvisionedCapacity:
        """Return the units of an index: its own from ``indexes``, or else the table's units."""
        return self.indexes.get(name, self)

    def schedule(self, dimension: Literal["Read", "Write"]) -> tuple[ScheduledAction, ...]:
        """Return the scheduled actions of the reads or the writes."""
        windows = self.read_schedule if dimension == "Read" else self.write_schedule
        bounds = next(
            CapacityBounds(least, most) for name, least, most in self.scaled if name == dimension
        )
        return window_actions(map(CapacityWindow.parse, windows), bounds, self.timezone)

    @property
    def throughput(self) -> dict[str, int]:
        """The ``ProvisionedThroughput`` member of a CreateTable or UpdateTable request."""
        return {"ReadCapacityUnits": self.read_units, "WriteCapacityUnits": self.write_units}

    @property
    def scaled(self) -> tuple[tuple[Literal["Read", "Write"], int, int], ...]:
        """The auto scaling ranges, such as ``("Read", 10, 100)`` for 10 to 100 read units."""
        found: list[tuple[Literal["Read", "Write"], int, int]] = []
        if self.most_read_units is not None:
            found.append(("Read", self.read_units, self.most_read_units))
        if self.most_write_units is not None:
            found.append(("Write", self.write_units, self.most_write_units))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Settings of all tables of a design. None leaves a setting unchanged.

    ``stream`` is the exact view type of every table's stream. ``streams`` maps a table to the
    smallest view type that suffices; a stream that shows more is left as it is. ``recovery_days``
    is how far point-in-time recovery reaches back. ``kms_key`` is the ARN or alias of a key of
    yours, or ``alias/aws/dynamodb`` for the one that AWS manages in your account. Without
    ``capacity``, tables are billed by request.
    """

    stream: StreamView | None = None
    streams: Mapping[str, StreamView] = field(default_factory=dict)
    point_in_time_recovery: bool | None = None
    recovery_days: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    deletion_protection: bool | None = None
    kms_key: str | None = None
    table_class: TableClass | None = None
    capacity: ProvisionedCapacity | None = None
    timeout_seconds: float = 600.0

    def __post_init__(self) -> None:
        for view in (self.stream, *self.streams.values()):
            if view is not None and view not in STREAM_VIEWS:
                raise ConfigurationError(
                    f"{view!r} is not a view type of a stream",
                    hint=f"use one of {', '.join(STREAM_VIEWS)}",
                )
        if self.table_class not in (None, "STANDARD", "STANDARD_INFREQUENT_ACCESS"):
            raise ConfigurationError(
                f"{self.table_class!r} is not a table class",
                hint="use STANDARD or STANDARD_INFREQUENT_ACCESS",
            )
        days = self.recovery_days
        if days is not None and not 1 <= days <= _MOST_RECOVERY_DAYS:
            raise ConfigurationError(
                f"recovery_days={days} is not between 1 and {_MOST_RECOVERY_DAYS}",
                hint="DynamoDB keeps at most 35 days",
            )

    @property
    def recovers(self) -> bool:
        """Whether real tables have point-in-time recovery: yes, unless it is set to False."""
        return self.point_in_time_recovery is not False

    def create_members(self, request: dict[str, object], table: str) -> None:
        """Add the settings that CreateTable takes to its request."""
        stream = self.stream or self.streams.get(table)
        if stream is not None:
            request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream}
        if self.deletion_protection is not None:
            request["DeletionProtectionEnabled"] = self.deletion_protection
        if self.table_class is not None:
            request["TableClass"] = self.table_class
        if self.kms_key is not None:
            request["SSESpecification"] = self.encryption
        if self.tags:
            request["Tags"] = [{"Key": key, "Value": value} for key, value in self.tags.items()]
        if self.capacity is not None:
            request["BillingMode"] = "PROVISIONED"
            request["ProvisionedThroughput"] = self.capacity.throughput
            indexes = request.get("GlobalSecondaryIndexes")
            for index in indexes if isinstance(indexes, list) else ():
                own = self.capacity.of_index(index["IndexName"])
                index["ProvisionedThroughput"] = own.throughput

    @property
    def encryption(self) -> dict[str, object]:
        """The ``SSESpecification`` of a request; empty without ``kms_key``, for AWS's own key."""
        if self.kms_key is None:
            return {}
        found: dict[str, object] = {"Enabled": True, "SSEType": "KMS"}
        if self.kms_key != AWS_MANAGED_KEY:
            found["KMSMasterKeyId"] = self.kms_key
        return found

    @property
    def recovery(self) -> dict[str, object]:
        """The PointInTimeRecoverySpecification of a request that switches recovery on."""
        found: dict[str, object] = {"PointInTimeRecoveryEnabled": True}
        if self.recovery_days is not None:
            found["RecoveryPeriodInDays"] = self.recovery_days
        return found


AWS_MANAGED_KEY: Final = "alias/aws/dynamodb"

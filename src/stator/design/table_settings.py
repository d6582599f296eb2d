"""Settings of tables in addition to keys and indexes: recovery, protection, streams and capacity.

A design declares them (``Design(settings=...)``). ``db.ensure`` applies them, ``export-design``
writes them, and ``stator diff`` compares them with live tables. None leaves a setting open:
``ensure`` does not touch it, and ``diff`` does not look at it. Exports then write what a production
table needs: recovery to any second is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from stator.errors import ConfigurationError

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
    """Whether a stream with view type ``view`` carries every image that ``needed`` has."""
    return any(view == name and _IMAGES[needed] <= images for name, images in _IMAGES.items())


def smallest_view(needed: Iterable[StreamView]) -> StreamView:
    """Return the smallest view type that shows all of ``needed``."""
    images = frozenset[str]().union(*(_IMAGES[each] for each in needed))
    return next(name for name, shown in _IMAGES.items() if shown == images)


@dataclass(frozen=True, slots=True)
class ProvisionedCapacity:
    """Units a second that a table, and each of its global indexes, is provisioned with.

    With ``most_read_units`` or ``most_write_units``, exports add scaling from the given units up to
    these, at the ``target`` share of use. ``indexes`` has other numbers for single indexes.
    """

    read_units: int
    write_units: int
    most_read_units: int | None = None
    most_write_units: int | None = None
    target: float = 0.7
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
                    hint="scaling goes up from the provisioned units",
                )
        low, high = _SCALING_TARGETS
        if not low <= self.target <= high:
            raise ConfigurationError(
                f"target={self.target:g} is not between {low:g} and {high:g}",
                hint="0.7 leaves room for a rise in traffic",
            )

    def of_index(self, name: str) -> ProvisionedCapacity:
        """Return the units of an index: its own from ``indexes``, or else those of the table."""
        return self.indexes.get(name, self)

    @property
    def throughput(self) -> dict[str, int]:
        """The ProvisionedThroughput of a request."""
        return {"ReadCapacityUnits": self.read_units, "WriteCapacityUnits": self.write_units}

    @property
    def scaled(self) -> tuple[tuple[Literal["Read", "Write"], int, int], ...]:
        """The dimensions that scale, each with its least and most units."""
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
                    f"{view!r} is no view type of a stream",
                    hint=f"use one of {', '.join(STREAM_VIEWS)}",
                )
        if self.table_class not in (None, "STANDARD", "STANDARD_INFREQUENT_ACCESS"):
            raise ConfigurationError(
                f"{self.table_class!r} is no table class",
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
        """Whether an exported table has point-in-time recovery: yes, unless switched off."""
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
        """The SSESpecification of a request; empty if AWS's own key is to be used."""
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

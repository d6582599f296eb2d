"""Throughput settings of tables and global indexes: provisioned, on demand, warm.

A ``Subject`` is the table or index that a setting belongs to; each family of AWS's messages names
it differently. Nothing here limits traffic: this module only holds the rules for changing the
settings, and records the changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from stator.errors import LimitExceeded, ValidationFailed
from stator.model.limits import TABLE_READ_UNITS, TABLE_WRITE_UNITS, THROUGHPUT_UNITS
from stator.model.scaling.decrease_budget import (
    DECREASE_SECONDS,
    DECREASES_AT_WILL,
    DecreaseRecord,
)
from stator.model.values import INVALID

ON_DEMAND_WARM = (12_000, 4_000)
REFER = (
    "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request "
    "higher limits."
)
_ON_DEMAND_START = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
    "#on-demand-capacity-mode-initial"
)
_CAPACITY = ("ReadCapacityUnits", "WriteCapacityUnits")
_MAXIMA = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_WARM = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
_TABLE_MAXIMA = (TABLE_READ_UNITS, TABLE_WRITE_UNITS)


class Provisioned(Protocol):
    """The throughput settings that table and index definitions have in common."""

    read_units: int
    write_units: int
    last_increase: float | None
    last_decrease: float | None
    decreases_today: int


@dataclass(frozen=True, slots=True)
class Subject:
    index: str | None = None

    def named(self, table: str, index: str) -> str:
        return table if self.index is None else f"{index}{self.index}"


TABLE = Subject()


def units(throughput: dict[str, int]) -> tuple[int, int]:
    return throughput["ReadCapacityUnits"], throughput["WriteCapacityUnits"]


# -- provisioned units


def check_bounds(throughput: dict[str, int] | None, subject: Subject) -> None:
    for member in _CAPACITY:
        value = 0 if throughput is None else throughput[member]
        if value > THROUGHPUT_UNITS:
            where = subject.named("", " for index ")
            raise ValidationFailed(f"Given value {value} for {member} is out of bounds{where}")


def check_quota(holder: Provisioned, subject: Subject, region: str) -> None:
    """Check the units against an account's default quota: 40,000 per table or index."""
    kind = subject.named("table", "index ").split()[0]
    requested = (holder.read_units, holder.write_units)
    for member, value, most in zip(_CAPACITY, requested, _TABLE_MAXIMA, strict=True):
        if value > most:
            raise LimitExceeded(
                f"The requested {member}{subject.named('', ' for index ')}, {value}, is above "
                f"the per {kind} maximum for the account in {region}. Per {kind} maximum: "
                f"{most}. {REFER}"
            )


def check_changes(holder: Provisioned, throughput: dict[str, int], subject: Subject) -> None:
    read, write = units(throughput)
    if (read, write) != (holder.read_units, holder.write_units):
        return
    whom = subject.named("the table", "index ")
    raise ValidationFailed(
        f"The provisioned throughput for {subject.named('the table', 'the index ')} will not "
        "change. The requested value equals the current value. Current ReadCapacityUnits "
        f"provisioned for {whom}: {holder.read_units}. Requested ReadCapacityUnits: {read}. "
        f"Current WriteCapacityUnits provisioned for {whom}: {holder.write_units}. Requested "
        f"WriteCapacityUnits: {write}. {REFER}"
    )


def change_units(holder: Provisioned, throughput: dict[str, int], now: float) -> None:
    read, write = units(throughput)
    if read < holder.read_units or write < holder.write_units:
        _count_decrease(holder, now)
    if read > holder.read_units or write > holder.write_units:
        holder.last_increase = now
    holder.read_units, holder.write_units = read, write


def decreases_today(holder: Provisioned, now: float) -> int:
    return decrease_record(holder).today(now)


def decrease_record(holder: Provisioned) -> DecreaseRecord:
    return DecreaseRecord(holder.decreases_today, holder.last_decrease)


def _count_decrease(holder: Provisioned, now: float) -> None:
    before = decrease_record(holder)
    if before.last is not None and not before.allows(now):
        raise _too_many_decreases(before.today(now), before.last, before.next_at(now))
    after = before.after(now)
    holder.last_decrease, holder.decreases_today = after.last, after.count


def _too_many_decreases(count: int, last: float, after: float) -> LimitExceeded:
    return LimitExceeded(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given "
        f"UTC day. After the first {DECREASES_AT_WILL} decreases, each subsequent decrease in "
        f"the same UTC day can be performed at most once every {DECREASE_SECONDS} seconds. "
        f"Number of decreases today: {count}. Last decrease at {_in_words(_moment(last))}. Next "
        f"decrease can be made at {_in_words(_moment(after))}."
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _in_words(moment: datetime) -> str:
    """Return a time in AWS's long form.

    For example, ``Thursday, October 8, 2026 at 11:20:48 PM Coordinated Universal Time``.
    """
    clock = f"{moment.hour % 12 or 12}:{moment:%M:%S} {'AM' if moment.hour < 12 else 'PM'}"
    return f"{moment:%A, %B} {moment.day}, {moment.year} at {clock} Coordinated Universal Time"


# -- on-demand maxima


def check_maxima(on_demand: dict[str, int] | None, subject: Subject, *, clearable: bool) -> None:
    """Check that on-demand maxima are at least 1.

    With ``clearable``, as in UpdateTable, -1 is also accepted: it removes a maximum.
    """
    for member in _MAXIMA:
        value = None if on_demand is None else on_demand.get(member)
        if value is not None and value < 1 and not (clearable and value == -1):
            raise ValidationFailed(
                f"{INVALID}Requested {member} for OnDemandThroughput for "
                f"{subject.named('table', 'index : ')} is outside of valid range"
            )


def check_maxima_quota(on_demand: dict[str, int] | None, subject: Subject, region: str) -> None:
    for member, most, kind in zip(_MAXIMA, _TABLE_MAXIMA, ("Read", "Write"), strict=True):
        if on_demand is not None and on_demand.get(member, 0) > most:
            raise LimitExceeded(
                f"Subscriber limit exceeded: Requested {member} for OnDemandThroughput for "
                f"{subject.named('table', 'index : ')} exceeds TableMax{kind}CapacityUnits of "
                f"the account in region {region}"
            )


def first_maximum(on_demand: dict[str, int] | None) -> str | None:
    """Return the first on-demand maximum that a request sets, or None.

    AWS names this member in its error if maxima do not fit the billing mode.
    """
    return next(
        (member for member in _MAXIMA if on_demand is not None and member in on_demand), None
    )


def merge_maxima(
    current: dict[str, int] | None, requested: dict[str, int]
) -> dict[str, int] | None:
    merged = {
        **(current or {}),
        **{member: requested[member] for member in _MAXIMA if member in requested},
    }
    return {member: value for member, value in merged.items() if value > 0} or None


# -- warm throughput


def warm_units(warm: dict[str, int] | None, base: tuple[int, int]) -> tuple[int, int]:
    """Return the warm read and write units: for each, the larger of the setting and ``base``.

    ``base`` has the units that the billing mode gives without a setting (see ``warm_base``).
    """
    stored = warm or {}
    return max(stored.get(_WARM[0], 0), base[0]), max(stored.get(_WARM[1], 0), base[1])


def warm_settings(warm: dict[str, int] | None) -> tuple[float, float]:
    """Return the warm read and write units that a user has set, 0.0 for each that is not set."""
    stored = warm or {}
    return float(stored.get(_WARM[0], 0)), float(stored.get(_WARM[1], 0))


def warm_base(billing_mode: str, holder: Provisioned) -> tuple[int, int]:
    return (
        ON_DEMAND_WARM
        if billing_mode == "PAY_PER_REQUEST"
        else (holder.read_units, holder.write_units)
    )


def check_first_warm(
    warm: dict[str, int] | None,
    throughput: dict[str, int] | None,
    billing_mode: str,
    subject: Subject,
) -> None:
    """Check the warm throughput of a table or an index being created."""
    on_demand = billing_mode == "PAY_PER_REQUEST"
    base = ON_DEMAND_WARM if on_demand or throughput is None else units(throughput)
    for member, capacity, least in zip(_WARM, _CAPACITY, base, strict=True):
        if warm is not None and warm.get(member, least) < least:
            reason = (
                f"initial throughput for OnDemand. See: {_ON_DEMAND_START}"
                if on_demand
                else f"{capacity} of ProvisionedThroughput"
            )
            raise ValidationFailed(f"{INVALID}{_requested(member, subject)} is lower than {reason}")


def check_warm_rises(warm: dict[str, int], current: tuple[int, int], subject: Subject) -> None:
    for member, least in zip(_WARM, current, strict=True):
        if warm.get(member, least) < least:
            raise ValidationFailed(
                f"{INVALID}{_requested(member, subject)} is lower than current WarmThroughput, "
                "decreasing WarmThroughput is not supported"
            )


def check_warm_quota(warm: dict[str, int] | None, subject: Subject, region: str) -> None:
    for member, most, kind in zip(_WARM, _TABLE_MAXIMA, ("Read", "Write"), strict=True):
        if warm is not None and warm.get(member, 0) > most:
            raise LimitExceeded(
                f"Subscriber limit exceeded: {_requested(member, subject)} exceeds "
                f"TableMax{kind}CapacityUnits of the account in region {region}"
            )


def merge_warm(current: tuple[int, int], requested: dict[str, int]) -> dict[str, int]:
    return {
        member: requested.get(member, value) for member, value in zip(_WARM, current, strict=True)
    }


def _requested(member: str, subject: Subject) -> str:
    return f"Requested {member} for WarmThroughput for {subject.named('table', 'index ')}"


def plain_members(settings: dict[str, Any] | None) -> dict[str, int] | None:
    """Return on-demand or warm settings without unknown members, or None if none is left."""
    known = {
        member: int(value)
        for member, value in (settings or {}).items()
        if member in _MAXIMA + _WARM
    }
    return known or None

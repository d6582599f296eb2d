"""Published: AWS's device status log."""

from datetime import datetime
from typing import Literal

from stator import (
    Design,
    Entity,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    updates,
    write,
)

SOURCE = (
    "AWS developer guide, monitoring device status. From memory; confidence high. Base: "
    "device, then "
    "state and time; first index: operator, then time; second index, sparse: supervisor to "
    "whom it was "
    "escalated, then state and time."
)

State = Literal["normal", "warning1", "warning2", "warning3", "warning4"]


class LogEntry(Entity):
    device_id: str = ident()
    state: State = ident()
    at: datetime = ident()
    operator: str
    escalated_to: str | None = None  # a supervisor; one entry in a thousand
    text: str


class Device(Entity):
    device_id: str = ident()
    model: str
    site: str


@read(rps=20)
def device(device_id: str) -> Query[Device]:
    return find(Device).where(Device.device_id == device_id)


@read(rps=20, returns=100)
def logs_of_device(device_id: str) -> Query[LogEntry]:
    return find(LogEntry).where(LogEntry.device_id == device_id).limit(100)


@read(rps=20, returns=10)
def logs_in_state(device_id: str, state: State) -> Query[LogEntry]:
    return (
        find(LogEntry)
        .where(LogEntry.device_id == device_id, LogEntry.state == state)
        .newest_first(LogEntry.at)
        .limit(10)
    )


@read(rps=10, returns=20)
def newest_warnings(device_id: str) -> Query[LogEntry]:
    return (
        find(LogEntry)
        .where(
            LogEntry.device_id == device_id,
            attr(LogEntry.state).is_in(["warning1", "warning2", "warning3", "warning4"]),
        )
        .newest_first(LogEntry.at)
        .limit(20)
    )


@read(rps=5, returns=80)
def logs_of_operator(operator: str, start: datetime, end: datetime) -> Query[LogEntry]:
    return (
        find(LogEntry)
        .where(LogEntry.operator == operator, LogEntry.at >= start, LogEntry.at < end)
        .oldest_first(LogEntry.at)
    )


@read(rps=2, returns=15)
def escalated_to(supervisor: str) -> Query[LogEntry]:
    return find(LogEntry).where(LogEntry.escalated_to == supervisor)


@read(rps=2, returns=5)
def escalated_in_state(supervisor: str, state: State) -> Query[LogEntry]:
    return (
        find(LogEntry)
        .where(LogEntry.escalated_to == supervisor, LogEntry.state == state)
        .newest_first(LogEntry.at)
    )


@read(rps=2, returns=2)
def escalated_in_state_since(supervisor: str, state: State, since: datetime) -> Query[LogEntry]:
    return (
        find(LogEntry)
        .where(LogEntry.escalated_to == supervisor, LogEntry.state == state, LogEntry.at >= since)
        .newest_first(LogEntry.at)
    )


@write(rps=500)
def log() -> object:
    return creates(LogEntry)


@write(rps=0.5)
def escalate() -> object:
    return updates(LogEntry.escalated_to)


design = Design(
    "aws_device_log",
    [Device, LogEntry],
    [
        device,
        logs_of_device,
        logs_in_state,
        newest_warnings,
        logs_of_operator,
        escalated_to,
        escalated_in_state,
        escalated_in_state_since,
        log,
        escalate,
    ],
    facts=[
        share(attr(LogEntry.escalated_to).exists(), 0.00001),
        distinct(LogEntry.operator, values=400),
        distinct(LogEntry.escalated_to, values=60),
    ],
    volumes={Device: 20_000, LogEntry: per(Device, 5_000)},
    sizes={Device: 200, LogEntry: 250},
)

EXPECTED = {
    "max_indexes": 2,
    "published_indexes": 2,
    "entities": {
        "Device": {"partition": ["device_id"], "sort": []},
        "LogEntry": {"partition": ["device_id"], "sort": ["state", "at"]},
    },
    "patterns": {
        "device": {"by": "base"},
        "logs_of_device": {"by": "base"},
        "logs_in_state": {"by": "base"},
        "newest_warnings": {
            "by": "legs",
            "on": "base",
            "partition": ["device_id"],
            "sort": ["state", "at"],
        },
        "logs_of_operator": {"by": "index", "partition": ["operator"], "sort": ["at"]},
        "escalated_to": {
            "by": "index",
            "partition": ["escalated_to"],
            "sort": ["state", "at"],
            "sparse": True,
        },
        "escalated_in_state": {
            "by": "index",
            "partition": ["escalated_to"],
            "sort": ["state", "at"],
            "sparse": True,
            "shares_with": "escalated_to",
        },
        "escalated_in_state_since": {
            "by": "index",
            "partition": ["escalated_to"],
            "sort": ["state", "at"],
            "sparse": True,
            "shares_with": "escalated_to",
        },
    },
}
WHY = {
    "newest_warnings": "Four queries of the base key, one for each state, merged by time (an "
    "addition of mine): "
    "each leg reads at most 20 entries, where a filter would read the device's 5,000.",
    "LogEntry": "State belongs to the identity in this model only because the published key "
    "has it; "
    "the sort key must keep the order state, then time, against the order in which they "
    "happen to be "
    "declared.",
    "escalated_to": "Three patterns, one sparse index: the two-part sort key serves the "
    "equality, the "
    "range and the whole collection.",
}

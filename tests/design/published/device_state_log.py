"""A log of device states in a factory.

Source: aws-samples/amazon-dynamodb-design-patterns, examples/device-state-log/README.md. It shows a
composite sort key instead of a filter, a second item collection in an index, and a sparse index.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from stator import Entity, Query, attr, creates, find, ident, read, updates, write

from .model import Difference, Keys, Model, Wanted, base_of

START = datetime(2020, 4, 20, tzinfo=UTC)


class State(Enum):
    NORMAL = "NORMAL"
    WARNING1 = "WARNING1"
    WARNING2 = "WARNING2"
    WARNING3 = "WARNING3"
    WARNING4 = "WARNING4"


class DeviceLog(Entity):
    device_id: str = ident()
    state: State = ident()
    logged_at: datetime = ident()
    operator: str
    detail: str
    escalated_to: str | None = None


@read(rps=50, returns=20)
def logs_in_state(device_id: str, state: State) -> Query[DeviceLog]:
    return (
        find(DeviceLog)
        .where(DeviceLog.device_id == device_id, DeviceLog.state == state)
        .newest_first(DeviceLog.logged_at)
    )


@read(rps=20, returns=30)
def logs_of_operator(operator: str, start: datetime, end: datetime) -> Query[DeviceLog]:
    return find(DeviceLog).where(
        DeviceLog.operator == operator, attr(DeviceLog.logged_at).between(start, end)
    )


@read(rps=5, returns=40)
def escalated(supervisor: str) -> Query[DeviceLog]:
    return find(DeviceLog).where(DeviceLog.escalated_to == supervisor)


@read(rps=5, returns=10)
def escalated_in_state(supervisor: str, state: State) -> Query[DeviceLog]:
    return find(DeviceLog).where(DeviceLog.escalated_to == supervisor, DeviceLog.state == state)


@read(rps=5, returns=2)
def escalated_in_state_between(
    supervisor: str, state: State, start: datetime, end: datetime
) -> Query[DeviceLog]:
    return find(DeviceLog).where(
        DeviceLog.escalated_to == supervisor,
        DeviceLog.state == state,
        attr(DeviceLog.logged_at).between(start, end),
    )


@write(rps=100)
def log() -> object:
    return creates(DeviceLog)


@write(rps=2)
def escalate() -> object:
    return updates(DeviceLog.escalated_to)


def objects(chance: random.Random) -> list[Any]:
    return [
        DeviceLog(
            device_id=f"d#{chance.randrange(4)}",
            logged_at=START + timedelta(minutes=5 * at),
            state=chance.choice(list(State)),
            operator=chance.choice(["Liz", "Sue"]),
            detail="x",
            escalated_to=chance.choice([None, None, "Sara", "Tim"]),
        )
        for at in range(200)
    ]


MODEL = Model(
    name="devices",
    entities=(DeviceLog,),
    patterns=(
        logs_in_state,
        logs_of_operator,
        escalated,
        escalated_in_state,
        escalated_in_state_between,
        log,
        escalate,
    ),
    volumes={DeviceLog: 10_000_000},
    keys={
        DeviceLog: Keys(
            ("{device_id}", "{state}#{logged_at}"),
            {
                "GSI1": ("{operator}", "{logged_at}"),
                "GSI2": ("{escalated_to}", "{state}#{logged_at}"),
            },
        ),
    },
    plain=frozenset({"GSI1"}),
    paths={
        "logs_in_state": Wanted("Query", "table", ("device_id", "state"), ("logged_at",)),
        "logs_of_operator": Wanted("Query", "index", ("operator",), ("logged_at",)),
        "escalated": Wanted("Query", "index", ("escalated_to",)),
        "escalated_in_state": Wanted("Query", "index", ("escalated_to",), ("state",)),
        "escalated_in_state_between": Wanted(
            "Query", "index", ("escalated_to",), ("state", "logged_at")
        ),
    },
    objects=objects,
    calls=(
        ("logs_in_state", {"device_id": "d#1", "state": State.WARNING1}),
        (
            "logs_of_operator",
            {"operator": "Liz", "start": START, "end": START + timedelta(hours=5)},
        ),
        ("escalated", {"supervisor": "Sara"}),
        ("escalated_in_state", {"supervisor": "Sara", "state": State.WARNING4}),
        (
            "escalated_in_state_between",
            {
                "supervisor": "Tim",
                "state": State.WARNING2,
                "start": START,
                "end": START + timedelta(hours=8),
            },
        ),
    ),
    differences={
        "DeviceLog": Difference(
            "Every pattern on the table names device and state, so the two are the partition.",
            lambda ours, theirs: (
                base_of(ours, "DeviceLog") == (("device_id", "state"), ("logged_at",))
            ),
        ),
    },
)

"""The router tests of the user's own notes.

Source: "Understanding DynamoDB: Design Patterns for Scale" (../shared/seeds/001). Diagnostic tests
of home routers are stored under their router in order of time, with a time to live and without an
index.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from stator import Entity, Query, creates, find, ident, per, read, ttl, write

from .model import Keys, Model, Wanted

START = datetime(2026, 3, 1, tzinfo=UTC)


class Router(Entity):
    router_id: str = ident()
    location: str
    isp: str


class RouterTest(Entity):
    router_id: str = ident()
    tested_at: datetime = ident()
    test_type: Literal["latency", "throughput"]
    latency_ms: float
    jitter: float
    packet_loss: float
    expires: datetime | None = ttl(days=90, default=None)


@read(rps=50)
def router(router_id: str) -> Query[Router]:
    return find(Router).where(Router.router_id == router_id)


@read(rps=300, returns=24)
def tests_between(router_id: str, start: datetime, end: datetime) -> Query[RouterTest]:
    return find(RouterTest).where(
        RouterTest.router_id == router_id, RouterTest.tested_at >= start, RouterTest.tested_at < end
    )


@read(rps=100)
def last_test(router_id: str) -> Query[RouterTest]:
    return (
        find(RouterTest)
        .where(RouterTest.router_id == router_id)
        .newest_first(RouterTest.tested_at)
        .limit(1)
    )


@read(rps=10)
def one_test(router_id: str, tested_at: datetime) -> Query[RouterTest]:
    return find(RouterTest).where(
        RouterTest.router_id == router_id, RouterTest.tested_at == tested_at
    )


@write(rps=9_000)
def record() -> object:
    return creates(RouterTest)


def objects(chance: random.Random) -> list[Any]:
    routers = ["12345", "12346", "9"]
    found: list[Any] = [
        Router(router_id=each, location="US-WEST", isp="ExampleISP") for each in routers
    ]
    for each in routers:
        found += [
            RouterTest(
                router_id=each,
                tested_at=START + timedelta(hours=hour),
                test_type=chance.choice(["latency", "throughput"]),
                latency_ms=45.0,
                jitter=2.0,
                packet_loss=0.1,
            )
            for hour in (*chance.sample(range(100), 30), 200)
        ]
    return found


MODEL = Model(
    name="routers",
    entities=(Router, RouterTest),
    patterns=(router, tests_between, last_test, one_test, record),
    volumes={Router: 1_000_000, RouterTest: per(Router, 240)},
    keys={
        Router: Keys(("ROUTER#{router_id}", "METADATA")),
        RouterTest: Keys(("ROUTER#{router_id}", "TEST#{tested_at}")),
    },
    paths={
        "router": Wanted("GetItem", "table", ("router_id",)),
        "tests_between": Wanted("Query", "table", ("router_id",), ("tested_at",)),
        "last_test": Wanted("Query", "table", ("router_id",), ("tested_at",)),
        "one_test": Wanted("GetItem", "table", ("router_id",), ("tested_at",)),
    },
    objects=objects,
    calls=(
        ("router", {"router_id": "9"}),
        (
            "tests_between",
            {"router_id": "12345", "start": START, "end": START + timedelta(hours=50)},
        ),
        ("last_test", {"router_id": "12346"}),
        ("one_test", {"router_id": "9", "tested_at": START + timedelta(hours=200)}),
    ),
)

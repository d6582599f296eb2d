"""Routers that send tests, and a view of everything a view can tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from stator import Design, Entity, Query, find, ident, read, ttl
from stator.pipeline import View, avg, count, latest, maximum, minimum, percentiles, sum_of, top

START = datetime(2026, 11, 16, 7, tzinfo=UTC)


class Test(Entity):
    __test__ = False
    test_id: str = ident()
    isp: str | None
    at: datetime
    latency_ms: float | None
    size: int = 0
    ok: bool = True
    note: str = ""
    expires: int | None = ttl(default=None)


class Router(Entity):
    router_id: str = ident()
    model: str


@read()
def test_by_id(test_id: str) -> Query[Test]:
    return find(Test).where(Test.test_id == test_id)


@read()
def router_by_id(router_id: str) -> Query[Router]:
    return find(Router).where(Router.router_id == router_id)


fleet = Design("fleet", [Test, Router], [test_by_id, router_by_id])


def make_hours(**options: Any) -> View:
    return View(
        "isp_hours",
        of=Test,
        by=[Test.isp],
        bucket=(Test.at, "hour"),
        where=Test.ok == True,  # noqa: E712 - it builds a condition
        tests=count(),
        measured=count(Test.latency_ms),
        total=sum_of(Test.size),
        latency=avg(Test.latency_ms),
        spread=percentiles(Test.latency_ms),
        best=minimum(Test.latency_ms),
        worst=maximum(Test.latency_ms),
        slowest=top(2, by=Test.latency_ms),
        newest=latest(by=Test.at, fields=[Test.test_id]),
        **options,
    )


def at(minutes: int) -> datetime:
    return START + timedelta(minutes=minutes)


def a_test(
    number: int,
    isp: str | None = "acme",
    minutes: int = 0,
    latency: float | None = 10.0,
    **more: Any,
) -> Test:
    return Test(test_id=f"t{number}", isp=isp, at=at(minutes), latency_ms=latency, **more)

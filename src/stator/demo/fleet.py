"""The design of the demo: routers, the tests of their connections, and the access patterns."""

from __future__ import annotations

from datetime import datetime

from stator.design.design import Design, per
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, ttl
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, write

ISPS = ("Acme Fibre", "Boreal", "Cityline", "Deltanet", "Eastlink", "Fjord", "Granite", "Harbour")


class Router(Entity):
    router_id: str = ident()
    isp: str
    model: str
    city: str


class Test(Entity):
    router_id: str = ident()
    at: datetime = ident()
    isp: str
    latency_ms: float
    download_mbps: float
    loss_percent: float
    expires: datetime | None = ttl(default=None)


class Feed(Entity):
    """A router's connection test, as an entry in its provider's live feed.

    The feed is a ``Series``, a pattern object that stores its items outside the design's tables.
    ``trace`` holds the single measurements of the test, so an entry costs several write units.
    """

    isp: str = ident()
    at: datetime = ident()
    router_id: str
    latency_ms: float
    trace: str


@read(rps=150, returns=25)
def tests_of_router(router_id: str) -> Query[Test]:
    """Read the newest connection tests of a router. Support staff look at these first."""
    return find(Test).where(Test.router_id == router_id).newest_first(Test.at).limit(25)


@read(rps=40, returns=17)  # a day of the 500 tests of a month
def tests_between(router_id: str, start: datetime, end: datetime) -> Query[Test]:
    """Read the connection tests of a router between two times, such as one day."""
    return find(Test).where(Test.router_id == router_id, Test.at >= start, Test.at <= end)


@read(rps=100, returns=1)
def router(router_id: str) -> Query[Router]:
    return find(Router).where(Router.router_id == router_id)


@read(rps=2, returns=200)
def routers_of_isp(isp: str) -> Query[Router]:
    return find(Router).where(Router.isp == isp)


@write(rps=400)
def record_test() -> object:
    """Record a connection test that a router reports."""
    return creates(Test)


fleet = Design(
    "fleet",
    [Router, Test],
    [tests_of_router, tests_between, router, routers_of_isp, record_test],
    volumes={Router: 2_000, Test: per(Router, 500)},
    layout="table-per-entity",
)

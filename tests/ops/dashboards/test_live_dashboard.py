"""The dashboard of Grafana on a real Prometheus: every query has data from a running program."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from stator import Db, Engine, ProvisionedCapacity, connect
from stator.errors import ServiceError
from stator.metrics.endpoint import new_registry
from stator.ops.capacity.use_series import KINDS, Dimension
from stator.ops.dashboards.design_alarms import design_alarms
from stator.ops.dashboards.design_dashboard import WINDOW, design_dashboard
from stator.ops.dashboards.grafana import grafana_json
from stator.ops.dashboards.prometheus_rules import prometheus_rules
from stator.ops.report.month import Month
from stator.ops.report.month_use import DimensionMonth, MonthSpan, PlaceMonth
from stator.ops.report.pattern_use import pattern_use
from stator.pipeline import StreamApp
from stator.pipeline.workers.metrics import serve_metrics
from stator.tables.metrics.metrics_observer import metrics_observer

from ...prometheus_server import PrometheusServer, needs_prometheus, running_prometheus
from .watched_shop import program, shop, watched

CAPACITY = ProvisionedCapacity(5, 5)


def grafana() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(grafana_json(design_dashboard(watched(CAPACITY))))
    return found


def queries() -> list[tuple[str, str]]:
    return [
        (f"{panel['title']}: {target['legendFormat']}", target["expr"])
        for panel in grafana()["panels"]
        for target in panel.get("targets", ())
    ]


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = grafana()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart and one["x"] + one["w"] <= 24


def test_patterns_are_compared_with_what_is_declared() -> None:
    data = design_dashboard(watched(CAPACITY)).to_data()
    rows = {row["title"]: row["panels"] for row in data["rows"]}
    assert {"Pattern orders_of_user", "Pattern user_by_email", "Table shop"} <= rows.keys()
    requests = next(each for each in rows["Pattern orders_of_user"] if each["title"] == "Requests")
    assert requests["lines"] == {"declared": 120.0}
    units = next(each for each in rows["Table shop"] if each["title"] == "Read units of the table")
    assert units["lines"]["capacity"] == 5.0
    assert any(panel["title"].startswith("Read units of GSI") for panel in rows["Table shop"])


class Traffic:
    """The README's design at work: writes, both patterns, refusals for throughput, a worker."""

    def __init__(self) -> None:
        design, names = shop(CAPACITY), program()
        self._names = names
        registry = new_registry()
        self._observer = metrics_observer(design, registry=registry)
        self._engine = Engine.open(throughput="enforced")
        self._db = connect(design, self._engine, observers=[self._observer], max_attempts=2)
        app = StreamApp(design, "audit")

        @app.on.insert(names["Order"])
        def note(change: Any) -> None:
            del change

        app.ensure(self._db)
        with suppress(ServiceError):
            self._db.create(names["User"](user_id="u1", email="anna@example.com"))
        self._worker = app.start(self._db)
        self.port = serve_metrics(self._worker, 0, app.name, registry)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            self._put(self._db, number)
            self._fetch("orders_of_user", "u1")
            self._fetch("user_by_email", "anna@example.com")
            if number % 10 == 0:
                self._be_refused(number)

    def _be_refused(self, number: int) -> None:
        """Write as a new client does, which has not learned yet to slow down."""
        options: dict[str, Any] = {"observers": [self._observer], "max_attempts": 1}
        with connect(shop(CAPACITY), self._engine, **options) as db:
            for _ in range(20):
                self._put(db, number)

    def _put(self, db: Db, number: int) -> None:
        with suppress(ServiceError):
            db.put(self._order(number))

    def _fetch(self, pattern: str, value: str) -> None:
        with suppress(ServiceError):
            list(self._db.fetch(self._names[pattern](value)))

    def _order(self, number: int) -> Any:
        return self._names["Order"](
            order_id=f"o{number}",
            user_id="u1",
            placed_at=datetime.now(UTC),
            total=Decimal("12.50"),
        )

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=60)
        self._worker.stop()
        self._db.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("prometheus")
    design = watched(CAPACITY)
    rules = folder / "rules.json"
    rules.write_text(prometheus_rules(design.name, design_alarms(design), "docs/runbooks"))
    traffic = Traffic()
    try:
        with running_prometheus(folder, [traffic.port], rules) as running:
            running.wait_for('rate(stator_throttles_total{table="shop"}[30s]) > 0')
            for name in ("orders_of_user", "user_by_email"):
                running.wait_for(
                    f'rate(stator_request_seconds_bucket{{pattern="{name}"}}[30s]) > 0'
                )
            running.wait_for("stator_stream_lag_seconds")
            running.wait_for("stator_stream_trim_seconds")
            yield running
    finally:
        traffic.close()


@needs_prometheus
def test_every_query_of_the_dashboard_has_data(server: PrometheusServer) -> None:
    empty = []
    for title, expression in queries():
        found = server.values(expression.replace(WINDOW, "30s"))
        if not [each for each in found if each["value"][1] != "NaN"]:
            empty.append(f"{title}: {expression}")
    assert empty == []


@needs_prometheus
def test_prometheus_evaluates_every_rule(server: PrometheusServer) -> None:
    server.wait_for('ALERTS{alertname=~"StatorHotKey|StatorNoCapacity"}')
    groups = server.asked("/api/v1/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert rules and {rule["health"] for rule in rules} == {"ok"}


@needs_prometheus
def test_the_report_of_a_month_reads_patterns(server: PrometheusServer) -> None:
    now = int(time.time())
    span = MonthSpan(Month.at(now), now - 3600, now + 1)
    [use, *_] = server.values('stator_read_units_total{pattern="orders_of_user"}')
    table, index = use["metric"]["table"], use["metric"].get("index") or None
    reads, writes = (DimensionMonth(Dimension(index, kind), 0.0, 0.0, 0.0, 1.0) for kind in KINDS)
    place = PlaceMonth(table, index, reads, writes, 0.0, 0.0)
    found = {each.pattern: each for each in pattern_use(server.url, [place], span)}
    assert found["orders_of_user"].read_units > 0 and found["orders_of_user"].dollars > 0

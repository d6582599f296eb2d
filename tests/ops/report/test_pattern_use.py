"""Patterns in a month, from Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from stator.errors import ConfigurationError, LiveTableUnreachable
from stator.ops.capacity.use_series import Dimension
from stator.ops.report.month import Month
from stator.ops.report.month_use import DimensionMonth, MonthSpan, PlaceMonth
from stator.ops.report.pattern_use import pattern_use

MONTH = Month(2026, 11)
SPAN = MonthSpan.of(MONTH, MONTH.start + 36 * 3600)


def place(index: str | None, reads: float, writes: float) -> PlaceMonth:
    def use(kind: str, dollars: float, units: float) -> DimensionMonth:
        dimension = Dimension(index, "read" if kind == "read" else "write")
        return DimensionMonth(dimension, units, 0.0, 0.0, dollars)

    return PlaceMonth("orders", index, use("read", 10.0, reads), use("write", 6.0, writes), 0, 0)


class Answers(BaseHTTPRequestHandler):
    """Answers queries as Prometheus does. The units of a day are the hours of the query."""

    asked: list[tuple[str, int]] = []  # noqa: RUF012 - of one test

    def do_GET(self) -> None:
        fields = parse_qs(urlsplit(self.path).query)
        [query], [at] = fields["query"], fields["time"]
        self.asked.append((query, int(at)))
        seconds = re.search(r"\[(\d+)s\]", query)
        assert seconds is not None
        hours = int(seconds[1]) / 3600
        result = []
        if "stator_read_units_total" in query:
            for pattern, index, factor in (("get", "", 1), ("list", "", 3), ("by_g", "GSI1", 1)):
                labels = {"pattern": pattern, "table": "orders", "index": index}
                result.append({"metric": labels, "value": [0, str(hours * factor)]})
            result.append({"metric": {"table": "other"}, "value": [0, "7"]})
        body = json.dumps({"status": "success", "data": {"result": result}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def prometheus() -> Iterator[str]:
    Answers.asked.clear()
    server = HTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_patterns_pay_for_their_share_of_a_place(prometheus: str) -> None:
    places = [place(None, reads=288.0, writes=5.0), place("GSI1", reads=36.0, writes=0.0)]
    found = pattern_use(prometheus, places, SPAN)
    assert [(each.pattern, each.index, each.read_units, each.dollars) for each in found] == [
        ("by_g", "GSI1", 36.0, 10.0),
        ("list", None, 108.0, 3.75),  # 108 of 288 units: half of them had no metrics
        ("get", None, 36.0, 1.25),
    ]


def test_days_are_asked_for_one_by_one(prometheus: str) -> None:
    pattern_use(prometheus, [], SPAN)
    ends = [at - MONTH.start for query, at in Answers.asked if "read" in query]
    assert ends == [86_400, 36 * 3600]
    assert "[43200s]" in Answers.asked[1][0]


def test_more_units_in_patterns_than_in_cloudwatch_cost_no_more_than_there_is(
    prometheus: str,
) -> None:
    found = pattern_use(prometheus, [place(None, reads=1.0, writes=0.0)], SPAN)
    assert sum(each.dollars for each in found) == pytest.approx(10.0)


def test_what_does_not_answer_is_named(prometheus: str) -> None:
    with pytest.raises(ConfigurationError, match="not the address of a Prometheus server"):
        pattern_use("file:///etc/passwd", [], SPAN)
    with pytest.raises(LiveTableUnreachable, match="does not answer a query"):
        pattern_use("http://127.0.0.1:1", [], SPAN)

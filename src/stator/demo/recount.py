"""The recount: counts all items again without the views, to prove that nothing is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from stator.demo.app import ALERTS, ARCHIVE, per_isp_hour, per_router
from stator.demo.fleet import ISPS, Test
from stator.demo.story import Checked, IspSummary
from stator.pipeline.views.rows import Row
from stator.pipeline.views.sketch import Percentiles
from stator.tables.db import Db

_SEGMENTS: Final = 4


@dataclass(slots=True)
class Counted:
    """Totals of the tests that were counted in the table."""

    tests: int = 0
    by_router: Counter[str] = field(default_factory=Counter)
    by_isp: Counter[str] = field(default_factory=Counter)
    by_hour: Counter[tuple[str, str]] = field(default_factory=Counter)
    latency_by_isp: Counter[str] = field(default_factory=Counter)


def count_table(db: Db) -> Counted:
    """Count the connection tests in the table with a parallel Scan of the raw items."""
    table = db.context.schema.of(Test).plan.table
    total = Counted()
    with ThreadPoolExecutor(_SEGMENTS) as threads:
        for part in threads.map(lambda segment: _segment(db, table, segment), range(_SEGMENTS)):
            total.tests += part.tests
            total.by_router += part.by_router
            total.by_isp += part.by_isp
            total.by_hour += part.by_hour
            total.latency_by_isp += part.latency_by_isp
    return total


def _segment(db: Db, table: str, segment: int) -> Counted:
    part = Counted()
    request: dict[str, Any] = {"TableName": table, "Segment": segment, "TotalSegments": _SEGMENTS}
    while True:
        page = db.call("Scan", request)
        _add(part, page["Items"])
        if "LastEvaluatedKey" not in page:
            return part
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _add(part: Counted, items: list[dict[str, Any]]) -> None:
    isps = [item["isp"]["S"] for item in items]
    part.tests += len(items)
    part.by_isp.update(isps)
    part.by_router.update([item["router_id"]["S"] for item in items])
    part.by_hour.update([(isp, item["at"]["S"][:13]) for isp, item in zip(isps, items)])
    for isp, item in zip(isps, items):
        part.latency_by_isp[isp] += round(float(item["latency_ms"]["N"]) * 10)


def unique_ids(folder: Path, name: str) -> set[str]:
    path = folder / name
    if not path.exists():
        return set()
    return {orjson.loads(line)["id"] for line in path.read_bytes().splitlines()}


def kept_hours(db: Db) -> dict[str, list[Row]]:
    """Return the rows of the view ``per_isp_hour`` by provider, as the workers keep them."""
    return {isp: per_isp_hour.on(db).all(isp=isp) for isp in ISPS}


def summaries(kept: dict[str, list[Row]]) -> tuple[list[IspSummary], list[tuple[str, int, float]]]:
    """Return a summary of each provider over all hours, and hourly figures of the first provider.

    The hourly figures are the hour, the number of tests and the mean latency. ``kept`` is the
    result of ``kept_hours``.
    """
    found, hours = [], []
    for isp, rows in kept.items():
        tests = sum(row.tests for row in rows)
        if not tests:
            continue
        mean = sum(float(row.latency or 0) * row.tests for row in rows) / tests
        buckets: Counter[str] = Counter()
        for row in rows:
            buckets.update(row.spread.counts)
        spread = Percentiles(buckets, rows[0].spread.accuracy)
        found.append(
            IspSummary(isp, tests, mean, *(float(spread[percent] or 0) for percent in (50, 95, 99)))
        )
        if isp == ISPS[0]:
            hours = [(row.at.isoformat(), row.tests, float(row.latency or 0)) for row in rows]
    return found, hours


def compare(
    db: Db,
    counted: Counted,
    kept_rows: dict[str, list[Row]],
    folder: Path,
    expected: dict[str, Any],
) -> Iterator[Checked]:
    """Yield the comparisons of the recount: an expected total with the counted one.

    The table is compared with what the demo wrote, and the views with the table.
    """
    yield Checked("tests in the table", expected["tests"], counted.tests)
    kept = {isp: {row.at.isoformat()[:13]: row for row in rows} for isp, rows in kept_rows.items()}
    yield Checked(
        "tests in the summaries by provider and hour",
        counted.tests,
        sum(row.tests for rows in kept.values() for row in rows.values()),
    )
    agreeing = sum(
        hour in kept[isp] and kept[isp][hour].tests == count
        for (isp, hour), count in counted.by_hour.items()
    )
    yield Checked("hours whose count agrees", len(counted.by_hour), agreeing)
    latency = {
        isp: sum(round(float(row.latency or 0) * row.tests * 10) for row in rows.values())
        for isp, rows in kept.items()
    }
    close = sum(
        abs(latency[isp] - total) <= len(kept[isp]) for isp, total in counted.latency_by_isp.items()
    )
    yield Checked("providers whose total latency agrees", len(counted.latency_by_isp), close)
    rows = per_router.on(db).many({"router_id": router} for router in counted.by_router)
    right = sum(
        row is not None and row.tests == count
        for row, count in zip(rows, counted.by_router.values(), strict=True)
    )
    yield Checked("routers whose summary agrees", len(counted.by_router), right)
    alerts = unique_ids(folder, ALERTS)
    yield Checked(
        "alerts for bad latency", len(expected["alerts"]), len(alerts & expected["alerts"])
    )
    yield Checked("alerts without a cause", 0, len(alerts - expected["alerts"]))
    yield Checked(
        "tests expired into the archive", expected["expired"], len(unique_ids(folder, ARCHIVE))
    )

"""The stream app of the demo: summaries, alerts, and an archive of expired tests.

Alerts and the archive are files of JSON lines in the folder that STATOR_DEMO_FOLDER names. Each
line is one append, so workers can share a file. A change that is handled twice leaves two lines
with the same id, and readers count each id once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import orjson

from stator.demo.fleet import Test, fleet
from stator.pipeline.views.metrics import avg, count, percentiles
from stator.pipeline.views.view import View
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Insert, Remove

BAD_LATENCY_MS: Final = 250.0
ALERTS: Final = "alerts.jsonl"
ARCHIVE: Final = "archive.jsonl"

app = StreamApp(fleet, "summaries")
on = app.on

per_router = View(
    "per_router", of=Test, by=[Test.router_id], tests=count(), latency=avg(Test.latency_ms)
)
per_isp_hour = View(
    "per_isp_hour",
    of=Test,
    by=[Test.isp],
    bucket=(Test.at, "hour"),
    tests=count(),
    latency=avg(Test.latency_ms),
    spread=percentiles(Test.latency_ms),
)
VIEWS: Final = (per_router, per_isp_hour)
for view in VIEWS:
    app.add(view)


@on.insert(Test)
def alert(change: Insert[Test]) -> None:
    test = change.new
    if test.latency_ms >= BAD_LATENCY_MS and not change.is_snapshot:
        facts = {
            "id": _id(test),
            "router": test.router_id,
            "isp": test.isp,
            "latency_ms": test.latency_ms,
        }
        _append(ALERTS, facts | {"at": test.at.isoformat()})


@on.remove(Test, expired=True)
def archive(change: Remove[Test]) -> None:
    """Append an expired test to the archive. The stream still shows the item that TTL deleted."""
    _append(ARCHIVE, {"id": _id(change.old), "item": change.record.old})


def _id(test: Test) -> str:
    return f"{test.router_id}@{test.at.isoformat()}"


def _append(name: str, facts: dict[str, Any]) -> None:
    with (Path(os.environ["STATOR_DEMO_FOLDER"]) / name).open("ab", buffering=0) as file:
        file.write(orjson.dumps(facts) + b"\n")

"""What only concerns Stator: in-process latency, start, memory, and cost against table size."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.requests import CREATE, WORKLOADS, batch_write
from stator.engine import Engine


def in_process(items: int = 20_000, calls: int = 20_000) -> dict[str, float]:
    """The p50 of ``engine.call`` in memory, in microseconds."""
    with Engine.open() as engine:
        engine.call("CreateTable", CREATE)
        for number in range(items // 25):
            engine.call("BatchWriteItem", batch_write(number, items))
        return {
            workload.name: _p50(
                lambda request, operation=workload.operation: engine.call(operation, request),
                [
                    workload.body(number, items)
                    for number in range(min(calls, 2_000 if "Batch" in workload.name else calls))
                ],
            )
            for workload in WORKLOADS
        }


def _p50(call: Callable[[Any], Any], requests: list[Any]) -> float:
    times = []
    for request in requests:
        started = time.perf_counter()
        call(request)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def import_milliseconds() -> float:
    """The median of five fresh interpreters importing stator, less that of importing nothing."""

    def run(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    loaded = statistics.median(run("import stator") for _ in range(5))
    return (loaded - statistics.median(run("pass") for _ in range(5))) * 1e3


def query_against_size(sizes: tuple[int, ...], path: str | None = None, calls: int = 3_000) -> dict[int, float]:
    """The p50 of a Query of 20 items in tables of different sizes, in microseconds."""
    query = next(workload for workload in WORKLOADS if workload.operation == "Query")
    found = {}
    for size in sizes:
        with Engine.open(None if path is None else f"{path}/{size}", durability="process") as engine:
            engine.call("CreateTable", CREATE)
            for number in range(size // 25):
                engine.call("BatchWriteItem", batch_write(number, size))
            found[size] = _p50(
                lambda request, engine=engine: engine.call("Query", request),
                [query.body(number, size) for number in range(calls)],
            )
    return found

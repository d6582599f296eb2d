"""Measurements of Stator alone: latency in process, import time, and cost against table size."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.requests import CREATE, GROUP, WORKLOADS, batch_write, query_partition
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.partitions.capacity_meter import MODES

_ROUNDS = 5


def in_process(items: int = 20_000, calls: int = 20_000) -> dict[str, float]:
    """The p50 of ``engine.call`` in memory, in microseconds."""
    with Engine.open() as engine:
        engine.call("CreateTable", CREATE)
        for number in range(items // 25):
            engine.call("BatchWriteItem", batch_write(number, items))
        return {
            workload.name: _p50(
                partial(engine.call, workload.operation),
                [
                    workload.body(number, items)
                    for number in range(min(calls, 2_000 if "Batch" in workload.name else calls))
                ],
            )
            for workload in WORKLOADS
        }


def throughput_modes(items: int = 5_000) -> dict[str, dict[str, float]]:
    """The p50 of GetItem and PutItem with each mode of ``Engine.open(throughput=)``, in us.

    A virtual clock moves on between calls, so that nothing is refused. The modes take turns, and
    the best of five rounds counts: other programs on the machine make a round slower, never faster.
    """
    found: dict[str, dict[str, float]] = {mode: {} for mode in MODES}
    for _ in range(_ROUNDS):
        for mode in MODES:
            clock = VirtualClock()
            with Engine.open(throughput=mode, clock=clock) as engine:
                engine.call("CreateTable", CREATE)
                for workload in WORKLOADS:
                    if workload.operation in ("PutItem", "GetItem"):
                        requests = [workload.body(number, items) for number in range(items)]
                        call = partial(engine.call, workload.operation)
                        p50 = _p50(call, requests * 4, clock)
                        best = found[mode].get(workload.name, p50)
                        found[mode][workload.name] = min(best, p50)
    return found


def _p50(
    call: Callable[[Any], Any], requests: list[Any], clock: VirtualClock | None = None
) -> float:
    times = []
    for request in requests:
        if clock is not None:
            clock.advance(0.001)
        started = time.perf_counter()
        call(request)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def import_milliseconds() -> float:
    """The median import time of five fresh interpreters, less that of importing nothing."""

    def run(code: str) -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - started

    loaded = statistics.median(run("import stator") for _ in range(5))
    return (loaded - statistics.median(run("pass") for _ in range(5))) * 1e3


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """The median Query of 20 items in microseconds: of partitions read first, and read again."""

    first: float
    again: float


def query_against_size(
    sizes: tuple[int, ...], path: str, partitions: int = 500
) -> dict[int, QueryTimes]:
    """Query the same number of partitions, spread over the whole of each table.

    RocksDB then has as much in its cache at every size. Each table is closed and opened again
    before, so that even a small one is read from its files.
    """
    found = {}
    for size in sizes:
        folder = f"{path}/{size}"
        with Engine.open(folder, durability="process") as engine:
            engine.call("CreateTable", CREATE)
            for number in range(size // 25):
                engine.call("BatchWriteItem", batch_write(number, size))
        requests = [
            query_partition(number * (size // GROUP) // partitions) for number in range(partitions)
        ]
        with Engine.open(folder, durability="process") as engine:
            engine.call(
                "Query", query_partition(size // GROUP + 1)
            )  # warm-up: imports and compiles, and finds nothing
            first = _p50(partial(engine.call, "Query"), requests)
            again = _p50(partial(engine.call, "Query"), requests * 8)
        found[size] = QueryTimes(first, again)
    return found

"""A month of tests, as a Parquet file: computed column by column with Arrow's kernels.

All routers of the fleet test themselves at the same rate, one after the other. Latency follows the
hour of the day and the provider; one test in three hundred is bad. Tests have no expiry until the
demo sets one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stator.demo.fleet import ISPS, Test
from stator.errors import ConfigurationError

DAYS: Final = 30
_DAY_SECONDS: Final = 86400
_BATCH_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class History:
    """A Parquet file of ``tests`` connection tests by ``routers`` routers, oldest first.

    ``start`` and ``end`` are in seconds since the epoch.
    """

    path: Path
    tests: int
    routers: int
    start: int
    end: int

    def oldest(self, count: int) -> list[Test]:
        rows = next(
            arrow().parquet.ParquetFile(self.path).iter_batches(batch_size=count)
        ).to_pylist()
        return [Test(**row) for row in rows]


def router_ids(count: int) -> list[str]:
    return [f"r-{number:06d}" for number in range(count)]


def isp_of(number: int) -> str:
    """Return the name of the provider of router ``number``.

    Of every 64 routers, the largest provider has twenty and the smallest has one.
    """
    return ISPS[_ISP_OF_REMAINDER[number % 64]]


_ISP_OF_REMAINDER: Final = (
    [0] * 20 + [1] * 14 + [2] * 10 + [3] * 7 + [4] * 5 + [5] * 4 + [6] * 3 + [7]
)


def arrow() -> Any:
    try:
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise ConfigurationError(
            "the demo needs pyarrow", hint="pip install 'stator[arrow]'"
        ) from None
    return pyarrow


def write_history(path: Path, tests: int, routers: int, now: float) -> History:
    pa = arrow()
    end = int(now) - 60
    start = end - DAYS * _DAY_SECONDS
    schema = pa.schema(
        [
            ("router_id", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("isp", pa.string()),
            ("latency_ms", pa.float64()),
            ("download_mbps", pa.float64()),
            ("loss_percent", pa.float64()),
        ]
    )
    history = History(path, tests, routers, start, end)
    with pa.parquet.ParquetWriter(path, schema) as writer:
        for first in range(0, tests, _BATCH_ROWS):
            writer.write_batch(_rows(history, schema, first, min(_BATCH_ROWS, tests - first)))
    return history


def _rows(history: History, schema: Any, first: int, count: int) -> Any:
    pa = arrow()
    pc = pa.compute
    number = pa.array(range(first, first + count), pa.int64())
    router = pc.subtract(number, pc.multiply(pc.divide(number, history.routers), history.routers))
    isps = pa.array([isp_of(each) for each in range(min(history.routers, 64))])
    remainder = pc.subtract(router, pc.multiply(pc.divide(router, 64), 64))
    isp = isps.take(remainder)
    farther = pa.array([4.0 * place for place in _ISP_OF_REMAINDER]).take(remainder)
    # Whole seconds: tests of a router are hours apart, so no two of them share a time.
    spacing = (history.end - history.start) / history.tests
    seconds = pc.cast(
        pc.floor(pc.add(pc.multiply(pc.cast(number, pa.float64()), spacing), history.start)),
        pa.int64(),
    )
    chance = [pc.random(count, initializer=first * 7 + seed) for seed in range(5)]
    latency = _latency(pc, seconds, farther, chance)
    columns = [
        pc.binary_join_element_wise("r-", pc.utf8_lpad(pc.cast(router, pa.string()), 6, "0"), ""),
        pc.cast(pc.multiply(seconds, 1_000_000), pa.timestamp("us", tz="UTC")),
        isp,
        pc.round(latency, 1),
        pc.round(pc.add(40.0, pc.multiply(chance[3], 400.0)), 1),
        pc.round(pc.multiply(pc.power(chance[4], 6.0), 5.0), 2),
    ]
    return pa.RecordBatch.from_arrays([_whole(column) for column in columns], schema=schema)


def _latency(pc: Any, seconds: Any, farther: Any, chance: list[Any]) -> Any:
    """Return the latency of each test in milliseconds: a base of 8, and up to 30 more at random.

    ``farther`` has the milliseconds that each test's provider adds; the hour of the day adds up to
    12. One test in three hundred takes 300 more. ``pc`` is ``pyarrow.compute``, and ``chance`` has
    columns of random numbers from 0 to 1.
    """
    hour = pc.divide(pc.cast(seconds, "float64"), 3600.0)
    evening = pc.multiply(6.0, pc.add(1.0, pc.sin(pc.multiply(hour, 2 * math.pi / 24))))
    noise = pc.multiply(15.0, pc.add(chance[0], chance[1]))
    spike = pc.if_else(pc.less(chance[2], 1 / 300), 300.0, 0.0)
    return pc.add(pc.add(pc.add(8.0, evening), farther), pc.add(noise, spike))


def _whole(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column

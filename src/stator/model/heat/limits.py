"""The numbers of the heat model: limits that AWS documents, and times that it does not.

AWS documents 3,000 read and 1,000 write units a second for each partition, 300 seconds of burst,
the throughput with which on-demand tables start, and that splits take minutes. Where AWS only
describes the behaviour, the delays and shares below are our choice. ``docs/compatibility.md`` lists
these choices.
"""

from __future__ import annotations

from typing import Final

READ: Final = 0
WRITE: Final = 1

# Read and write units a second. (mypyc does not share a Final tuple between modules.)
PARTITION_UNITS: tuple[float, float] = (3000.0, 1000.0)
# A write unit is a thousandth of what a partition takes in a second, a read unit a third of that.
WRITE_WEIGHT: Final = 3.0
# Shards are planned to take this share of what a partition takes: neither the spread of a hash nor
# an estimate is perfect.
SHARD_FILL: Final = 0.7
PARTITION_BYTES: Final = 10 * 1024**3
ON_DEMAND_PARTITIONS: Final = 4
QUOTA_UNITS: Final = 40_000.0

BURST_SECONDS: Final = 300.0
INITIAL_BURST_SECONDS: Final = 1.0

MINUTE_SECONDS: Final = 60.0
HOT_MINUTES: Final = 2
SPLIT_SECONDS: Final = 180.0
GROWTH_SECONDS: Final = 1800.0

SAMPLED_REQUESTS: Final = 256
SEQUENTIAL_SHARE: Final = 0.9
HOT_KEY_SHARE: Final = 0.5
ONE_KEY_SHARE: Final = 0.98
EVENTS_KEPT: Final = 1000

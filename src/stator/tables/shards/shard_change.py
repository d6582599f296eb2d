"""An event: the number of a key's shards has changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final, Literal

from stator.model.quantities import plural

log = logging.getLogger("stator.shards")

ChangeCause = Literal["throttled", "table throttled", "rate", "cool"]
_CAUSES: Final[dict[ChangeCause, str]] = {
    "throttled": "a partition was throttled",
    "table throttled": "a limit of the table was reached",
    "rate": "the rate of writes came near the limit",
    "cool": "fewer are enough now",
}


@dataclass(frozen=True, slots=True)
class ShardChange:
    """A change of the number of a key's shards, and its cause.

    ``pattern`` names the object, such as "series reading". ``key`` is the series key and ``bucket``
    the bucket of a series; both are empty for a counter. ``cause`` is "rate", "throttled",
    "table throttled" or "cool". ``reason`` is DynamoDB's reason for the throttling, if it gave one.
    ``units_per_second`` is the rate at which this process wrote to the key. ``tables_before`` and
    ``tables_after`` are the numbers of tables that hold the shards.
    """

    pattern: str
    key: str
    bucket: str
    before: int
    after: int
    cause: ChangeCause
    reason: str = ""
    units_per_second: float = 0.0
    tables_before: int = 1
    tables_after: int = 1

    def __str__(self) -> str:
        key = f" key {self.key}" if self.key else ""
        bucket = f" in {self.bucket}" if self.bucket else ""
        before, after = (self.before, self.tables_before), (self.after, self.tables_after)
        verb = "spread over" if after > before else "narrowed to"
        reason = f" ({self.reason})" if self.reason else ""
        shards = f"{self.after} shard{'' if self.after == 1 else 's'}"
        tables = ""
        if self.tables_before != self.tables_after:
            tables = f" in {plural(self.tables_after, 'table')}"
        return (
            f"{self.pattern}:{key}{bucket} {verb} {shards}{tables}, before {self.before}: "
            f"{_CAUSES[self.cause]}{reason}"
        )

    def log(self) -> None:
        """Write the change to the log ``stator.shards``."""
        log.info("%s", self)

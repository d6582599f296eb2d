"""The context of a connection: schema, clock, randomness and blob store, for reads and writes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from stator.backoff import Backoff, BackoffTimer
from stator.clock import Clock
from stator.tables.blobs.stores import BlobStore
from stator.tables.schema.schema import Schema
from stator.tables.shards.index_shards import IndexShards

_BACKOFF = Backoff()


@dataclass(slots=True)
class Context:
    """What planning needs of a connection: schema, clock, random numbers, blob store."""

    schema: Schema
    clock: Clock
    random: random.Random = field(default_factory=random.SystemRandom)
    cursor_key: bytes | None = None
    blobs: BlobStore | None = None
    is_embedded: bool = False
    """Whether the tables are in the embedded engine of this process, not on a server."""
    index_shards: IndexShards = field(init=False)
    """The numbers of shards of hot index values, as this connection remembers them."""

    def __post_init__(self) -> None:
        self.index_shards = IndexShards(self.schema.place, self.clock)

    def now(self) -> float:
        return self.clock.now()

    def backoff(self, attempt: int, backoff: Backoff = _BACKOFF) -> float:
        """Return the seconds to wait before a retry; ``attempt`` is 0 for the first retry."""
        return backoff.delay(attempt, self.random.random())

    def timer(self, backoff: Backoff, wait_seconds: float | None = None) -> BackoffTimer:
        """Return a timer for the waits between attempts.

        ``wait_seconds`` limits the time for all attempts; None means no limit.
        """
        return BackoffTimer(backoff, self.clock, self.random, wait_seconds)

    def token(self) -> str:
        """Return an idempotency token for a transaction."""
        return f"{self.random.getrandbits(128):032x}"

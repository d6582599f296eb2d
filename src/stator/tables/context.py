"""The context of a connection: schema, clock, randomness and blob store, for reads and writes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from stator.backoff import Backoff, BackoffTimer
from stator.clock import Clock
from stator.errors import ConfigurationError
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
    _entities: dict[tuple[str, str], str] = field(init=False, default_factory=dict)
    """The entity of each pattern object with entities of its own, by kind and name."""

    def __post_init__(self) -> None:
        self.index_shards = IndexShards(self.schema.place, self.clock)

    def now(self) -> float:
        return self.clock.now()

    def take_name(self, kind: str, name: str, entity: str) -> None:
        """Note that the pattern objects of this kind and name hold items of ``entity``.

        Raises ConfigurationError if others on this connection hold those of another entity: each
        would read the items of the other as its own.
        """
        first = self._entities.setdefault((kind, name), entity)
        if first != entity:
            raise ConfigurationError(
                f"{kind} {name!r} holds {first} already, and cannot hold {entity}, too",
                hint=f"give each {kind} a name of its own: {kind}(db, {entity}, name=...)",
            )

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

"""What reads and writes need to know beside what they are asked: the schema, the time, chance, and the key that cursors are signed with."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from stator.clock import Clock
from stator.tables.blobs.stores import BlobStore
from stator.tables.schema import Schema


@dataclass(slots=True)
class Context:
    schema: Schema
    clock: Clock
    random: random.Random = field(default_factory=random.SystemRandom)
    cursor_key: bytes | None = None
    blobs: BlobStore | None = None

    def now(self) -> float:
        return self.clock.now()

    def backoff(self, attempt: int, base: float = 0.025, cap: float = 2.0) -> float:
        """Full jitter: anything between nothing and an amount that doubles with each attempt."""
        return self.random.uniform(0.0, min(cap, base * 2**attempt))

    def token(self) -> str:
        """An idempotency token for a transaction."""
        return f"{self.random.getrandbits(128):032x}"

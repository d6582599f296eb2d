"""Drives a resource with requests that arrive evenly in each second of virtual time."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5

from stator.model.heat.limits import WRITE
from stator.model.heat.resource import ThroughputResource

START = 1_700_000_000.0


def key(partition: str, sort: str = "") -> bytes:
    """Return a key as the engine writes it: the hash, then the partition key and the sort key."""
    raw = partition.encode()
    return md5(raw).digest()[:8] + len(raw).to_bytes(2, "big") + raw + sort.encode()


class Driver:
    def __init__(self, resource: ThroughputResource, start: float = START) -> None:
        self.resource = resource
        self.now = start
        self.requests = 0
        self.reasons: set[str] = set()

    def second(
        self,
        per_second: int,
        key_of: Callable[[int], bytes],
        *,
        kind: int = WRITE,
        units: float = 1.0,
    ) -> int:
        """Send requests for one second, and return how many passed."""
        passed = 0
        for at in range(per_second):
            now = self.now + at / per_second
            wanted = key_of(self.requests)
            self.requests += 1
            if self.resource.room(kind, wanted, now) > 0:
                self.resource.charge(kind, wanted, units, now)
                passed += 1
            else:
                causes = self.resource.causes(kind, wanted, now)
                self.reasons.update(cause.reason for cause in causes)
                self.resource.refuse(kind, wanted, units, causes, now)
        self.now += 1.0
        return passed

    def idle(self, seconds: float) -> None:
        self.now += seconds

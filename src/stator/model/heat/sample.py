"""A sample of the requests to a partition, and what it says about where to split."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from stator.model.heat.limits import SAMPLED_REQUESTS

# A linear congruential generator, for the sample must be cheap and the same in every run.
_MULTIPLIER = 1_103_515_245
_INCREMENT = 12_345
_MASK = (1 << 31) - 1
_COLLECTION_BYTES = 8
"""The bytes at the start of a key that all items of one item collection share: its hash."""


def collection_of(key: bytes) -> bytes:
    return key[:_COLLECTION_BYTES]


@dataclass(slots=True, init=False)
class SampledRequest:
    arrival: int
    key: bytes
    weight: float

    def __init__(self, arrival: int, key: bytes, weight: float) -> None:
        self.arrival = arrival
        self.key = key
        self.weight = weight


class KeySample:
    """A random sample of a partition's requests (reservoir sampling), with their keys and weights.

    Every request has about the same chance to be in the sample. A full sample takes only every
    n-th request on average, where n grows with the number of requests. So nearly all requests only
    raise a counter.
    """

    __slots__ = ("_next", "_random", "requests", "seen")

    def __init__(self) -> None:
        self.requests: list[SampledRequest] = []
        self.seen = 0
        # The number of the next request to take.
        self._next = 1
        self._random = 0

    def add(self, key: bytes, weight: float) -> None:
        self.seen += 1
        if self.seen >= self._next:
            self._take(key, weight)

    def _take(self, key: bytes, weight: float) -> None:
        request = SampledRequest(self.seen, key, weight)
        if len(self.requests) < SAMPLED_REQUESTS:
            self.requests.append(request)
            self._next = self.seen + 1
            return
        self.requests[self._draw(SAMPLED_REQUESTS)] = request
        self._next = self.seen + 1 + self._draw(2 * self.seen // SAMPLED_REQUESTS)

    def _draw(self, below: int) -> int:
        """Return a pseudo-random number from 0 to ``below`` - 1."""
        self._random = (self._random * _MULTIPLIER + _INCREMENT) & _MASK
        return (self._random >> 8) % below

    def clear(self) -> None:
        self.requests = []
        self.seen = 0
        self._next = 1

    def by_key(self) -> list[tuple[bytes, float]]:
        """Return the sampled keys in their order, each with its share of the weight."""
        weights: dict[bytes, float] = {}
        for request in self.requests:
            weights[request.key] = weights.get(request.key, 0.0) + request.weight
        total = sum(weights.values())
        return [(key, weights[key] / total) for key in sorted(weights)] if total > 0 else []

    def rising_share(self, collection: bytes = b"") -> float:
        """Return how consistently the keys of successive requests rise, or fall, in key order.

        Each request's key is above or below the key before it, unless it is the same. The result is
        the share of the more common direction: near 1 if keys arrive in rising or falling order,
        near 0.5 if they arrive at random. With ``collection``, only requests for this item
        collection count.
        """
        arrived = sorted(
            (each for each in self.requests if each.key.startswith(collection)),
            key=lambda request: request.arrival,
        )
        rising = falling = 0
        for before, after in pairwise(arrived):
            if after.key > before.key:
                rising += 1
            elif after.key < before.key:
                falling += 1
        moves = rising + falling
        return max(rising, falling) / moves if moves else 0.0

"""The items that transactions in flight hold.

On AWS a transaction takes some time, and a request for one of its items gets TransactionConflict.
Here a transaction is one atomic step, so by default there are no conflicts. Programs can still be
tested against conflicts. ``transaction_seconds`` makes every transaction hold its items for that
time. ``hold`` holds given items for the duration of a ``with`` block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from stator.clock import Clock


class TransactionLocks:
    """The storage keys of items that transactions in flight hold."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._held: dict[bytes, float] = {}

    def take(self, keys: Iterable[bytes]) -> None:
        if self._seconds > 0:
            until = self._clock.now() + self._seconds
            self._held.update(dict.fromkeys(keys, until))

    def holds(self, key: bytes) -> bool:
        if not self._held:
            return False
        until = self._held.get(key)
        if until is None:
            return False
        if until > self._clock.now():
            return True
        now = self._clock.now()
        self._held = {held: end for held, end in self._held.items() if end > now}
        return False

    @contextmanager
    def hold(self, keys: Iterable[bytes]) -> Iterator[None]:
        """Hold these items until the ``with`` block ends, as a transaction in flight would."""
        held = list(keys)
        self._held.update(dict.fromkeys(held, float("inf")))
        try:
            yield
        finally:
            for key in held:
                self._held.pop(key, None)

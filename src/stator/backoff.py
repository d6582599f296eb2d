"""Back-off: how long to wait before a retry. Nothing here sleeps.

``Backoff`` computes the wait for a number of failed attempts; ``BackoffTimer`` counts the attempts.

The wait doubles with each attempt up to a cap. Part of it is random, so that callers that failed
together do not retry together. AWS compares the kinds of jitter in "Exponential Backoff And
Jitter", https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/. The default here
is *full jitter*: a random wait between zero and the ceiling.

    Backoff(0.05, 1.0)              full jitter:  0..50 ms, 0..100 ms, ... 0..1 s
    Backoff(1.0, 300.0, jitter=0.5) equal jitter: half the ceiling is certain, half random
    Backoff(0.02, 1.0, jitter=0.0)  none:         20 ms, 40 ms, ... 1 s, for polling

Whether to retry is decided elsewhere: in ``client.retry`` for single requests, in
``coordination.retry`` for work that is repeated until it succeeds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from stator.clock import Clock

# 2.0 ** 1024 overflows. No cap is anywhere near base * 2 ** 64.
_LAST_DOUBLING = 64
_SHORTEST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Backoff:
    """The rule for waits: they double from ``base_seconds`` to ``cap_seconds``.

    ``jitter`` is the random share of a wait, 0 to 1. ``floor_seconds`` is added to every wait.
    """

    base_seconds: float = 0.025
    cap_seconds: float = 2.0
    jitter: float = 1.0
    floor_seconds: float = 0.0

    def ceiling(self, attempt: int) -> float:
        """Return the longest wait after ``attempt`` earlier failures.

        The result does not include ``floor_seconds``.
        """
        return min(self.cap_seconds, self.base_seconds * 2.0 ** min(attempt, _LAST_DOUBLING))

    def delay(self, attempt: int, chance: float) -> float:
        """Return the seconds to wait after ``attempt`` earlier failures.

        ``chance`` is a random number between 0 and 1: how much of the random share to wait.
        """
        share = 1.0 - self.jitter + self.jitter * chance
        return self.floor_seconds + self.ceiling(attempt) * share


class BackoffTimer:
    """Returns the waits of one caller in turn, and knows when the caller's deadline has passed.

    ``wait_seconds`` is the time from now to the deadline; None means that there is no deadline. The
    last wait is cut short at the deadline, so that the caller makes its last attempt exactly then.
    """

    __slots__ = ("_backoff", "_clock", "_deadline", "_random", "attempt")

    def __init__(
        self,
        backoff: Backoff,
        clock: Clock,
        random: random.Random,
        wait_seconds: float | None = None,
    ) -> None:
        self._backoff = backoff
        self._clock = clock
        self._random = random
        self._deadline = None if wait_seconds is None else clock.now() + wait_seconds
        self.attempt = 0

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return self._deadline is not None and self._clock.now() >= self._deadline

    def next_delay(self) -> float:
        """Return the next wait in seconds, and count one more attempt."""
        delay = self._backoff.delay(self.attempt, self._random.random())
        self.attempt += 1
        if self._deadline is None:
            return delay
        return min(delay, max(self._deadline - self._clock.now(), _SHORTEST_SECONDS))

    def reset(self) -> None:
        """Start over with the shortest wait, because an attempt succeeded."""
        self.attempt = 0

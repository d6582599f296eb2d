"""The governor: a rate in capacity units a second that adapts to what the table accepts.

The rate starts at the throughput of a new on-demand table. It grows while more than half of it is
used and nothing is throttled: it doubles every quarter of a second until the first throttling, and
grows by a twentieth after that. Throttling lowers it, depending on the reason
(``ThrottlingReasons`` of DynamoDB's errors):

    KeyRange...        One partition is hot, the others are not. The rate drops by a tenth, and the
                       throttled rows go back among the others.
    Provisioned...,    The limit of the table or the account. The rate drops to seven tenths of what
    MaxOnDemand...,    got through.
    AccountLimit...

Throttlings that arrive together count once; otherwise a burst of them would bring the job to a
stop. Neither does a service that refuses three requests in ten whatever the rate, because of a
fault or another program. There, what gets through falls and rises with what is sent. A table at its
limit accepts the same, however much is sent. So after each change, the governor compares both with
what they were before. If they moved together, a lower rate does not help, and the rate grows.

The rate never exceeds a limit that the caller set. Before a request is sent, its estimated units
are taken from a token bucket. The reply says how many units were consumed, and the bucket is
corrected. The bucket may be overdrawn; the next caller then waits until it has filled again.

A job that has hours (``daily_hours``) spends nothing outside of them.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Final, Literal

from stator.clock import Clock
from stator.errors import ConfigurationError, ServiceError, SlowDown
from stator.pipeline.bulk.job.daily_hours import Gate

START_UNITS: Final = 4_000.0
"""The initial throughput of a new on-demand table ("DynamoDB on-demand capacity mode")."""
_STEP_SECONDS: Final = 0.25
_FIRST_GROWTH: Final = 2.0
_GROWTH: Final = 1.05
_TABLE_SHARE: Final = 0.7
_KEY_RANGE_SHARE: Final = 0.9
_BUCKET_SECONDS: Final = 0.5
_LEAST_RATE: Final = 1.0
_SAMPLE_REQUESTS: Final = 24
_REMEMBERED_SECONDS: Final = 5.0
_REGROWTH: Final = 1.5
_SAME: Final = 1.15
"""Rates that differ by less than this factor are equal, given how much they vary by chance."""

ThrottleScope = Literal["key range", "table", "account"]


def throttled_scope(error: ServiceError) -> ThrottleScope:
    """Return whose limit was reached: "key range", "table" or "account".

    It is "table" if the reply gives no reason.
    """
    reasons = " ".join(
        str(each.get("reason", "")) for each in getattr(error, "throttling_reasons", ())
    )
    if "KeyRange" in reasons:
        return "key range"
    if "AccountLimit" in reasons or (
        isinstance(error, SlowDown) and error.code == "RequestLimitExceeded"
    ):
        return "account"
    return "table"


@dataclass(frozen=True, slots=True)
class Pace:
    """Allowed and measured units a second, and throttlings so far, for progress displays."""

    allowed: float
    measured: float
    throttled: int


@dataclass(slots=True)
class _Sample:
    """The requests since the rate last changed because of throttling."""

    since: float
    accepted: int = 0
    throttled: int = 0

    def flow(self, now: float) -> _Flow:
        passed = max(now - self.since, 1e-6)
        return _Flow((self.accepted + self.throttled) / passed, self.accepted / passed)


@dataclass(frozen=True, slots=True)
class _Flow:
    """Requests a second: those that were sent, and those that were accepted."""

    sent: float
    accepted: float

    def follows(self, before: _Flow) -> bool:
        """Whether the accepted requests changed as the sent ones did, by half as much at least."""
        if not before.sent or not before.accepted:
            return False
        sent, accepted = self.sent / before.sent, self.accepted / before.accepted
        if sent < 1 / _SAME:
            return accepted < math.sqrt(sent)
        return sent > _SAME and accepted > math.sqrt(sent)


class Governor:
    """The rate that all writers, or all readers, of one job share."""

    def __init__(
        self,
        clock: Clock,
        limit_units: float | None = None,
        *,
        start_units: float = START_UNITS,
        gate: Gate | None = None,
    ) -> None:
        if limit_units is not None and not 0 < limit_units < math.inf:
            raise ConfigurationError(
                f"a rate of {limit_units} units a second cannot be kept",
                hint="name a number above 0, or leave out the rate to adapt to the table",
            )
        self._clock = clock
        self.gate = gate or Gate(clock)
        self._limit = limit_units
        self._allowed = start_units if limit_units is None else limit_units
        self._tokens = self._allowed * _BUCKET_SECONDS if limit_units is None else 0.0
        self._filled_at = self._step_at = clock.now()
        self._step_units = 0.0
        self._measured = 0.0
        self._has_hit = False
        self._lowered_at = self._throttled_at = float("-inf")
        self._throttled = 0
        self._sample = _Sample(clock.now())
        self._before: _Flow | None = None
        """What was sent and accepted before the rate last changed because of throttling."""
        self._lock = threading.Lock()

    @property
    def pace(self) -> Pace:
        return Pace(self._allowed, self._measured, self._throttled)

    def acquire(self, units: float) -> None:
        """Wait until ``units`` may be spent."""
        self.gate.wait()
        with self._lock:
            self._fill()
            self._tokens -= units
            wait = -self._tokens / self._allowed if self._tokens < 0 else 0.0
        if wait > 0:
            self.gate.pause(wait)

    def consumed(self, estimated: float, actual: float) -> None:
        """Replace the estimate of a request with the units that it consumed."""
        with self._lock:
            self._tokens -= actual - estimated
            self._step_units += actual
            self._sample.accepted += 1
            self._step()

    def returned(self, units: float) -> None:
        """Give back units that were acquired and not consumed."""
        with self._lock:
            self._tokens += units

    def throttled(self, scope: ThrottleScope) -> None:
        with self._lock:
            now = self._clock.now()
            self._throttled += 1
            self._has_hit = True
            self._sample.throttled += 1
            self._throttled_at = now
            if now - self._lowered_at < _STEP_SECONDS:
                return
            before = self._before if now - self._lowered_at < _REMEMBERED_SECONDS else None
            requests = self._sample.accepted + self._sample.throttled
            if before is not None and requests < _SAMPLE_REQUESTS:
                return  # too few to tell what the last change did
            flow = self._before = self._sample.flow(now)
            self._lowered_at, self._sample = now, _Sample(now)
            if before is not None and flow.follows(before):
                self._grow(_REGROWTH)
                return
            if scope == "key range":
                self._allowed *= _KEY_RANGE_SHARE
            else:
                reached = self._measured or self._allowed
                self._allowed = min(self._allowed, reached) * _TABLE_SHARE
            self._allowed = max(_LEAST_RATE, self._allowed)
            self._tokens = min(self._tokens, 0.0)

    def _fill(self) -> None:
        now = self._clock.now()
        self._tokens += (now - self._filled_at) * self._allowed
        self._tokens = min(self._tokens, max(1.0, self._allowed * _BUCKET_SECONDS))
        self._filled_at = now

    def _step(self) -> None:
        now = self._clock.now()
        passed = now - self._step_at
        if passed < _STEP_SECONDS:
            return
        self._measured = self._step_units / passed
        self._step_at, self._step_units = now, 0.0
        is_used = self._measured > self._allowed * 0.5
        if is_used and now - self._throttled_at >= 2 * _STEP_SECONDS:
            self._grow(_GROWTH if self._has_hit else _FIRST_GROWTH)

    def _grow(self, factor: float) -> None:
        grown = self._allowed * factor
        self._allowed = grown if self._limit is None else min(self._limit, grown)

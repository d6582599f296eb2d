"""The governor: a rate in capacity units a second that adapts to what the table accepts.

The rate starts at the throughput of a new on-demand table. It grows while more than half of it is
used and nothing is throttled: it doubles every quarter of a second until the first throttling, and
grows by a twentieth after that. Throttling lowers it, depending on the reason
(``stator.throttle_reason``):

    key range          One partition is hot. The rate drops by a tenth when a partition key is first
                       refused. From then on the key has a pace of its own (``key_paces``), and its
                       refusals do not lower the rate.
    table, account     The rate drops below what got through: to 85 % if DynamoDB named the limit,
                       to 70 % if it gave no reason. Near a named limit the rate grows slowly.

Throttlings that arrive together count once; otherwise a burst of them would bring the job to a
stop. A service that names no reason may also refuse three requests in ten at any rate, because of a
fault or another program. There a lower rate would not help, and the rate would fall further and
further. The two cases differ: a table at its limit accepts the same number of requests, however
many are sent. In the other case, the accepted requests rise and fall with the sent ones. So after
each change of the rate, the governor compares accepted and sent requests with those before the
change. If both moved together, the rate grows again.

The rate never exceeds a limit that the caller set. Before a request is sent, its estimated units
are taken from a token bucket. The reply says how many units were consumed, and the bucket is
corrected. The bucket may be overdrawn; the next caller then waits until it has filled again.

A job that has hours (``daily_hours``) spends nothing outside of them.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Final

from stator.clock import Clock
from stator.errors import ConfigurationError
from stator.pipeline.bulk.job.daily_hours import Gate
from stator.throttle_reason import ThrottleScope

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
_NAMED_SHARE: Final = 0.85
_NAMED_SECONDS: Final = 1.0
_NAMED_FOR_SECONDS: Final = 2.0
_NEAR_GROWTH: Final = 1.01
_NEAR_SHARE: Final = 0.95
_SAME: Final = 1.15
"""Rates that differ by less than this factor count as equal: they vary as much by chance."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The allowed and the measured rate in units a second, and the number of throttled requests."""

    allowed: float
    measured: float
    throttled: int


@dataclass(slots=True)
class _Sample:
    """Counters of the requests since throttling last lowered the rate, or since the job began."""

    since: float
    accepted: int = 0
    throttled: int = 0
    units: float = 0.0

    def flow(self, now: float) -> _Flow:
        passed = max(now - self.since, 1e-6)
        return _Flow((self.accepted + self.throttled) / passed, self.accepted / passed)


@dataclass(frozen=True, slots=True)
class _Flow:
    """How many requests a second were sent, and how many of these were accepted."""

    sent: float
    accepted: float

    def follows(self, before: _Flow) -> bool:
        """Whether the accepted requests rose or fell with the sent ones since ``before``.

        On a logarithmic scale, the accepted requests must have changed at least half as much as the
        sent requests. If so, the service is not at a limit.
        """
        if not before.sent or not before.accepted:
            return False
        sent, accepted = self.sent / before.sent, self.accepted / before.accepted
        if sent < 1 / _SAME:
            return accepted < math.sqrt(sent)
        return sent > _SAME and accepted > math.sqrt(sent)


class Governor:
    """The rate that all writers, or all readers, of one job share. It adapts to the table.

    ``limit_units`` is a rate that it never exceeds, in units a second. ``gate`` makes callers wait
    outside of the job's daily hours.
    """

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
        self._named: tuple[ThrottleScope, float] | None = None
        """The limit that a refusal named last, and when."""
        self._near: float | None = None
        """What got through when a refusal named the limit of the table or the account."""
        self._before: _Flow | None = None
        """What was sent and accepted before the rate last changed because of throttling."""
        self._lock = threading.Lock()

    @property
    def pace(self) -> Pace:
        return Pace(self._allowed, self._measured, self._throttled)

    def acquire(self, units: float) -> None:
        """Wait until a request that costs about ``units`` may be sent, or the job is to stop."""
        self.gate.wait()
        with self._lock:
            self._fill()
            self._tokens -= units
            wait = -self._tokens / self._allowed if self._tokens < 0 else 0.0
        if wait > 0:
            self.gate.pause(wait)

    def consumed(self, estimated: float, actual: float) -> None:
        """Account for an accepted request: replace its estimated units by those it consumed."""
        with self._lock:
            self._tokens -= actual - estimated
            self._step_units += actual
            self._sample.accepted += 1
            self._sample.units += actual
            self._step()

    def returned(self, units: float) -> None:
        """Give back acquired units, because the request was not sent or consumed nothing."""
        with self._lock:
            self._tokens += units

    @property
    def named_scope(self) -> ThrottleScope | None:
        """The limit that a refusal named within the last two seconds, or None."""
        if self._named is None or self._clock.now() - self._named[1] > _NAMED_FOR_SECONDS:
            return None
        return self._named[0]

    def throttled(
        self, scope: ThrottleScope, *, is_named: bool = False, is_paced: bool = False
    ) -> None:
        """Lower the rate after a throttled request. ``scope`` is the limit that was reached.

        ``is_named`` says that the refusal named this limit; otherwise it is a guess. ``is_paced``
        says that the refused keys already have paces of their own, so the rate stays.
        """
        with self._lock:
            now = self._clock.now()
            self._throttled += 1
            if is_named:
                self._named = (scope, now)
            if is_paced:
                return
            if scope != "key range" and self.named_scope is not None:
                self._lower_to_limit(now)
                return
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

    def _lower_to_limit(self, now: float) -> None:
        """Lower the rate to 85 % of the units that got through, because a limit was named."""
        self._has_hit = True
        self._throttled_at = now
        passed = now - self._sample.since
        if now - self._lowered_at < _NAMED_SECONDS:
            return
        reached = self._sample.units / passed if passed >= _NAMED_SECONDS else self._measured
        if reached:
            self._near = reached
        self._allowed = max(_LEAST_RATE, min(self._allowed, reached or self._allowed))
        self._allowed = max(_LEAST_RATE, self._allowed * _NAMED_SHARE)
        self._tokens = min(self._tokens, 0.0)
        self._lowered_at, self._sample, self._before = now, _Sample(now), None

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
            is_near = self._near is not None and self._allowed >= self._near * _NEAR_SHARE
            later = _NEAR_GROWTH if is_near else _GROWTH
            self._grow(later if self._has_hit else _FIRST_GROWTH)

    def _grow(self, factor: float) -> None:
        grown = self._allowed * factor
        self._allowed = grown if self._limit is None else min(self._limit, grown)

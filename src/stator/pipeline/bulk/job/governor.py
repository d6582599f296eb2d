"""How fast a table may be written or read: a rate in capacity units that finds its own height.

The rate starts at what a new on-demand table takes and grows as long as it is used and nothing is refused: it doubles every quarter of a second
until the first refusal, and grows by a twentieth after. A refusal lowers it, by its reason (``ThrottlingReasons`` of DynamoDB's errors):

  KeyRange...     one partition is hot. The others are not, so the whole slows by a tenth only, and what was refused goes back among the others.
  Provisioned..., MaxOnDemand..., AccountLimit...    the table's, or the account's, limit. Everything slows to seven tenths of what got through.

Refusals that come together count once, or a burst of them would bring everything to a stop. A limit given by the caller is never passed.
Units are taken from a bucket before a request is sent, by estimate, and put right by what DynamoDB says the request consumed; the bucket may
be overdrawn, and whoever comes next waits for it to be filled.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final, Literal

from stator.clock import Clock
from stator.errors import ServiceError, SlowDown

START_UNITS: Final = 4_000.0
"""What a new on-demand table takes at once ("DynamoDB on-demand capacity mode", initial throughput)."""
_STEP_SECONDS: Final = 0.25
_FIRST_GROWTH: Final = 2.0
_GROWTH: Final = 1.05
_TABLE_SHARE: Final = 0.7
_KEY_RANGE_SHARE: Final = 0.9
_BUCKET_SECONDS: Final = 0.5
_LEAST_RATE: Final = 1.0

Scope = Literal["key range", "table", "account"]


def throttled_scope(error: ServiceError) -> Scope:
    """Whose limit it was, as far as the answer says."""
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
    """For whoever watches: units a second allowed and got, and refusals so far."""

    allowed: float
    measured: float
    throttled: int


class Governor:
    """Shared by all writers, or all readers, of one job."""

    def __init__(
        self, clock: Clock, limit_units: float | None = None, *, start_units: float = START_UNITS
    ) -> None:
        self._clock = clock
        self._limit = limit_units
        self._allowed = start_units if limit_units is None else limit_units
        self._tokens = self._allowed * _BUCKET_SECONDS if limit_units is None else 0.0
        self._filled_at = self._step_at = clock.now()
        self._step_units = 0.0
        self._measured = 0.0
        self._has_hit = False
        self._lowered_at = float("-inf")
        self._throttled = 0
        self._lock = threading.Lock()

    @property
    def pace(self) -> Pace:
        return Pace(self._allowed, self._measured, self._throttled)

    def acquire(self, units: float) -> None:
        """Return once ``units`` may be spent."""
        with self._lock:
            self._fill()
            self._tokens -= units
            wait = -self._tokens / self._allowed if self._tokens < 0 else 0.0
        if wait > 0:
            self._clock.sleep(wait)

    def consumed(self, estimated: float, actual: float) -> None:
        """What was acquired took so much in truth."""
        with self._lock:
            self._tokens -= actual - estimated
            self._step_units += actual
            self._step()

    def returned(self, units: float) -> None:
        """What was acquired was not spent."""
        with self._lock:
            self._tokens += units

    def throttled(self, scope: Scope) -> None:
        with self._lock:
            now = self._clock.now()
            self._throttled += 1
            self._has_hit = True
            if now - self._lowered_at < _STEP_SECONDS:
                return
            self._lowered_at = now
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
        if is_used and now - self._lowered_at >= 2 * _STEP_SECONDS:
            grown = self._allowed * (_GROWTH if self._has_hit else _FIRST_GROWTH)
            self._allowed = grown if self._limit is None else min(self._limit, grown)

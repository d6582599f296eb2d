"""Options of workers. The defaults suit AWS as well as the embedded engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.backoff import Backoff
from stator.errors import ConfigurationError
from stator.model.seconds import check_seconds

RETENTION_SECONDS: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker reads and retries.

    ``start`` is where a new group begins: with changes from now on (``latest``), with the oldest
    change in the stream (``oldest``), or with every item of the tables and then the changes
    (``snapshot``).

    A lease lasts ``lease_seconds`` and is renewed three times in that time. The clocks of workers
    may differ by ``drift_seconds``. A worker that is asked for a lease has ``handover_seconds`` to
    hand it over. If it does not, the other worker takes the lease. A worker takes at most
    ``max_leases`` leases.

    A batch is handled when it has ``batch_records`` records or is ``window_seconds`` old. An idle
    shard is polled at least every ``idle_seconds``. Shards are listed every ``sync_seconds``.

    A change that fails is tried ``max_attempts`` times in all, and then its item is parked. The
    first retry comes after about ``retry_seconds``, and the wait doubles with each failure up to
    ``longest_retry_seconds``. With the defaults a change is tried for half a minute to a minute.
    """

    start: str = "latest"
    lease_seconds: float = 10.0
    drift_seconds: float = 1.0
    handover_seconds: float = 30.0
    batch_records: int = 1000
    window_seconds: float = 0.0
    max_attempts: int = 8
    retry_seconds: float = 0.5
    longest_retry_seconds: float = 30.0
    idle_seconds: float = 0.5
    sync_seconds: float = 10.0
    max_leases: int = 64

    @property
    def retry_backoff(self) -> Backoff:
        """The waits between the attempts to handle a change. Half of each wait is random."""
        return Backoff(self.retry_seconds, self.longest_retry_seconds, jitter=0.5)

    def __post_init__(self) -> None:
        if self.start not in ("latest", "oldest", "snapshot"):
            raise ConfigurationError(
                f"start={self.start!r} is unknown", hint="use latest, oldest or snapshot"
            )
        check_seconds(
            "WorkerOptions",
            lease_seconds=self.lease_seconds,
            handover_seconds=self.handover_seconds,
            retry_seconds=self.retry_seconds,
            longest_retry_seconds=self.longest_retry_seconds,
            idle_seconds=self.idle_seconds,
            sync_seconds=self.sync_seconds,
        )
        check_seconds(
            "WorkerOptions",
            or_zero=True,
            drift_seconds=self.drift_seconds,
            window_seconds=self.window_seconds,
        )
        for name in ("batch_records", "max_attempts", "max_leases"):
            if getattr(self, name) < 1:
                raise ConfigurationError(
                    f"{name}={getattr(self, name)} must be 1 or more", hint="set a whole number"
                )

"""Options of an ingest. The defaults suit AWS as well as the embedded engine."""

from __future__ import annotations

from dataclasses import dataclass

from stator.errors import ConfigurationError
from stator.model.seconds import check_seconds


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How an ingest reads, writes and commits.

    ``start`` is where a group begins that has committed nothing: ``earliest`` or ``latest``.
    ``writers`` is how many requests are in flight. ``window_records`` and ``window_bytes`` limit
    the records that are read and not yet written. A full window pauses the source.

    Offsets are committed every ``commit_seconds``. When partitions go to another consumer, or when
    the ingest stops, it has ``drain_seconds`` to write what it has read.

    A handler that raises an error is called ``max_attempts`` times; then its record becomes a dead
    letter. More than ``max_errors`` dead letters stop the ingest. None means no limit.
    ``units_per_second`` limits the rate of writes; without it, the rate adapts to the table.
    """

    start: str = "earliest"
    writers: int = 8
    window_records: int = 20_000
    window_bytes: int = 64 << 20
    commit_seconds: float = 1.0
    drain_seconds: float = 5.0
    max_attempts: int = 8
    max_errors: int | None = None
    units_per_second: float | None = None

    def __post_init__(self) -> None:
        if self.start not in ("earliest", "latest"):
            raise ConfigurationError(
                f"start={self.start!r} is unknown", hint="use earliest or latest"
            )
        check_seconds("IngestOptions", commit_seconds=self.commit_seconds)
        check_seconds("IngestOptions", or_zero=True, drain_seconds=self.drain_seconds)
        for name in ("writers", "window_records", "window_bytes", "max_attempts"):
            if getattr(self, name) < 1:
                raise ConfigurationError(
                    f"{name}={getattr(self, name)} must be 1 or more", hint="set a whole number"
                )
        if self.max_errors is not None and self.max_errors < 0:
            raise ConfigurationError(
                f"max_errors={self.max_errors} must be 0 or more",
                hint="set a whole number, or None for no limit",
            )

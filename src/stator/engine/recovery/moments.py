"""Moments in words, as manifests and messages have them."""

from __future__ import annotations

from datetime import UTC, datetime

# Moments are shown to the millisecond, and what was shown must be taken back.
ROUNDING_SECONDS = 0.001


def iso(seconds: float) -> str:
    """``2026-10-08T20:00:00.000Z``."""
    return (
        datetime.fromtimestamp(round(seconds, 3), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    )

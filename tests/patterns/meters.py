"""Readings of sensors, for the tests of series."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from stator import Entity, ident

# Far in the future, because servers expire items by real time.
T0 = datetime(2096, 11, 14, 12, tzinfo=UTC)


class Reading(Entity):
    sensor_id: str = ident()
    at: datetime = ident()
    value: Decimal
    note: str | None = None


class Event(Entity):
    """Readings that may share a time, because each has an id; some fields are named like keys."""

    event_id: str = ident()
    device: str
    at: datetime
    level: int = 0
    PK: str = "mine"
    user_id: str = "of another table's key"


def reading(minutes: float, value: Any = 1, sensor: str = "s1", **more: Any) -> Reading:
    return Reading(
        sensor_id=sensor, at=T0 + timedelta(minutes=minutes), value=Decimal(str(value)), **more
    )

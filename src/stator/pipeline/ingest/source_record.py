"""A record of a log, as a source hands it out, and the place it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Lane(NamedTuple):
    """A partition of a topic. Its records have offsets that rise."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of a topic, with its place: what decoders, routes and dead letters see.

    ``at`` is the record's timestamp, in seconds since the epoch. ``key`` and ``value`` are bytes as
    they were produced. A record without a value is a deletion of its key.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    at: float = 0.0
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def lane(self) -> Lane:
        """The topic and partition of the record."""
        return Lane(self.topic, self.partition)

    @property
    def size_bytes(self) -> int:
        """The size of key and value."""
        return len(self.key or b"") + len(self.value or b"")

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


@dataclass(slots=True, eq=False)
class RecordBlock:
    """Consecutive records of one lane that were read together.

    ``left`` is the number of their events that are not yet done. ``next_offset`` is the offset
    after the last of them. ``at`` is the time of the first. ``is_forgotten`` says that another
    consumer reads the lane from now on.
    """

    lane: Lane
    next_offset: int
    left: int
    at: float
    is_forgotten: bool = False


@dataclass(slots=True, eq=False)
class PendingEvent:
    """The event that one route makes of one record, to be written.

    ``key`` names the item and the lane. Events with equal keys are written in their order. What
    ``content`` is depends on the route.
    """

    route: Any
    key: Any
    record: SourceRecord
    block: RecordBlock
    content: Any

    @property
    def offset(self) -> int:
        return self.record.offset

"""A stream and its shards as plain data."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from zlib import crc32

from stator.errors import ValidationFailed
from stator.model.scope import Scope

SEQUENCE_BASE: Final = 10**20
RETENTION_SECONDS: Final = 24 * 3600.0
ROLL_SECONDS: Final = 4 * 3600.0
# The highest hash, as a number. Shards are found by their lower bounds, so the last one includes
# it.
HASHES: Final = 2**64 - 1
STREAMS: Final = b"t"
RECORDS: Final = b"r"


def sequence_text(sequence: int) -> str:
    return str(SEQUENCE_BASE + sequence)


@dataclass(slots=True)
class Shard:
    """One shard. Times are in seconds.

    ``low`` and ``high`` are the bounds of its partition key hashes. ``first`` and ``last`` are the
    bounds of its sequence numbers.
    """

    number: int
    id: str
    low: int
    high: int
    first: int
    opened: float
    parent: str | None = None
    last: int | None = None
    closed: float | None = None
    # Records below this sequence number have been trimmed.
    horizon: int = 0

    @property
    def is_open(self) -> bool:
        return self.last is None

    @property
    def rolls_at(self) -> float:
        """The time at which the shard closes.

        This is about four hours after it opened, but not at the same moment for all shards.
        """
        spread = crc32(self.id.encode()) / 2**32 - 0.5
        return self.opened + ROLL_SECONDS * (1 + spread / 10)


@dataclass(slots=True)
class Stream:
    number: int
    label: str
    table_number: int
    table_name: str
    account: str
    region: str
    key_schema: list[dict[str, str]]
    view_type: str
    created: float
    shards: list[Shard] = field(default_factory=list)
    next_shard: int = 1
    # The stored counter lags behind by the records written since. It is stored before any of them
    # is trimmed.
    next_sequence: int = 1
    disabled: float | None = None

    @property
    def arn(self) -> str:
        return f"{Scope(self.account, self.region).table_arn(self.table_name)}/stream/{self.label}"

    @property
    def key(self) -> bytes:
        return STREAMS + self.number.to_bytes(4, "big")

    @property
    def prefix(self) -> bytes:
        """The prefix of the keys of all the stream's records."""
        return RECORDS + self.number.to_bytes(4, "big")

    def shard(self, shard_id: str) -> Shard | None:
        return next((shard for shard in self.shards if shard.id == shard_id), None)

    def shard_by_number(self, number: int) -> Shard | None:
        return next((shard for shard in self.shards if shard.number == number), None)

    def record_key(self, shard: Shard, sequence: int) -> bytes:
        return self.shard_prefix(shard) + sequence.to_bytes(8, "big")

    def shard_prefix(self, shard: Shard) -> bytes:
        return self.prefix + shard.number.to_bytes(4, "big")

    # -- changes to the shards

    def take_sequence(self) -> int:
        sequence = self.next_sequence
        self.next_sequence += 1
        return sequence

    def copy(self) -> Stream:
        """Return a copy of the stream and its shards, to be changed.

        The caller writes the copy and then uses it in place of this stream.
        """
        return replace(self, shards=[replace(shard) for shard in self.shards])

    def open_shard(self, low: int, high: int, at: float, parent: str | None = None) -> Shard:
        number = self.next_shard
        self.next_shard += 1
        shard_id = f"shardId-{round(at * 1000):020d}-{number:08x}"
        shard = Shard(number, shard_id, low, high, self.take_sequence(), at, parent)
        self.shards.append(shard)
        return shard

    def close_shard(self, shard: Shard, at: float) -> None:
        shard.last = self.take_sequence()
        shard.closed = at

    def roll(self, now: float) -> bool:
        """Close shards that are due and open their children. Return whether any shard was closed.

        A child that is already due is closed as well, and so on up to now.
        """
        rolled = False
        while due := [shard for shard in self.shards if shard.is_open and shard.rolls_at <= now]:
            for shard in due:
                at = shard.rolls_at
                self.close_shard(shard, at)
                self.open_shard(shard.low, shard.high, at, shard.id)
            rolled = True
        return rolled

    def split(self, shard: Shard, now: float) -> list[Shard]:
        middle = (shard.low + shard.high) // 2
        self.close_shard(shard, now)
        return [
            self.open_shard(shard.low, middle, now, shard.id),
            self.open_shard(middle, shard.high, now, shard.id),
        ]

    def disable(self, now: float) -> None:
        for shard in self.shards:
            if shard.is_open:
                self.close_shard(shard, now)
        self.disabled = now

    # -- at rest

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stream:
        return cls(**{**data, "shards": [Shard(**shard) for shard in data["shards"]]})


class OpenShards:
    """Finds the open shard for a hash."""

    __slots__ = ("_lows", "_shards", "rolls_at")

    def __init__(self, stream: Stream) -> None:
        shards = sorted(
            (shard for shard in stream.shards if shard.is_open), key=lambda shard: shard.low
        )
        self._shards = shards
        self._lows = [shard.low for shard in shards]
        self.rolls_at = min((shard.rolls_at for shard in shards), default=float("inf"))

    def of(self, position: int) -> Shard:
        return self._shards[bisect_right(self._lows, position) - 1]


_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:[^:/]+:\d{12}:table/[a-zA-Z0-9_.-]+/stream/.+")


def check_stream_arn(text: str) -> None:
    """Refuse a malformed stream ARN.

    AWS refuses it, too, according to Alternator's tests, which run on AWS. DynamoDB Local answers
    that there is no such stream.
    """
    if _ARN.fullmatch(text) is None:
        raise ValidationFailed("Invalid StreamArn")

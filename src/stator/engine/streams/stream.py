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
STREAMS: Final = b"t"
RECORDS: Final = b"r"


def sequence_text(sequence: int) -> str:
    return str(SEQUENCE_BASE + sequence)


@dataclass(slots=True)
class Shard:
    """One shard: the changes of one partition, for as long as it stays open. Times are in seconds.

    ``low`` is the key at which the partition starts: a storage key without its prefix, so hash,
    partition key and sort key. The partition ends where the next one starts. ``first`` and
    ``last`` are the bounds of the shard's sequence numbers.
    """

    number: int
    id: str
    low: bytes
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
        """The time at which the shard closes, about four hours after it opened.

        It depends on the shard's id, so that shards that opened together do not close together.
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

    def open_shard(self, low: bytes, at: float, parent: str | None = None) -> Shard:
        number = self.next_shard
        self.next_shard += 1
        shard_id = f"shardId-{round(at * 1000):020d}-{number:08x}"
        shard = Shard(number, shard_id, low, self.take_sequence(), at, parent)
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
                self.open_shard(shard.low, at, shard.id)
            rolled = True
        return rolled

    def follow(self, lows: list[bytes], now: float) -> bool:
        """Split open shards where partitions start inside them. Return whether any was split.

        ``lows`` are the keys at which the table's partitions start, in their order.
        """
        is_split = False
        are_open = sorted((each for each in self.shards if each.is_open), key=lambda each: each.low)
        for shard, after in zip(are_open, [*are_open[1:], None]):
            inside = [low for low in lows if low > shard.low and (after is None or low < after.low)]
            if inside:
                self.close_shard(shard, now)
                for low in (shard.low, *inside):
                    self.open_shard(low, now, shard.id)
                is_split = True
        return is_split

    def disable(self, now: float) -> None:
        for shard in self.shards:
            if shard.is_open:
                self.close_shard(shard, now)
        self.disabled = now

    # -- at rest

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        for shard in data["shards"]:
            shard["low"] = shard["low"].hex()
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Stream:
        return cls(**{**data, "shards": [_shard_of(shard) for shard in data["shards"]]})


def _shard_of(stored: dict[str, Any]) -> Shard:
    """Read a stored shard.

    Data folders of format 2 store its range of key hashes as two numbers, ``low`` and ``high``.
    """
    low = stored["low"]
    if isinstance(low, int):
        low = low.to_bytes(8, "big").hex() if low else ""
    known = {name: value for name, value in stored.items() if name != "high"}
    return Shard(**{**known, "low": bytes.fromhex(low)})


class OpenShards:
    """Finds the open shard for a key."""

    __slots__ = ("_lows", "_shards", "rolls_at")

    def __init__(self, stream: Stream) -> None:
        shards = sorted(
            (shard for shard in stream.shards if shard.is_open), key=lambda shard: shard.low
        )
        self._shards = shards
        self._lows = [shard.low for shard in shards]
        self.rolls_at = min((shard.rolls_at for shard in shards), default=float("inf"))

    def of(self, point: bytes) -> Shard:
        """Return the open shard for changes to an item.

        ``point`` is the item's storage key without the table's prefix.
        """
        return self._shards[bisect_right(self._lows, point) - 1]


_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:[^:/]+:\d{12}:table/[a-zA-Z0-9_.-]+/stream/.+")


def check_stream_arn(text: str) -> None:
    """Refuse a malformed stream ARN.

    AWS refuses it, too, according to Alternator's tests, which run on AWS. DynamoDB Local answers
    that there is no such stream.
    """
    if _ARN.fullmatch(text) is None:
        raise ValidationFailed("Invalid StreamArn")

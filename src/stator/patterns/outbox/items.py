"""The items behind an outbox: their keys, how a message is written and read, and the statements that move it from one state to the next."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from stator.design.plan import key_text as keys
from stator.errors import ConditionFailed, RequestRefused
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query
from stator.tables.schema import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement
from stator.tables.writes.writes import LostRace

SENT = "#SENT"
PARKED = "#PARKED"
_HEAD_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Message:
    """``added`` is when it was written, in seconds; ``attempts`` counts the deliveries that failed, ``error`` says how the last one did."""

    id: str
    topic: str
    body: Any
    key: str | None
    added: float
    attempts: int
    error: str | None
    shard: int
    position: str
    previous: str | None
    due: float


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that waits for its transaction to be sent."""

    id: str
    topic: str
    body: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Head:
    """The last message of a key: the next one is later, and in the same shard."""

    shard: int
    last: str | None

    def next_moment(self, now: float) -> int:
        """Microseconds since 1970, later than those of the last message whatever the clocks say."""
        moment = int(now * 1_000_000)
        return moment if self.last is None else max(moment, int(self.last.partition("#")[0]) + 1)


class OutboxItems:
    def __init__(self, place: Place, name: str, shards: int) -> None:
        self.place = place
        self.name = name
        self.shards = shards
        self.start = f"OUTBOX#{keys.escape(name)}"

    # -- keys

    def registry_key(self) -> Item:
        return self.place.key(self.start, "SHARDS")

    def head_key(self, key: str) -> Item:
        return self.place.key(f"{self.start}#KEY#{keys.escape(key)}", "HEAD")

    def message_key(self, message: Message, state: str = "") -> Item:
        return self.place.key(f"{self.start}#{message.shard}{state}", message.position)

    def listing(self, shard: int, state: str = "", limit: int | None = None) -> dict[str, Any]:
        return prefix_query(self.place, f"{self.start}#{shard}{state}", "", limit)

    def shard_of(self, key: str) -> int:
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) % self.shards

    def shard_of_partition(self, partition: str) -> int | None:
        head, _, shard = partition.rpartition("#")
        return int(shard) if head == self.start and shard.isdecimal() else None

    # -- items

    def item(self, message: Message, state: str = "") -> Item:
        item: Item = self.message_key(message, state) | {
            "_topic": {"S": message.topic},
            "_body": {"S": orjson.dumps(message.body).decode()},
            "_attempts": {"N": str(message.attempts)},
            "_due": {"N": f"{message.due:.6f}"},
            "_shard": {"N": str(message.shard)},
        }
        for name, value in (
            ("_key", message.key),
            ("_error", message.error),
            ("_previous", message.previous),
        ):
            if value is not None:
                item[name] = {"S": value}
        return item

    def message(self, item: Item) -> Message:
        position = item[self.place.sort]["S"]
        moment, _, id = position.partition("#")
        key, error, previous = (
            item.get(name, {}).get("S") for name in ("_key", "_error", "_previous")
        )
        return Message(
            id,
            item["_topic"]["S"],
            orjson.loads(item["_body"]["S"]),
            key,
            int(moment) / 1_000_000,
            int(item["_attempts"]["N"]),
            error,
            int(item["_shard"]["N"]),
            position,
            previous,
            float(item["_due"]["N"]),
        )

    def drafted(self, draft: Draft, head: Head, now: float) -> Message:
        moment = head.next_moment(now)
        return Message(
            draft.id,
            draft.topic,
            orjson.loads(draft.body),
            draft.key,
            moment / 1_000_000,
            0,
            None,
            head.shard,
            f"{moment:017d}#{draft.id}",
            head.last,
            0.0,
        )

    # -- statements

    def put(self, message: Message, state: str = "", expires: int | None = None) -> Statement:
        item = self.item(message, state)
        if expires is not None:
            item[self.place.ttl] = {"N": str(expires)}
        return Statement(
            "Put", {"TableName": self.place.table, "Item": item}, f"message {message.topic}", raced
        )

    def delete(self, message: Message, state: str = "", *, must_exist: bool = False) -> Statement:
        written = Expressions()
        request: dict[str, Any] = {
            "TableName": self.place.table,
            "Key": self.message_key(message, state),
        }
        if must_exist:
            request["ConditionExpression"] = (
                f"attribute_exists({written.name(self.place.partition)})"
            )
        return Statement("Delete", written.into(request), f"message {message.topic}", raced)

    def put_head(self, key: str, was: Head | None, now_is: Head, now: float) -> Statement:
        """The key has a new last message, if nobody else has added one since."""
        written = Expressions()
        item: Item = self.head_key(key) | {
            "_last": {"S": now_is.last},
            "_shard": {"N": str(now_is.shard)},
            self.place.ttl: {"N": str(int(now) + _HEAD_SECONDS)},
        }
        last = written.name("_last")
        condition = (
            f"attribute_not_exists({last})"
            if was is None
            else f"{last} = {written.value({'S': was.last})}"
        )
        request = {"TableName": self.place.table, "Item": item, "ConditionExpression": condition}
        return Statement("Put", written.into(request), f"order of {key}", raced)

    def failed(self, message: Message, due: float, error: str) -> dict[str, Any]:
        """One attempt more; only if it is still waiting, and nobody else has counted the same attempt."""
        written = Expressions()
        attempts = written.name("_attempts")
        request = {
            "TableName": self.place.table,
            "Key": self.message_key(message),
            "UpdateExpression": f"SET {attempts} = {written.value({'N': str(message.attempts + 1)})}, "
            f"{written.name('_due')} = {written.value({'N': f'{due:.6f}'})}, "
            f"{written.name('_error')} = {written.value({'S': error})}",
            "ConditionExpression": f"{attempts} = {written.value({'N': str(message.attempts)})}",
        }
        return written.into(request)

    def register(self) -> dict[str, Any]:
        """Make it known that there are this many shards, or more."""
        written = Expressions()
        name, value = written.name("_shards"), written.value({"N": str(self.shards)})
        request = {
            "TableName": self.place.table,
            "Key": self.registry_key(),
            "UpdateExpression": f"SET {name} = {value}",
            "ConditionExpression": f"attribute_not_exists({name}) OR {name} < {value}",
        }
        return written.into(request)


def raced(item: Item | None) -> ConditionFailed:
    return LostRace("another message of the same key came in between", item=item)


def json_text(body: Any) -> str:
    try:
        return orjson.dumps(body).decode()
    except TypeError as error:
        raise RequestRefused(
            f"the body of a message is JSON: {error}",
            hint="pass dictionaries, lists, text and numbers",
        ) from None

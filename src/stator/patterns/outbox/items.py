"""The items of an outbox: their keys, and the statements that move a message between states."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import orjson

from stator.coordination.stored_format import StoredFormat
from stator.design.plan import key_text as keys
from stator.errors import ConditionFailed, RequestRefused
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query
from stator.tables.schema.place import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import LostRace, Statement

SENT = "#SENT"
PARKED = "#PARKED"
FORMAT = StoredFormat("outbox")
_HEAD_SECONDS = 30 * 86_400


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message as the relay hands it to ``send``.

    ``added`` is when it was written, in seconds since the epoch; ``attempts`` counts failed
    deliveries, and ``error`` describes the last one.
    """

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
class MessageDraft:
    """A message that was added to a transaction which has not been sent yet."""

    id: str
    topic: str
    body: str
    key: str | None


@dataclass(frozen=True, slots=True)
class OutboxHead:
    """The shard and the sort key of the last message with some message key.

    The next message with that key must go to the same shard, and sort after the last one.
    """

    shard: int
    last: str | None

    def next_moment(self, now: float) -> int:
        """Return the time to store with the next message of the key, in microseconds since 1970.

        This is ``now``, or one microsecond after the last message if the local clock is behind.
        """
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

    def message_key(self, message: OutboxMessage, state: str = "") -> Item:
        return self.place.key(f"{self.start}#{message.shard}{state}", message.position)

    def listing(self, shard: int, state: str = "", limit: int | None = None) -> dict[str, Any]:
        return prefix_query(self.place, f"{self.start}#{shard}{state}", "", limit)

    def shard_of(self, key: str) -> int:
        return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) % self.shards

    def shard_of_partition(self, partition: str) -> int | None:
        head, _, shard = partition.rpartition("#")
        return int(shard) if head == self.start and shard.isdecimal() else None

    # -- items

    def item(self, message: OutboxMessage, state: str = "") -> Item:
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

    def message(self, item: Item) -> OutboxMessage:
        position = item[self.place.sort]["S"]
        moment, _, id = position.partition("#")
        key, error, previous = (
            item.get(name, {}).get("S") for name in ("_key", "_error", "_previous")
        )
        return OutboxMessage(
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

    def drafted(self, draft: MessageDraft, head: OutboxHead, now: float) -> OutboxMessage:
        moment = head.next_moment(now)
        return OutboxMessage(
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

    def put(self, message: OutboxMessage, state: str = "", expires: int | None = None) -> Statement:
        item = self.item(message, state)
        if expires is not None:
            item[self.place.ttl] = {"N": str(expires)}
        return Statement(
            "Put",
            {"TableName": self.place.table, "Item": item},
            f"message {message.topic}",
            lost_race,
        )

    def delete(
        self, message: OutboxMessage, state: str = "", *, must_exist: bool = False
    ) -> Statement:
        written = Expressions()
        request: dict[str, Any] = {
            "TableName": self.place.table,
            "Key": self.message_key(message, state),
        }
        if must_exist:
            request["ConditionExpression"] = (
                f"attribute_exists({written.name(self.place.partition)})"
            )
        return Statement("Delete", written.into(request), f"message {message.topic}", lost_race)

    def put_head(
        self, key: str, was: OutboxHead | None, now_is: OutboxHead, now: float
    ) -> Statement:
        """Return the statement that records ``now_is`` as the head of ``key``, its last message.

        ``was`` is the head as it was read. The statement fails if another writer has added a
        message under the key since.
        """
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
        return Statement("Put", written.into(request), f"order of {key}", lost_race)

    def failed(self, message: OutboxMessage, due: float, error: str) -> dict[str, Any]:
        """Return the update that counts a failed attempt to deliver ``message``.

        ``due`` is the time of the next attempt. The update fails if the message is gone, or if
        another relay has counted an attempt since it was read.
        """
        written = Expressions()
        attempts = written.name("_attempts")
        count = written.value({"N": str(message.attempts + 1)})
        request = {
            "TableName": self.place.table,
            "Key": self.message_key(message),
            "UpdateExpression": f"SET {attempts} = {count}, "
            f"{written.name('_due')} = {written.value({'N': f'{due:.6f}'})}, "
            f"{written.name('_error')} = {written.value({'S': error})}",
            "ConditionExpression": f"{attempts} = {written.value({'N': str(message.attempts)})}",
        }
        return written.into(request)

    def register(self) -> dict[str, Any]:
        """Return the update that stores this Outbox's number of shards for relays to read.

        The update fails if the stored number is already as high or higher.
        """
        written = Expressions()
        name, value = written.name("_shards"), written.value({"N": str(self.shards)})
        [(attribute, number)] = FORMAT.attributes().items()
        version, current = written.name(attribute), written.value(number)
        request = {
            "TableName": self.place.table,
            "Key": self.registry_key(),
            "UpdateExpression": f"SET {name} = {value}, {version} = {current}",
            "ConditionExpression": f"(attribute_not_exists({name}) OR {name} < {value})"
            f" AND {FORMAT.readable(written)}",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return written.into(request)


def lost_race(item: Item | None) -> ConditionFailed:
    return LostRace("another writer added a message of the same key", item=item)


def json_text(body: Any) -> str:
    """Return the body of a message as JSON. Raises RequestRefused if JSON cannot hold it."""
    _refuse_not_numbers(body)
    try:
        return orjson.dumps(body).decode()
    except TypeError as error:
        raise RequestRefused(
            f"the body of a message must be JSON: {error}",
            hint="pass dictionaries, lists, text and numbers",
        ) from None


def _refuse_not_numbers(body: Any) -> None:
    """Raise RequestRefused for NaN and the infinities, which JSON would turn into null.

    Values that contain themselves are left to the JSON writer, which refuses them.
    """
    left, seen = [body], set[int]()
    while left:
        value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise RequestRefused(
                f"the body of a message contains {value!r}, which JSON cannot hold",
                hint="pass None or text in its place",
            )
        if isinstance(value, (dict, list, tuple)) and id(value) not in seen:
            seen.add(id(value))
            left.extend(value.values() if isinstance(value, dict) else value)

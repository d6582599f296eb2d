"""Shards of index keys that follow the traffic: ``@read(shards="adaptive")``.

    PK  SHARDS#shop#GSI1#STATUS#open#    SK  SHARDS    _open 4    _shards 8    _units 812345

The partition key of such an index ends with the number of a shard: ``STATUS#open#3``. Each value,
such as STATUS#open, has a record in the design's own table. New entries go into the first ``_open``
shards, and readers query the first ``_shards``. A value without a record has the ``least`` shards
that the plan says, for both.

Invariants:

- No entry is in a shard at or above the record's ``_shards`` (or ``least``, if it is larger): the
  record is written first, and ``_shards`` never falls. So a writer whose knowledge is old is slower
  and never wrong, and a reader that reads the record with strong consistency looks everywhere.
- An entry stays in its shard as long as its item keeps the value. Otherwise a reader that queries
  shard 3 before the move and shard 1 after it would miss the entry. Every write that sets the key
  carries the condition that the item is not in another shard of the value. If it fails, the stored
  item tells the shard, and the write is sent again with that shard.

A writer raises ``_open`` if its own rate, or the rate of all processes, needs it, or if DynamoDB
refuses a write because a partition of this index is hot. It lowers ``_open`` by half if half was
enough for ``COOL_SECONDS``; the shards above it get no new entries from then on, and empty
themselves as items leave the value. It asks for the record only for values that it writes often, so
that cool values cost nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from stator.errors import ConditionFailed, StatorError
from stator.model.heat.limits import PARTITION_UNITS, WRITE
from stator.model.limits import WRITE_UNIT_BYTES
from stator.model.values import Item, item_size
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.place import Place
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ChangeCause, ShardChange
from stator.tables.shards.write_rate import WriteRate
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import LostRace, Meaning, Statement
from stator.throttle_reason import UNNAMED, throttle_reasons

REFRESH_SECONDS: Final = 10.0
GROWTH_SECONDS: Final = 1.0
"""After a growth, throttling does not make a value grow again for this long."""
COOL_SECONDS: Final = 300.0
"""How long half of the open shards must have been enough, before half of them are closed."""
MOST_SHARDS: Final = AdaptiveShards().most
_HOT_UNITS: Final = 100.0
"""Write units a second of this process from which on it asks for the record of a value."""
_SETTLING: Final = 0.01
_REMEMBERED: Final = 20_000
_LABEL: Final = "shards of an index"


@dataclass(frozen=True, slots=True)
class SpreadValue:
    """A value of an index's partition key: its text up to the number of the shard."""

    table: str
    index: str
    text: str
    least: int


@dataclass(frozen=True, slots=True)
class SpreadNumbers:
    """``open`` shards get new entries, and ``every`` shard below this number may have some."""

    open: int
    every: int


class _KnownValue:
    """A value as this process remembers it, and its rate of writes."""

    __slots__ = (
        "cool_since",
        "fresh_until",
        "grown_at",
        "numbers",
        "rate",
        "seen",
        "total_at",
        "units",
    )

    def __init__(self, least: int) -> None:
        self.numbers = SpreadNumbers(least, least)
        self.seen: SpreadNumbers | None = None
        """The numbers in the record when it was last seen, or None if it had none."""
        self.fresh_until = 0.0
        self.grown_at = 0.0
        self.cool_since: float | None = None
        self.rate = WriteRate()
        self.units = 0.0
        """The record's ``_units`` at ``total_at``."""
        self.total_at = 0.0


@dataclass(frozen=True, slots=True)
class _Placed:
    """A key attribute that a statement writes: its value, and the shard chosen for it."""

    attribute: str
    value: SpreadValue
    text: str


class HasNow(Protocol):
    def now(self) -> float: ...


class IndexShards:
    """Chooses the shards of index entries, and knows how many shards each value has."""

    def __init__(self, place: Place, clock: HasNow) -> None:
        self._place = place
        self._clock = clock
        self._options = AdaptiveShards()
        self._known: dict[SpreadValue, _KnownValue] = {}
        self._kept: dict[tuple[str, str, str], str] = {}
        """Keys that stored items have, by table, attribute and item; learned from refusals."""

    # -- for readers

    def numbers(self, values: Sequence[SpreadValue], label: str) -> Work[list[SpreadNumbers]]:
        """Read the records of values, with strong consistency."""
        calls = [
            Call(
                "GetItem",
                {"TableName": self._place.table, "Key": self._key(value)}
                | {"ConsistentRead": True},
                label,
            )
            for value in values
        ]
        replies = gathered((yield Gather(calls)))
        found: list[SpreadNumbers] = []
        for value, reply in zip(values, replies):
            known = self._known.get(value)
            item = reply.get("Item")
            if known is not None:
                self._learn(known, value, item)
            found.append(_numbers(item, value.least))
        return found

    # -- for writers

    def place(self, statements: Iterable[Statement], *, may_grow: bool = True) -> Work[None]:
        """Choose the shard of each adaptive index key that the statements write.

        With ``may_grow``, the refusal by a hot partition of the index is raised at once.
        """
        for statement in statements:
            of = statement.of
            if of is None or not of.adaptive_keys or statement.kind not in ("Put", "Update"):
                continue
            yield from self._place_one(statement, of, may_grow)

    def _place_one(self, statement: Statement, of: EntityMap, may_grow: bool) -> Work[None]:
        placed: list[_Placed] = []
        for key in of.adaptive_keys:
            text = _written(statement.request, key.attribute)
            if text is None:
                continue
            at = text.rindex("#") + 1
            value = SpreadValue(of.table.name, key.index, text[:at], key.least)
            numbers = yield from self._counted(value, _units(statement.request))
            stored = of.stored_key(statement.request.get("Item") or statement.request["Key"])
            kept = self._kept.get((of.table.name, key.attribute, repr(stored)))
            if kept is not None and kept.startswith(value.text):
                text = kept
            else:
                shard = _spread_shard(int(text[at:]), stored, numbers.open, key.least)
                text = f"{value.text}{shard:0{len(str(key.least - 1))}d}"
            placed.append(_Placed(key.attribute, value, text))
        if placed:
            statement.spread = tuple((each.value.index, each.value) for each in placed)
            statement.only_placed = "ConditionExpression" not in statement.request
            statement.raise_hot_index = may_grow and any(
                self._may_grow(self._known[each.value], each.value) for each in placed
            )
            statement.meaning = self._meaning(statement.meaning, of, placed)
            statement.request = _with_shards(statement.request, placed)
            if statement.kind == "Put":
                statement.wanted = statement.request["Item"]

    def _meaning(self, before: Meaning, of: EntityMap, placed: list[_Placed]) -> Meaning:
        def means(item: Item | None) -> ConditionFailed:
            is_elsewhere = False
            for each in placed:
                stored = (item or {}).get(each.attribute, {}).get("S", "")
                if stored.startswith(each.value.text) and stored != each.text:
                    if len(self._kept) >= _REMEMBERED:
                        self._kept.clear()
                    key = repr(of.stored_key(item or {}))
                    self._kept[of.table.name, each.attribute, key] = stored
                    is_elsewhere = True
            return LostRace(item=item) if is_elsewhere else before(item)

        return means

    def grown(self, statements: Iterable[Statement], error: StatorError) -> Work[bool]:
        """Give the values of refused statements more shards, if their index partitions are hot.

        Returns whether the statements should be planned and sent again.
        """
        reasons = [each for each in throttle_reasons(error) if each.kind != "read"]
        has_room = False
        for statement in statements:
            for index, value in statement.spread if statement.raise_hot_index else ():
                reason = next(
                    (
                        each
                        for each in reasons
                        if each.index in (index, UNNAMED) and each.scope in ("key range", None)
                    ),
                    None,
                )
                known = self._known.get(value)
                if reason is None or known is None or not self._may_grow(known, value):
                    continue
                settling = known.grown_at + GROWTH_SECONDS - self._clock.now()
                if settling > 0:  # the last growth may be enough
                    yield Pause(min(settling, 0.1) + _SETTLING)
                else:
                    wanted = min(MOST_SHARDS, known.numbers.open * 2)
                    yield from self._raise(known, value, wanted, "throttled", reason.text)
                has_room = True
        return has_room

    @staticmethod
    def _may_grow(known: _KnownValue, value: SpreadValue) -> bool:
        return known.numbers.open * 2 <= max(MOST_SHARDS, value.least)

    def _counted(self, value: SpreadValue, units: float) -> Work[SpreadNumbers]:
        """Count write units to a value, and return its numbers, raised if the rate needs it."""
        known = self._known.get(value)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[value] = _KnownValue(value.least)
        now = self._clock.now()
        rate = known.rate.add(units, now)
        is_hot = rate > _HOT_UNITS or known.numbers.open > value.least
        if is_hot and known.fresh_until <= now:
            yield from self._refresh(known, value, now)
        wanted = _needed(rate, value.least)
        if wanted > known.numbers.open:
            yield from self._raise(known, value, wanted, "rate", "")
        return known.numbers

    # -- the record

    def _key(self, value: SpreadValue) -> Item:
        partition = f"SHARDS#{value.table}#{value.index}#{value.text}"
        return self._place.key(partition, "SHARDS")

    def _refresh(self, known: _KnownValue, value: SpreadValue, now: float) -> Work[None]:
        """Add the units of this process to the record, read it, and follow the common rate."""
        known.fresh_until = now + REFRESH_SECONDS  # others of this process need not do it as well
        written = Expressions()
        sent, peak = round(known.rate.total), known.rate.peak
        request = {
            "TableName": self._place.table,
            "Key": self._key(value),
            "UpdateExpression": f"ADD {written.name('_units')} {written.value(_number(sent))}",
            "ReturnValues": "ALL_NEW",
        }
        item = (yield Call("UpdateItem", written.into(request), _LABEL))["Attributes"]
        known.rate.reported(sent)
        self._learn(known, value, item)
        units, since = known.units, known.total_at
        known.units, known.total_at = float(item["_units"]["N"]), now
        if not since or now - since < 1.0:
            return
        shared = max(0.0, known.units - units) / (now - since)
        wanted = _needed(max(shared, peak), value.least)
        if wanted > known.numbers.open:
            yield from self._raise(known, value, wanted, "rate", "")
        elif wanted * 2 > known.numbers.open:
            known.cool_since = None
        elif known.cool_since is None:
            known.cool_since = now
        elif now - known.cool_since >= COOL_SECONDS:
            known.cool_since = None
            yield from self._lower(known, value)

    def _learn(self, known: _KnownValue, value: SpreadValue, item: Item | None) -> None:
        known.seen = _seen(item)
        known.numbers = _numbers(item, value.least)
        known.grown_at = float((item or {}).get("_grown_at", {"N": "0"})["N"])

    def _raise(
        self, known: _KnownValue, value: SpreadValue, wanted: int, cause: ChangeCause, reason: str
    ) -> Work[None]:
        """Raise the number of open shards to ``wanted``, unless another writer has."""
        before = known.numbers.open
        while known.numbers.open < wanted:
            every = max(known.numbers.every, wanted)
            if (yield from self._store(known, value, SpreadNumbers(wanted, every))):
                self._tell(known, value, before, cause, reason)

    def _lower(self, known: _KnownValue, value: SpreadValue) -> Work[None]:
        """Close half of the open shards for new entries. Readers go on reading them."""
        before = known.numbers
        after = SpreadNumbers(max(value.least, before.open // 2), before.every)
        if after.open < before.open and (yield from self._store(known, value, after)):
            self._tell(known, value, before.open, "cool", "")

    def _store(self, known: _KnownValue, value: SpreadValue, after: SpreadNumbers) -> Work[bool]:
        """Write the record, on condition that its numbers are those last seen.

        Returns False if they are not; ``known`` then has the stored ones.
        """
        now = self._clock.now()
        written = Expressions()
        shards, opened = written.name("_shards"), written.name("_open")
        sets = [
            f"{shards} = {written.value(_number(after.every))}",
            f"{opened} = {written.value(_number(after.open))}",
        ]
        if after.open > known.numbers.open:
            sets.append(f"{written.name('_grown_at')} = {written.value({'N': f'{now:.6f}'})}")
        if known.seen is None:
            condition = f"attribute_not_exists({shards})"
        else:
            every = written.value(_number(known.seen.every))
            condition = f"{shards} = {every} AND {opened} = "
            condition += written.value(_number(known.seen.open))
        request = {
            "TableName": self._place.table,
            "Key": self._key(value),
            "UpdateExpression": f"SET {', '.join(sets)}",
            "ConditionExpression": condition,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            reply = yield Call("UpdateItem", written.into(request), _LABEL)
        except ConditionFailed as failed:
            self._learn(known, value, failed.item)
            return False
        self._learn(known, value, reply["Attributes"])
        return True

    def _tell(
        self, known: _KnownValue, value: SpreadValue, before: int, cause: ChangeCause, reason: str
    ) -> None:
        self._options.changed(
            ShardChange(
                f"index {value.index} of {value.table}",
                value.text[:-1],
                "",
                before,
                known.numbers.open,
                cause,
                reason,
                known.rate.per_second(self._clock.now()),
            )
        )


def _seen(item: Item | None) -> SpreadNumbers | None:
    if not item or "_shards" not in item:
        return None
    return SpreadNumbers(int(item["_open"]["N"]), int(item["_shards"]["N"]))


def _numbers(item: Item | None, least: int) -> SpreadNumbers:
    seen = _seen(item) or SpreadNumbers(least, least)
    return SpreadNumbers(max(least, seen.open), max(least, seen.every))


def _needed(units_per_second: float, least: int) -> int:
    """Return the number of shards that a rate needs: ``least``, twice as many, four times..."""
    room, shards = PARTITION_UNITS[WRITE] * AdaptiveShards().target, least
    while shards * room < units_per_second and shards * 2 <= MOST_SHARDS:
        shards *= 2
    return shards


def _spread_shard(planned: int, key: Item, shards: int, least: int) -> int:
    """Return the shard of a new entry.

    ``planned`` is the shard that the identity gives it among ``least``. If there are more, it is
    one of those that leave the same remainder, so that half of the entries keep theirs when the
    number doubles.
    """
    if shards < 2 * least:
        return planned
    return planned + least * (zlib.crc32(repr(key).encode()) % (shards // least))


def _written(request: dict[str, Any], attribute: str) -> str | None:
    """Return the text that a Put or Update request sets a key attribute to, or None."""
    if "Item" in request:
        value = request["Item"].get(attribute)
    else:
        placeholder = _placeholder(request, attribute)
        value = None if placeholder is None else request["ExpressionAttributeValues"][placeholder]
    return None if value is None else str(value["S"])


def _placeholder(request: dict[str, Any], attribute: str) -> str | None:
    names = request.get("ExpressionAttributeNames") or {}
    name = next((each for each, known in names.items() if known == attribute), None)
    if name is None:
        return None
    found = re.search(rf"{re.escape(name)} = (:\w+)", request["UpdateExpression"])
    return None if found is None else found[1]


def _with_shards(request: dict[str, Any], placed: list[_Placed]) -> dict[str, Any]:
    """Return a request that writes the chosen shards, if the item is in no other of the values."""
    names = dict(request.get("ExpressionAttributeNames") or {})
    values = dict(request.get("ExpressionAttributeValues") or {})
    made = dict(request)
    terms = [f"({request['ConditionExpression']})"] if "ConditionExpression" in request else []
    for at, each in enumerate(placed):
        name, before, now = f"#shard{at}", f":value{at}", f":shard{at}"
        names[name] = each.attribute
        values[before], values[now] = {"S": each.value.text}, {"S": each.text}
        terms.append(f"(NOT begins_with({name}, {before}) OR {name} = {now})")
        if "Item" in made:
            made["Item"] = made["Item"] | {each.attribute: {"S": each.text}}
        else:
            placeholder = _placeholder(request, each.attribute)
            assert placeholder is not None
            text = str(made["UpdateExpression"])
            made["UpdateExpression"] = re.sub(rf" = {placeholder}\b", f" = {now}", text, count=1)
            del values[placeholder]
    made["ConditionExpression"] = " AND ".join(terms)
    made["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    made["ExpressionAttributeNames"], made["ExpressionAttributeValues"] = names, values
    return made


def _units(request: dict[str, Any]) -> float:
    """Return about how many write units an entry takes. The size of an update is not known."""
    item = request.get("Item")
    return 1.0 if item is None else float(-(-item_size(item) // WRITE_UNIT_BYTES))


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}

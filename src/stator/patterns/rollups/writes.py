"""How roll-ups are kept with the write: one update of each in the transaction that puts the reading.

Count and sum are added to. Least, greatest and last have no such operation, so the update says what it expects of them: either that the new value takes
the stored one's place, and sets it, or that it does not, and leaves it. Both are conditions (``_min > :v``, ``_min <= :v``), so that whatever is stored
afterwards is right, whoever wrote in between. Where an expectation is wrong the transaction fails with the item as it is stored, and is sent again with
expectations made from that. A writer remembers what it saw last: it is wrong at the first write to an item, and when others set a record.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.patterns.rollups.rollup import Rollup, RollupKey, RollupRule, RollupTally, number
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions, joined
from stator.tables.writes.statements import Statement

_REMEMBERED: Final = 20_000
_CLOCKS_SECONDS: Final = 5.0


class RollupBook:
    """The roll-ups of one series, and what is known of those that are stored."""

    def __init__(
        self,
        context: Context,
        layout: SeriesLayout,
        rollups: tuple[Rollup, ...],
        *,
        from_stream: bool = False,
    ) -> None:
        self.context = context
        self.layout = layout
        self.from_stream = from_stream
        self.rules = tuple(RollupRule(layout, at, rollup) for at, rollup in enumerate(rollups))
        self._stored: dict[RollupKey, RollupTally | None] = {}
        self._shards: dict[str, int] = {}

    # -- what a reading adds

    def tallies(self, entity: Any, shard: int) -> dict[RollupKey, RollupTally]:
        found: dict[RollupKey, RollupTally] = {}
        for rule in self.rules:
            value = rule.value(entity)
            if value is not None:
                found[rule.key_of(entity, shard)] = RollupTally.of(
                    value, self.layout.sort_text(entity)
                )
        return found

    def addition(self, key: RollupKey, added: RollupTally) -> Statement:
        rule = self.rules[key.rollup]
        stored = self._stored.get(key)
        written = Expressions()
        name, value = written.name, written.value
        version = name("_version")
        sets = [
            f"{name(each)} = {value(content)}" for each, content in rule.expiry(key.period).items()
        ]
        terms = [
            f"attribute_not_exists({version})" if stored is None else f"attribute_exists({version})"
        ]
        new = added.attributes()
        for attribute, is_replaced, keeps, replaces in _expected(stored, added):
            if is_replaced:
                sets.append(f"{name(attribute)} = {value(new[attribute])}")
                if attribute == "_last_key":
                    sets.append(f"{name('_last')} = {value(new['_last'])}")
            if stored is not None:
                terms.append(
                    f"{name(attribute)} {replaces if is_replaced else keeps} {value(new[attribute])}"
                )
        adds = [
            (name("_count"), new["_count"]),
            (name("_sum"), new["_sum"]),
            (version, self.next_version(stored)),
        ]
        request = {
            "TableName": self.layout.place.table,
            "Key": rule.stored_key(key),
            "UpdateExpression": (f"SET {', '.join(sets)} " if sets else "")
            + f"ADD {', '.join(f'{path} {value(content)}' for path, content in adds)}",
            "ConditionExpression": joined(terms),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return Statement(
            "Update",
            written.into(request),
            f"roll up {key.period}",
            lambda item: ConditionFailed(item=item),
        )

    def next_version(self, stored: RollupTally | None) -> dict[str, str]:
        """What is added to the version: one, or, to an item that is made, anything, so that no two with one key begin alike."""
        return number(1 if stored is not None else self.context.random.getrandbits(48))

    def rebuilt_at(self) -> float:
        """The moment up to which changes of the stream may be counted already by what was counted just now, clocks and their rounding included."""
        return self.context.now() + _CLOCKS_SECONDS

    def was_added(self, key: RollupKey, added: RollupTally) -> None:
        stored = self._stored.get(key)
        self._remember(key, added if stored is None else stored + added)

    def is_stored(self, key: RollupKey, item: Item | None) -> None:
        """An expectation was wrong: this is what is there."""
        self._remember(key, RollupTally.read(item) if item else None)

    def _remember(self, key: RollupKey, tally: RollupTally | None) -> None:
        if len(self._stored) >= _REMEMBERED:
            self._stored.clear()
        self._stored[key] = tally

    # -- how many shards there are

    def open_shards(self, by: str, shards: int) -> Work[None]:
        """Let readers know that roll-ups have so many shards; they outlive the buckets that say so."""
        if self._shards.get(by, 0) >= shards:
            return
        written = Expressions()
        count, wanted = written.name("_shards"), written.value(number(shards))
        request = {
            "TableName": self.layout.place.table,
            "Key": self._shards_key(by),
            "UpdateExpression": f"SET {count} = {wanted}",
            "ConditionExpression": f"attribute_not_exists({count}) OR {count} < {wanted}",
        }
        with suppress(ConditionFailed):  # it has as many, or more
            yield Call("UpdateItem", written.into(request), f"series {self.layout.name}")
        if len(self._shards) >= _REMEMBERED:
            self._shards.clear()
        self._shards[by] = shards

    def shards(self, by: str) -> Work[int]:
        request = {
            "TableName": self.layout.place.table,
            "Key": self._shards_key(by),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, f"series {self.layout.name}")
        return int(reply["Item"]["_shards"]["N"]) if reply.get("Item") else 0

    def _shards_key(self, by: str) -> Item:
        return self.layout.place.key(self.layout.directory(by), "ROLLUPS")


def _expected(stored: RollupTally | None, added: RollupTally) -> list[tuple[str, bool, str, str]]:
    """Attribute, whether it is replaced, and the comparisons that hold of the stored one if it is not, and if it is."""
    return [
        ("_min", stored is None or added.min < stored.min, "<=", ">"),
        ("_max", stored is None or added.max > stored.max, ">=", "<"),
        ("_last_key", stored is None or added.last_key > stored.last_key, ">=", "<"),
    ]

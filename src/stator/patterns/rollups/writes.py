"""Roll-ups kept by the writer: the transaction that puts a reading also updates its roll-ups.

Each update adds to count and sum. DynamoDB has no such operation for minimum, maximum and last, so
for each of these the writer guesses whether the new value replaces the stored value. The update
sets the new value or leaves the stored one, on condition that the guess is right (``_min > :v`` or
``_min <= :v``). The stored result is therefore correct, no matter which writer came in between. If
a guess is wrong, the transaction fails and returns the stored item, and the writer guesses again
from that item. A writer remembers the items it last saw. It guesses wrong only at its first write
to an item, and after another writer has set a new minimum, maximum or last value.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.patterns.rollups.rollup import Rollup, RollupKey, RollupRule, RollupTally, number
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions, joined
from stator.tables.writes.statements import Statement

_REMEMBERED: Final = 20_000
_CLOCKS_SECONDS: Final = 5.0


class RollupBook:
    """The roll-up rules of one series, with a cache of the roll-up items last seen."""

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
        self._has_tables = not any(rule.has_own_table for rule in self.rules)

    # -- the effect of a reading

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
        """Return the update that adds readings, summed up in ``added``, to a stored roll-up.

        Its condition fails if the cached roll-up led to a wrong guess about the minimum, maximum or
        last value.
        """
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
                    f"{name(attribute)} {replaces if is_replaced else keeps}"
                    f" {value(new[attribute])}"
                )
        adds = [
            (name("_count"), new["_count"]),
            (name("_sum"), new["_sum"]),
            (version, self.next_version(stored)),
        ]
        request = {
            "TableName": rule.place.table,
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
        """Return the amount to add to an item's version: 1, or a random number for a new item.

        The random number keeps an item that was deleted and created again from repeating a version.
        """
        return number(1 if stored is not None else self.context.random.getrandbits(48))

    def rebuilt_at(self) -> float:
        """Return the time to store as ``_rebuilt`` in a roll-up that is being rebuilt now.

        The rebuild may already include any change made before that time. The time is a few seconds
        in the future, because clocks differ and stream records carry whole seconds.
        """
        return self.context.now() + _CLOCKS_SECONDS

    def was_added(self, key: RollupKey, added: RollupTally) -> None:
        stored = self._stored.get(key)
        self._remember(key, added if stored is None else stored + added)

    def is_stored(self, key: RollupKey, item: Item | None) -> None:
        """Cache a roll-up item that a failed transaction returned; None if there is no item."""
        self._remember(key, RollupTally.read(item) if item else None)

    def _remember(self, key: RollupKey, tally: RollupTally | None) -> None:
        if len(self._stored) >= _REMEMBERED:
            self._stored.clear()
        self._stored[key] = tally

    # -- tables

    def open_tables(self) -> Work[None]:
        """Create the roll-ups' own tables that are missing, once in each process."""
        if self._has_tables:
            return
        for rule in self._own_tables():
            setup = TableSetup(self.context, rule.settings)
            if (yield from setup.describe(rule.place.table)) is None:
                yield from setup.place(rule.place)
        self._has_tables = True

    def ensure_tables(self) -> Work[list[str]]:
        """Create the roll-ups' own tables, or adjust them to their settings."""
        done: list[str] = []
        for rule in self._own_tables():
            setup = TableSetup(self.context, rule.settings)
            yield from setup.place(rule.place)
            done += setup.done
        self._has_tables = True
        return done

    def _own_tables(self) -> list[RollupRule]:
        """Return one rule for each table of the roll-ups' own.

        If several roll-ups share a table, this is the first, whose settings the table gets.
        """
        found: dict[str, RollupRule] = {}
        for rule in self.rules:
            if rule.has_own_table:
                found.setdefault(rule.place.table, rule)
        return list(found.values())

    # -- the number of shards

    def open_shards(self, by: str, shards: int) -> Work[None]:
        """Record that the roll-ups of a series key may be spread over ``shards`` shards.

        The number has an item of its own, because roll-ups outlive the entries of their buckets.
        """
        yield from self.open_tables()
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
        with suppress(ConditionFailed):  # it already has as many, or more
            yield Call("UpdateItem", written.into(request), f"series {self.layout.name}")
        if len(self._shards) >= _REMEMBERED:
            self._shards.clear()
        self._shards[by] = shards

    def shards(self, by: str) -> Work[int]:
        """Return how many shards the roll-ups of a series key may have."""
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
    """Guess whether ``added`` replaces the stored minimum, maximum and last key.

    The result has a tuple for each of the three: its attribute, whether it is replaced, and two
    comparison operators. The stored value stays if the first operator holds between it and the
    added value, and is replaced if the second does: ``("_min", True, "<=", ">")``.
    """
    return [
        ("_min", stored is None or added.min < stored.min, "<=", ">"),
        ("_max", stored is None or added.max > stored.max, ">=", "<"),
        ("_last_key", stored is None or added.last_key > stored.last_key, ">=", "<"),
    ]

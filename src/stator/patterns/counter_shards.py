"""The open shards of a counter: how many there are, and how one is closed or opened.

    PK  COUNTER#views        SK  TOTAL    n  4210    shards  4    units  812345    needed_at  17914
    PK  COUNTER#views#3      SK  SHARD    n    17
    PK  COUNTER#views#4      SK  SHARD    n     0    closed  true

Invariants:

- ``shards`` of the total is the number of shards that additions may be in. It is raised before the
  first addition to a new shard, and lowered in the transaction that empties and closes the last.
- An addition carries the condition that its shard is not closed. A process that remembers too large
  a number is refused, and reads the number again. So no addition is ever outside of what readers
  read, no matter how long a process has slept.
- A shard is opened in the transaction that raises the number.

Each process of an adaptive counter adds the units that it writes to ``units``, and so learns how
fast all processes write together. ``needed_at`` is when more than half of the shards were last
needed. Both are hints.

A counter with a fixed number of shards raises the number once, before its first addition. A counter
of one shard writes nothing, because shard 0 is always open. docs/architecture/adaptive-shards.md
has the reasons.
"""

from __future__ import annotations

from typing import Any, Final

from stator.errors import ConditionFailed, TransactionFailed
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.schema.place import Place
from stator.tables.shards.adaptive_shards import AdaptiveShards
from stator.tables.shards.shard_change import ChangeCause, ShardChange
from stator.tables.shards.write_rate import WriteRate
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement

REFRESH_SECONDS: Final = 60.0
HOT_REFRESH_SECONDS: Final = 10.0
GROWTH_SECONDS: Final = 1.0
COOL_SECONDS: Final = 60.0
_ATTEMPTS: Final = 20


class CounterShards:
    """The number of open shards of one counter: cached, stored, raised and lowered.

    ``least`` is the minimum number of shards. ``adaptive`` holds the options of an adaptive
    counter, and is None for a counter with a fixed number of shards.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        least: int,
        adaptive: AdaptiveShards | None,
        *,
        units: float,
    ) -> None:
        self.context = context
        self.place: Place = context.schema.place
        self.name = name
        self.least = least
        self.adaptive = adaptive
        self.rate = WriteRate()
        self._units = units
        self._label = f"counter {name}"
        self._known = 0
        self._fresh_until = self._grown_at = 0.0
        self._shared = self._total_units = self._total_at = 0.0
        self._asked = 0

    # -- keys

    def shard(self, number: int) -> Item:
        return self.place.key(f"COUNTER#{self.name}#{number}", "SHARD")

    @property
    def total(self) -> Item:
        return self.place.key(f"COUNTER#{self.name}", "TOTAL")

    # -- for writers

    @property
    def known(self) -> int:
        """The number of open shards as this process last read it, or 0 before the first read."""
        return self._known

    def open(self, *, again: bool = False) -> Work[int]:
        """Return the number of open shards for an addition that is about to be sent.

        An adaptive counter also counts the addition toward its write rate, and grows if the rate
        needs more shards. ``again`` marks a retry, which is not counted a second time.
        """
        now = self.context.now()
        if not self._known or (self.adaptive is not None and now >= self._fresh_until):
            yield from self.refresh()
        if self.adaptive is None:
            return self._known
        rate = self.rate.add(0.0 if again else self._units, now)
        needed = self.adaptive.needed(max(self._shared, rate))
        if needed > max(self._known, self._asked):
            yield from self._grow(needed, "rate", "", self.adaptive)
        return self._known

    def forget(self) -> None:
        """Discard the cached number of open shards, so that the next addition reads it again."""
        self._known = 0

    def refresh(self) -> Work[None]:
        """Read the stored number of open shards, and raise it if it is below the minimum."""
        if self.adaptive is None:
            stored = yield from self._stored()
        else:
            stored = yield from self._reported(self.adaptive)
        if max(stored, 1) < self.least:
            stored, _ = yield from self._raise(self.least)
        self._remember(max(stored, 1))

    def grow(self, shards: int, reason: str) -> Work[bool]:
        """Give a counter that was throttled with ``shards`` shards at least twice as many.

        Returns False if the counter is not adaptive, has its maximum, or has just grown.
        """
        if self._known > shards:
            return True
        if self.adaptive is None or not self.may_grow(shards):
            return False
        rate = self.rate.per_second(self.context.now())
        wanted = max(self.adaptive.within(shards * 2), self.adaptive.needed(rate))
        yield from self._grow(wanted, "throttled", reason, self.adaptive)
        return True

    def may_grow(self, shards: int) -> bool:
        adaptive = self.adaptive
        return adaptive is not None and shards < adaptive.most and not self.settling_seconds(shards)

    def settling_seconds(self, shards: int) -> float:
        """Return the seconds until a counter that has just grown may grow again; 0.0 if it may."""
        if self.adaptive is None or self._known > shards or shards >= self.adaptive.most:
            return 0.0
        return max(0.0, self._grown_at + GROWTH_SECONDS - self.context.now())

    def _grow(
        self, wanted: int, cause: ChangeCause, reason: str, adaptive: AdaptiveShards
    ) -> Work[None]:
        before, self._asked = self._known, wanted
        try:
            stored, is_new = yield from self._raise(wanted)
        finally:
            self._asked = 0
        self._remember(stored)
        self._grown_at = self.context.now()
        if is_new:
            rate = self.rate.per_second(self.context.now())
            adaptive.changed(ShardChange(self._label, "", "", before, wanted, cause, reason, rate))

    def _remember(self, stored: int) -> None:
        self._known = stored
        is_hot = self.adaptive is not None and stored > self.adaptive.least
        seconds = HOT_REFRESH_SECONDS if is_hot else REFRESH_SECONDS
        self._fresh_until = self.context.now() + seconds

    def _stored(self) -> Work[int]:
        request = {"TableName": self.place.table, "Key": self.total, "ConsistentRead": True}
        reply = yield Call("GetItem", request, self._label)
        return open_shards(reply.get("Item"))

    def _reported(self, adaptive: AdaptiveShards) -> Work[int]:
        """Add this process's write units since the last refresh to the counter's total item.

        Returns the number of open shards, which the reply shows.
        """
        now, sent = self.context.now(), round(self.rate.total)
        is_needed = 2 * adaptive.needed(max(self._shared, self.rate.peak)) > max(self._known, 1)
        written = Expressions()
        change = f"ADD {written.name('units')} {written.value(_number(sent))}"
        if is_needed:
            at = written.value(_number(int(now)))
            change = f"SET {written.name('needed_at')} = {at} {change}"
        request = {
            "TableName": self.place.table,
            "Key": self.total,
            "UpdateExpression": change,
            "ReturnValues": "ALL_NEW",
        }
        reply = yield Call("UpdateItem", written.into(request), self._label)
        self.rate.reported(sent)
        total = float(reply["Attributes"]["units"]["N"])
        passed = now - self._total_at
        if self._total_at and passed >= 1.0:
            self._shared = max(0.0, total - self._total_units) / passed
        self._total_units, self._total_at = total, now
        return open_shards(reply["Attributes"])

    def _raise(self, wanted: int) -> Work[tuple[int, bool]]:
        """Open shards until the counter has ``wanted``.

        Returns the number of open shards, and whether this call raised it.
        """
        stored = yield from self._stored()
        for _ in range(_ATTEMPTS):
            if stored >= wanted:
                return stored, False
            # Shard 0 is never closed.
            opened = [self._open_shard(number) for number in range(max(stored, 1), wanted)]
            try:
                yield from send_all(
                    self.context, [self._numbered(stored, wanted), *opened], self._label
                )
            except TransactionFailed as failed:
                found = [error for at, _, error in failed.failures if at == 0]
                if not found or not isinstance(found[0], ConditionFailed):
                    raise
                stored = open_shards(found[0].item)
                continue
            return wanted, True
        return stored, False

    # -- for compaction

    def close_last(self, stored: int, amount: int) -> Work[bool]:
        """Move the content of the last shard to the total, and close the shard.

        ``stored`` and ``amount`` are the number of shards and the shard's content as they were
        read. Returns False, and changes nothing, if one of them has changed since.
        """
        written = Expressions()
        n, closed = written.name("n"), written.name("closed")
        zero = written.value(_number(0))
        same = f"(attribute_not_exists({n}) OR {n} = {zero})"
        if amount:
            same = f"{n} = {written.value(_number(amount))}"
        request = {
            "TableName": self.place.table,
            "Key": self.shard(stored - 1),
            "UpdateExpression": f"SET {n} = {zero}, {closed} = {written.value({'BOOL': True})}",
            "ConditionExpression": f"attribute_not_exists({closed}) AND {same}",
        }
        close = Statement("Update", written.into(request), f"close {self.name}", _changed)
        try:
            yield from send_all(
                self.context, [self._numbered(stored, stored - 1, amount), close], self._label
            )
        except TransactionFailed:
            return False  # the shard was added to, or another process closed it
        self._remember(stored - 1)
        if self.adaptive is not None:
            change = ShardChange(self._label, "", "", stored, stored - 1, "cool")
            self.adaptive.changed(change)
        return True

    def least_after_cooling(self, total: Item | None) -> int:
        """Return how many shards to keep, given the counter's total item.

        All shards are kept if more than half of them were needed within the last minute.
        Otherwise half of them are kept, but no fewer than the minimum.
        """
        known = max(open_shards(total), 1)
        if self.adaptive is None or total is None:
            return known
        needed_at = float(total.get("needed_at", {"N": "0"})["N"])
        if self.context.now() - needed_at < COOL_SECONDS:
            return known
        return max(self.adaptive.least, known // 2)

    # -- items

    def _numbered(self, stored: int, shards: int, amount: int = 0) -> Statement:
        """Return the update that changes the number of shards in the total item.

        The update fails unless the stored number is ``stored``. It also adds ``amount`` to the
        total.
        """
        written = Expressions()
        number = written.name("shards")
        before = f"attribute_not_exists({number})"
        if stored:
            before = f"{number} = {written.value(_number(stored))}"
        request: dict[str, Any] = {
            "TableName": self.place.table,
            "Key": self.total,
            "UpdateExpression": f"SET {number} = {written.value(_number(shards))}"
            f" ADD {written.name('n')} {written.value(_number(amount))}",
            "ConditionExpression": before,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return Statement(
            "Update",
            written.into(request),
            f"spread {self.name}",
            lambda item: ConditionFailed("the number of shards has changed", item=item),
        )

    def _open_shard(self, number: int) -> Statement:
        written = Expressions()
        request = {
            "TableName": self.place.table,
            "Key": self.shard(number),
            "UpdateExpression": f"REMOVE {written.name('closed')}",
        }
        return Statement("Update", written.into(request), f"open {self.name}", _changed)


def open_shards(total: Item | None) -> int:
    """Return the number of open shards stored in a counter's total item, or 0 if there is none."""
    return int(total["shards"]["N"]) if total and "shards" in total else 0


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _changed(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the shard has changed since it was read", item=item)

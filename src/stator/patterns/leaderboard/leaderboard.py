"""Leaderboards: members in the order of their scores, the highest first; of equal ones, who reached it first.

    PK  BOARD#weekly#MEMBER#anna    SK  SCORE                               _score  120   _since  ...   _shard  2   _version  3f2a...
    PK  BOARD#weekly#ENTRIES#2      SK  <120, turned round>#<since>#anna    _score  120   _member  anna
    PK  BOARD#weekly#HISTOGRAM#2    SK  <stretch 1, turned round>           _n  48
    PK  BOARD#weekly                SK  META                                _shards  4   _histogram  100

The entry of a member is where its score puts it; a query from the start of a shard gives its best. Shards are chosen by a hash of the member, so that a
board takes more than the thousand writes a second of one partition; ``top`` asks all of them and merges.

A change of score is one transaction: the old entry goes, the new one comes, and the member's own item, on condition that it still has the version that was
read, remembers where. So there is one entry for each member at any time, and ``add_score`` is exact: whoever loses a race reads again. An answer that is lost
does no harm, as transactions carry a token; ``once`` makes an addition safe to be asked for again by a program that died before it heard.

A rank is the number of entries before one's own, and one. Counting them reads them: a rank of a million is read from a million entries. With
``histogram=100`` the same transaction counts how many scores each stretch of 100 points holds; then ``rank`` adds up the better stretches and counts entries
only within its own, and ``rank(exact=False)`` does not even do that, but takes the member to be in the middle of its stretch. A board has a histogram from its
first score on, or never: one that was given later would not know the scores before it.

The number of shards can be raised at any time: a member's item says in which shard its entry is, and META how many there may be. It is never lowered. Reads
of several shards are not one moment: while scores change, ranks may be off by the changes under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from stator.backoff import Backoff
from stator.errors import (
    ConditionFailed,
    ConfigurationError,
    RequestRefused,
    TransactionConflict,
    TransactionFailed,
)
from stator.model.values import Item, Value
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.leaderboard.items import (
    EXACT,
    BoardEntry,
    BoardItems,
    Score,
    Standing,
    exact_score,
)
from stator.patterns.leaderboard.reads import BoardReads
from stator.tables.operation import D, OnDb, operation
from stator.tables.reads.pattern_read import check_limit
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement

MAX_SHARDS: Final = 100
_ATTEMPTS: Final = 40
_RACE_BACKOFF: Final = Backoff(base_seconds=0.025, cap_seconds=0.4)
_ZERO: Final = Decimal(0)


class Leaderboard(OnDb[D]):
    """``Leaderboard(db, "weekly")``: ``set_score``, ``add_score``, ``top``, ``rank``, ``around``, ``get``, ``count``, ``remove``.

    ``histogram`` is a width in points: ranks are then found without counting all that are better.
    """

    def __init__(
        self, db: D, name: str, *, shards: int = 1, histogram: Score | None = None
    ) -> None:
        super().__init__(db)
        if not 1 <= shards <= MAX_SHARDS:
            raise ConfigurationError(
                f"a leaderboard has 1 to {MAX_SHARDS} shards, not {shards}",
                hint="each takes a few hundred changes a second",
            )
        width = None if histogram is None else exact_score(histogram)
        if width is not None and width <= 0:
            raise ConfigurationError(
                f"histogram={histogram} is not a width in points",
                hint="take about a thousandth of the range of scores",
            )
        self.name = name
        self.shards = shards
        self.items = BoardItems(self.context.schema.place, name, width)
        self._label = f"leaderboard {name}"
        self._is_open = False

    # -- changes

    @operation
    def set_score(self, member: str, score: Score) -> Work[Standing]:
        """The member has this score from now on; who has it already keeps its place among equals."""
        wanted = exact_score(score)
        return (yield from self._change(member, lambda old: wanted))

    @operation
    def add_score(self, member: str, amount: Score, *, once: str | None = None) -> Work[Standing]:
        """Add to the score, from 0 for a new member. Of all calls with the same ``once`` within a week, one adds."""
        added = exact_score(amount)
        return (
            yield from self._change(member, lambda old: exact_score(EXACT.add(old, added)), once)
        )

    @operation
    def remove(self, member: str) -> Work[bool]:
        """Whether the member was there."""
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(member)
            if stored is None:
                return False
            if (yield from self._sent(self.items.removal(stored), attempt)) is None:
                return True
        raise self._contended(member)

    def _change(
        self, member: str, score_after: Callable[[Decimal], Decimal], once: str | None = None
    ) -> Work[Standing]:
        yield from self._open()
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(member)
            old = _ZERO if stored is None else stored.standing.score
            score = score_after(old)
            if stored is not None and score == old and once is None:
                return stored.standing
            made = self._made(member, score, stored)
            statements = self.items.change(stored, made)
            if once is not None:
                statements.append(self.items.done(once, self.context.now()))
            failed = yield from self._sent(statements, attempt)
            if failed is None:
                return made.standing
            if once is not None and len(statements) - 1 in failed:  # it was added before
                return made.standing if stored is None else stored.standing
        raise self._contended(member)

    def _made(self, member: str, score: Decimal, stored: BoardEntry | None) -> BoardEntry:
        shard, version = self.items.shard(member, self.shards), self.context.token()
        if stored is not None and score == stored.standing.score:
            return BoardEntry(stored.standing, shard, version)
        return BoardEntry(
            Standing(member, score, datetime.fromtimestamp(self.context.now(), UTC)), shard, version
        )

    def _sent(self, statements: list[Statement], attempt: int) -> Work[set[int] | None]:
        """None when it went through; else the statements in whose way others were."""
        try:
            yield from send_all(self.context, statements, self._label)
        except TransactionFailed as failed:
            if not all(
                isinstance(error, (ConditionFailed, TransactionConflict))
                for _, _, error in failed.failures
            ):
                raise
            yield Pause(self.context.backoff(attempt, _RACE_BACKOFF))
            return {at for at, _, error in failed.failures if isinstance(error, ConditionFailed)}
        return None

    def _contended(self, member: str) -> TransactionConflict:
        return TransactionConflict(
            f"the score of {member} in {self.name} is changed by others all the time"
        )

    # -- reads

    @operation
    def get(self, member: str) -> Work[Standing | None]:
        """The member's score, without its rank."""
        stored = yield from self._stored(member)
        return None if stored is None else stored.standing

    @operation
    def top(self, n: int = 10, *, consistent: bool = False) -> Work[list[Standing]]:
        """The best, with their ranks."""
        check_limit(n)
        reads = yield from self._reads(consistent)
        found = yield from reads.next(None, n)
        return [replace(standing, rank=at) for at, standing in enumerate(found, 1)]

    @operation
    def rank(
        self, member: str, *, exact: bool = True, consistent: bool = False
    ) -> Work[int | None]:
        """The member's place, from 1; None for who is not there."""
        if not exact and self.items.histogram is None:
            raise RequestRefused(
                "a rank is only estimated from a histogram",
                hint="make the Leaderboard with histogram=..., or ask exactly",
            )
        stored = yield from self._stored(member)
        if stored is None:
            return None
        reads = yield from self._reads(consistent)
        return (yield from self._rank(reads, stored.standing, exact=exact))

    @operation
    def around(self, member: str, n: int = 5, *, consistent: bool = False) -> Work[list[Standing]]:
        """The member, up to ``n`` before it and ``n`` after, with their ranks; nothing if it is not there."""
        check_limit(n)
        stored = yield from self._stored(member)
        if stored is None:
            return []
        reads = yield from self._reads(consistent)
        mine = self.items.sort_text(stored.standing)
        before = yield from reads.next(mine, n, backwards=True)
        after = yield from reads.next(mine, n)
        rank = yield from self._rank(reads, stored.standing, exact=True)
        first = max(1, rank - len(before))
        return [
            replace(standing, rank=at)
            for at, standing in enumerate([*reversed(before), stored.standing, *after], first)
        ]

    @operation
    def count(self, *, consistent: bool = False) -> Work[int]:
        """How many members there are."""
        reads = yield from self._reads(consistent)
        if self.items.histogram is None:
            return (yield from reads.count())
        return (yield from reads.histogram())[0]

    def _rank(self, reads: BoardReads, standing: Standing, *, exact: bool) -> Work[int]:
        """Entries up to one's own are counted: it is the last of them."""
        mine = self.items.sort_text(standing)
        if self.items.histogram is None:
            return max(1, (yield from reads.count(None, mine)))
        bucket = self.items.bucket(standing.score)
        better, within = yield from reads.histogram(bucket)
        if not exact:
            return better + max(1, (within + 1) // 2)
        return better + max(1, (yield from reads.count(self.items.bucket_begin(bucket), mine)))

    # -- items

    def _stored(self, member: str) -> Work[BoardEntry | None]:
        request = {
            "TableName": self.items.place.table,
            "Key": self.items.member_key(member),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        return self.items.read_member(reply["Item"]) if reply.get("Item") else None

    def _open(self) -> Work[None]:
        """Let readers know how many shards there are, before the first write to them."""
        if self._is_open:
            return
        written = Expressions()
        shards, wanted = written.name("_shards"), written.value({"N": str(self.shards)})
        histogram, width = written.name("_histogram"), written.value(self._width())
        request: dict[str, Any] = {
            "TableName": self.items.place.table,
            "Key": self.items.meta_key(),
            "UpdateExpression": f"SET {shards} = {wanted}, {histogram} = {width}",
            "ConditionExpression": f"attribute_not_exists({shards}) OR ({shards} < {wanted} AND {histogram} = {width})",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            yield Call("UpdateItem", written.into(request), self._label)
        except ConditionFailed as failed:
            self.shards = self._checked(failed.item)
        self._is_open = True

    def _width(self) -> Value:
        return {
            "S": "" if self.items.histogram is None else str(self.items.histogram.normalize(EXACT))
        }

    def _checked(self, meta: Item) -> int:
        """How many shards META says there are; it must be of a board like this one."""
        if meta["_histogram"] != self._width():
            there = meta["_histogram"]["S"] or None
            raise ConfigurationError(
                f"{self.name} was begun with histogram={there}, and that cannot be changed",
                hint="say the same here, or begin a board of another name",
            )
        return int(meta["_shards"]["N"])

    def _reads(self, consistent: bool) -> Work[BoardReads]:
        request = {
            "TableName": self.items.place.table,
            "Key": self.items.meta_key(),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        shards = self._checked(reply["Item"]) if reply.get("Item") else 0
        return BoardReads(self.items, shards, self._label, consistent=consistent)

    def explain(self) -> PatternExplanation:
        place, head, width = self.items.place, self.items.head, self.items.histogram
        shards = self.shards
        change = 3 if width is None else 5
        ranks = (
            "exact, by counting all entries that are better"
            if width is None
            else f"exact, by a histogram of {width} points and counting within one stretch of it"
        )
        costs = [
            OperationCost(
                "set_score, add_score",
                f"GetItem and TransactWriteItems of {change}",
                1,
                2.0 * change,
            ),
            OperationCost("top", f"GetItem and {shards} Query", 1 + 0.5 * shards),
            OperationCost(
                "rank",
                f"2 GetItem and {shards if width is None else 2 * shards} Query",
                2,
                0,
                ranks,
            ),
        ]
        if width is not None:
            costs.append(
                OperationCost(
                    "rank(exact=False)",
                    f"2 GetItem and {shards} Query",
                    2,
                    0,
                    "estimated by the histogram alone",
                )
            )
        return PatternExplanation(
            f"leaderboard {self.name}, {shards} shard{'' if shards == 1 else 's'} in {place.table}",
            (
                f"{place.partition} {head}#MEMBER#<member>  {place.sort} SCORE  _score, _since, _shard, _version",
                f"{place.partition} {head}#ENTRIES#<shard>  {place.sort} <score>#<since>#<member>",
                *(
                    ()
                    if width is None
                    else (
                        f"{place.partition} {head}#HISTOGRAM#<shard>  {place.sort} <stretch>  _n",
                    )
                ),
            ),
            tuple(costs),
            ()
            if width is not None
            else ("a rank costs a read unit for some 80 members that are better: see histogram=",),
        )

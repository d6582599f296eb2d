"""Leaderboards: members ordered by score, the highest first; of equal scores, the earliest first.

    PK                              SK                              attributes
    BOARD#weekly#MEMBER#anna        SCORE                           _score 120  _since ...
                                                                    _shard 2  _version 3f2a...
    BOARD#weekly#ENTRIES#2          <120, inverted>#<since>#anna    _score 120  _member anna
    BOARD#weekly#HISTOGRAM#2        <bucket 1, inverted>            _n 48
    BOARD#weekly                    META                            _shards 4  _histogram 100

The sort key of a member's entry contains its score, inverted, so a query from the start of a shard
returns the best first. A hash of the member chooses the shard. Several shards let a board take more
than the thousand writes per second of one partition; ``top`` queries all shards and merges.

A score changes in one transaction. It deletes the old entry, puts the new one, and updates the
member's own item on condition that it still has the version that was read. Therefore each member
has exactly one entry at any time, and ``add_score`` is exact: a writer that loses a race reads
again. A lost reply does no harm, because transactions carry a token. ``once`` protects an addition
that a program repeats because it died before it saw the reply.

A rank is one more than the number of better entries. Counting them reads them: rank 1,000,000 reads
a million entries. With ``histogram=100`` the same transaction also counts the scores in each bucket
of 100 points. ``rank`` then adds up the better buckets and counts entries only within the member's
own. ``rank(exact=False)`` skips that count and assumes the middle of the bucket. A board has a
histogram from its first score, or never: a histogram added later would miss the scores before it.

The number of shards can be raised at any time, because a member's item records the shard of its
entry and META the number of shards. It is never lowered. A read of several shards is not a
snapshot: while scores change, a rank can be off by the changes in flight.
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
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.patterns.leaderboard.items import (
    EXACT,
    BoardEntry,
    BoardItems,
    Score,
    Standing,
    exact_score,
)
from stator.patterns.leaderboard.reads import BoardReads
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, OnDb, operation
from stator.tables.reads.cursors import make_cursor, read_cursor
from stator.tables.reads.item_list import ItemList
from stator.tables.reads.pattern_read import Page, check_limit
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import send_all
from stator.tables.writes.statements import Statement

MAX_SHARDS: Final = 100
_ATTEMPTS: Final = 40
_RACE_BACKOFF: Final = Backoff(base_seconds=0.025, cap_seconds=0.4)
_ZERO: Final = Decimal(0)


@checks_arguments("Leaderboard")
class Leaderboard(OnDb[D]):
    """Members ordered by score: ``Leaderboard(db, "weekly")``.

    ``histogram`` is a width in points. With it, ``rank`` does not have to count every better score.
    """

    def __init__(
        self, db: D, name: str, *, shards: int = 1, histogram: Score | None = None
    ) -> None:
        super().__init__(db)
        if not 1 <= shards <= MAX_SHARDS:
            raise ConfigurationError(
                f"a leaderboard has 1 to {MAX_SHARDS} shards, not {shards}",
                hint="choose one shard for every few hundred changes per second",
            )
        width = None if histogram is None else exact_score(histogram)
        if width is not None and width <= 0:
            raise ConfigurationError(
                f"histogram={histogram} must be a positive width in points",
                hint="use about a thousandth of the range of scores",
            )
        self.name = name
        self.shards = shards
        self.items = BoardItems(self.context.schema.place, name, width)
        self._label = f"leaderboard {name}"
        self._is_open = False

    # -- changes

    @operation
    def set_score(self, member: str, score: Score) -> Work[Standing]:
        """Set a member's score and return the new standing, without a rank.

        Setting the score that the member already has keeps its place among members with that score.
        """
        wanted = exact_score(score)
        return (yield from self._change(member, lambda old: wanted))

    @operation
    def add_score(self, member: str, amount: Score, *, once: str | None = None) -> Work[Standing]:
        """Add to a member's score and return the new standing. A new member starts at 0.

        Of all calls for this member with the same ``once`` within a week, only one takes effect.
        """
        added = exact_score(amount)
        return (
            yield from self._change(member, lambda old: exact_score(EXACT.add(old, added)), once)
        )

    @operation
    def remove(self, member: str) -> Work[bool]:
        """Remove a member. Return whether the member existed."""
        for attempt in range(_ATTEMPTS):
            stored = yield from self._stored(member)
            if stored is None:
                return False
            if (yield from self._send(self.items.removal(stored), attempt)) is None:
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
            entry = self._new_entry(member, score, stored)
            statements = self.items.change(stored, entry)
            if once is not None:
                statements.append(self.items.record_once(once, self.context.now()))
            failed = yield from self._send(statements, attempt)
            if failed is None:
                return entry.standing
            if once is not None and len(statements) - 1 in failed:  # an earlier call has added it
                return entry.standing if stored is None else stored.standing
        raise self._contended(member)

    def _new_entry(self, member: str, score: Decimal, stored: BoardEntry | None) -> BoardEntry:
        shard, version = self.items.shard(member, self.shards), self.context.token()
        if stored is not None and score == stored.standing.score:
            return BoardEntry(stored.standing, shard, version)
        return BoardEntry(
            Standing(member, score, datetime.fromtimestamp(self.context.now(), UTC)), shard, version
        )

    def _send(self, statements: list[Statement], attempt: int) -> Work[set[int] | None]:
        """Send the statements as one transaction. Return None on success.

        If another writer interfered, pauses and returns the indexes of the statements whose
        conditions failed. The set is empty after a transaction conflict.
        """
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
            f"leaderboard {self.name!r}: other writers changed the score of {member!r}"
            f" in each of {_ATTEMPTS} attempts",
            hint="try again, or write to this member from fewer processes at once",
        )

    # -- reads

    @operation
    def get(self, member: str) -> Work[Standing | None]:
        """Return the member's standing, without a rank, or None for an unknown member."""
        stored = yield from self._stored(member)
        return None if stored is None else stored.standing

    @operation
    def top(self, n: int = 10, *, consistent: bool = False) -> Work[list[Standing]]:
        """Return the ``n`` best members, with their ranks.

        With ``consistent=True``, the reads are strongly consistent and cost twice as much.
        """
        check_limit(n)
        reads = yield from self._reads(consistent)
        found = yield from reads.next(None, n)
        return ItemList(replace(standing, rank=at) for at, standing in enumerate(found, 1))

    @operation
    def page(
        self,
        *,
        limit: int,
        cursor: str | None = None,
        exact: bool = True,
        consistent: bool = False,
    ) -> Work[Page[Standing]]:
        """Return up to ``limit`` members, the best first, and the cursor of the next page.

        The cursor is None after the last page. A page starts after the last entry of the previous
        page, even if that member's score has changed since. By default, each page counts the rank
        of its first member as ``rank`` does, which costs reads. With ``exact=False``, ranks
        continue from the previous page. This costs no reads, but ranks are wrong if scores have
        changed since the first page. A board is paged forward only: ``previous`` is always None.
        """
        check_limit(limit)
        reads = yield from self._reads(consistent)
        after, before, key = None, 0, self.context.cursor_key
        if cursor is not None:
            [position], before, _ = read_cursor(cursor, self._label, {}, key)
            assert isinstance(position, dict)
            after = position[self.items.place.sort]["S"]
        found = yield from reads.next(after, limit + 1)
        shown = found[:limit]
        if shown and after is not None and exact:
            before = (yield from self._rank(reads, shown[0], exact=True)) - 1
        ranked = [replace(standing, rank=at) for at, standing in enumerate(shown, before + 1)]
        if len(found) <= limit:
            return Page(ranked, None)
        last: Item = {self.items.place.sort: {"S": self.items.sort_text(shown[-1])}}
        return Page(ranked, make_cursor([last], self._label, {}, key, before + len(shown)))

    @operation
    def rank(
        self, member: str, *, exact: bool = True, consistent: bool = False
    ) -> Work[int | None]:
        """Return the member's rank, counted from 1, or None for an unknown member.

        ``exact=False`` estimates the rank from the histogram, and raises RequestRefused without
        one.
        """
        if not exact and self.items.histogram is None:
            raise RequestRefused(
                "rank(exact=False) needs a histogram to estimate from",
                hint="create the Leaderboard with histogram=..., or use exact=True",
            )
        stored = yield from self._stored(member)
        if stored is None:
            return None
        reads = yield from self._reads(consistent)
        return (yield from self._rank(reads, stored.standing, exact=exact))

    @operation
    def around(self, member: str, n: int = 5, *, consistent: bool = False) -> Work[list[Standing]]:
        """Return the member with up to ``n`` neighbours before and ``n`` after, all with ranks.

        The result is empty if the member is unknown.
        """
        check_limit(n)
        stored = yield from self._stored(member)
        if stored is None:
            return ItemList()
        reads = yield from self._reads(consistent)
        mine = self.items.sort_text(stored.standing)
        before = yield from reads.next(mine, n, backwards=True)
        after = yield from reads.next(mine, n)
        rank = yield from self._rank(reads, stored.standing, exact=True)
        first = max(1, rank - len(before))
        return ItemList(
            replace(standing, rank=at)
            for at, standing in enumerate([*reversed(before), stored.standing, *after], first)
        )

    @operation
    def count(self, *, consistent: bool = False) -> Work[int]:
        """Return the number of members."""
        reads = yield from self._reads(consistent)
        if self.items.histogram is None:
            return (yield from reads.count())
        return (yield from reads.histogram())[0]

    def _rank(self, reads: BoardReads, standing: Standing, *, exact: bool) -> Work[int]:
        """Return the rank of a member: the number of entries up to and including the member's own.

        With ``exact=False``, a board with a histogram assumes that the member is in the middle of
        its bucket.
        """
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
        """Store the number of shards and the histogram width in META before the first write.

        Readers learn from META how many shards to read. If META has more shards, this object uses
        that number from then on.
        """
        if self._is_open:
            return
        written = Expressions()
        shards, wanted = written.name("_shards"), written.value({"N": str(self.shards)})
        histogram, width = written.name("_histogram"), written.value(self._width())
        request: dict[str, Any] = {
            "TableName": self.items.place.table,
            "Key": self.items.meta_key(),
            "UpdateExpression": f"SET {shards} = {wanted}, {histogram} = {width}",
            "ConditionExpression": f"attribute_not_exists({shards})"
            f" OR ({shards} < {wanted} AND {histogram} = {width})",
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
        """Return the number of shards stored in ``meta``, the board's META item.

        Raises ConfigurationError if the histogram width in ``meta`` differs from this object's.
        """
        if meta["_histogram"] != self._width():
            stored_width = meta["_histogram"]["S"] or None
            raise ConfigurationError(
                f"leaderboard {self.name!r} was created with histogram={stored_width},"
                " which cannot be changed",
                hint="use the same histogram= here, or another name for a new board",
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
        """Return the keys of the leaderboard's items, and the units and cost of each operation."""
        place, head, width = self.items.place, self.items.head, self.items.histogram
        shards = self.shards
        change = 3 if width is None else 5
        ranks = (
            "exact; counts all better entries"
            if width is None
            else f"exact; reads a histogram of {width} points and counts within one bucket"
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
                "page",
                f"GetItem and {shards} Query",
                1 + 0.5 * shards,
                0,
                "a later page also costs a rank, to count its first one",
            ),
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
                    "estimated from the histogram alone",
                )
            )
        return PatternExplanation(
            f"leaderboard {self.name}, {shards} shard{'' if shards == 1 else 's'} in {place.table}",
            (
                item_layout(
                    place, f"{head}#MEMBER#<member>", "SCORE", "_score, _since, _shard, _version"
                ),
                item_layout(place, f"{head}#ENTRIES#<shard>", "<score>#<since>#<member>"),
                *(
                    ()
                    if width is None
                    else (item_layout(place, f"{head}#HISTOGRAM#<shard>", "<bucket>", "_n"),)
                ),
            ),
            tuple(costs),
            ()
            if width is not None
            else ("a rank costs about one read unit per 80 better members; see histogram=",),
        )

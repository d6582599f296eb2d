"""Time series: readings spread over partitions, so that none grows too large or too hot.

    readings = Series(db, Reading, by=Reading.sensor_id, at=Reading.at, bucket="day", shards=4)
    readings.add(Reading(sensor_id="s-17", at=now, value=21.5))
    for reading in readings.range("s-17", start, end): ...

The readings of one sensor are divided by time into buckets, and each bucket into shards. Every
shard of every bucket is one partition:

    PK  SERIES#reading#s-17#2026-11-16#2    SK  2026-11-16T10:05:00.000000Z    the reading
    PK  SERIES#reading#s-17                 SK  BUCKET#2026-11-16              4 shards

The entity need not be in the design. Its items are stored in the design's own table, or in a table
for each day, month or year.

Promises:

- Adding a reading again stores it only once, no matter which process adds it or how many shards
  there are: its key follows from its identity.
- The number of shards may grow at any time: by deploying ``shards=8`` in place of 4, or by itself
  when a partition is throttled (``shards="adaptive"``). Older readings stay readable, because
  readers look into as many shards as a bucket ever had. Within a bucket the number never shrinks.
- Roll-ups kept by the writer are exact, even with concurrent writes and lost replies.
- Readings older than ``keep`` are hidden at once. DynamoDB deletes them later.

One case is not covered. A process may take up to a minute to learn that a bucket has grown. Within
that minute it may write a reading *again, with different values*, which another process has already
stored in one of the new shards. Readers then keep seeing the other process's values. With roll-ups
the reading is counted twice; ``rebuild`` corrects that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Generic, Literal, TypeVar

from stator.errors import ConfigurationError, RequestRefused
from stator.model.periods import Period, check_moment, following, period_start
from stator.model.values import Item
from stator.patterns.explanation import PatternExplanation
from stator.patterns.rollups.reads import RollupReader, check_range
from stator.patterns.rollups.rollup import Rollup, RollupRule, Summary
from stator.patterns.rollups.stream_changes import RollupChanges, RollupUpdates
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.directory import MAX_SHARDS, BucketDirectory
from stator.patterns.series.explanation import explain_series
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.placement import SeriesPlacement
from stator.patterns.series.reads import SeriesPages, SeriesRange
from stator.patterns.series.writes import SeriesWriter
from stator.tables.operation import D, OnDb, iteration, operation
from stator.tables.reads.cursors import make_cursor, read_cursor
from stator.tables.reads.pattern_read import Page, check_limit
from stator.tables.work import Call, Pages, Work
from stator.tables.writes.batches import BatchResult, OnError, check_on_error

E = TypeVar("E")
BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)
END: Final = datetime(9999, 12, 1, tzinfo=UTC)


class Series(OnDb[D], Generic[D, E]):
    """A series of readings of one entity.

    ``by`` is the field that names the series of a reading; ``at`` is the field with its time.
    ``shards`` is the minimum number of shards of a bucket, or "adaptive". A hash of the reading's
    identity, or of the field ``shard_by``, chooses the shard. ``keep`` is how long a reading lives
    after its time. ``table_per`` gives each day, month or year its own table. ``rollups`` are
    updated with each write or, with ``rollups_from="stream"``, by a worker (``app.roll_up``) or
    through ``fold``, ``apply`` and ``rebuild``. ``name`` defaults to the name of the entity.
    """

    def __init__(
        self,
        db: D,
        entity: type[E],
        *,
        by: Any,
        at: Any,
        bucket: Period = "day",
        shards: int | Literal["adaptive"] = 1,
        shard_by: Any = None,
        keep: timedelta | None = None,
        table_per: Period | None = None,
        rollups: Sequence[Rollup] = (),
        rollups_from: Literal["write", "stream"] = "write",
        name: str | None = None,
    ) -> None:
        super().__init__(db)
        least = _least_shards(shards)
        if rollups_from not in ("write", "stream"):
            raise ConfigurationError(
                f"rollups_from={rollups_from!r} is not supported",
                hint='use rollups_from="write" or rollups_from="stream"',
            )
        self.layout = SeriesLayout(
            self.context.schema,
            entity,
            name=name,
            by=by,
            at=at,
            bucket=bucket,
            shard_by=shard_by,
            keep=keep,
            table_per=table_per,
        )
        self.name = self.layout.name
        self.rollups_from = rollups_from
        self.directory = BucketDirectory(
            self.context, self.layout, least, adaptive=shards == "adaptive"
        )
        from_stream = rollups_from == "stream"
        self._book = RollupBook(self.context, self.layout, tuple(rollups), from_stream=from_stream)
        book = self._book if rollups and not from_stream else None
        self._placement = SeriesPlacement(self.context, self.layout, self.directory, book)
        self._writer = SeriesWriter(self._placement)
        self._rollups = RollupReader(self.context, self.layout, self.directory, self._book)
        self.changes = RollupChanges(self._rollups)

    @property
    def has_rollups(self) -> bool:
        """Whether the series was declared with ``rollups``."""
        return bool(self._book.rules)

    # -- writes

    @operation
    def add(self, reading: E) -> Work[None]:
        """Write one reading.

        A reading that exists with different values is replaced. With roll-ups kept by the writer,
        ItemExists is raised instead.
        """
        return (yield from self._writer.add(reading))

    @operation
    def add_many(self, readings: Iterable[E], *, on_error: OnError = "raise") -> Work[BatchResult]:
        """Write any number of readings in parallel.

        Every reading is tried. If some could not be written, the call then raises BatchFailed,
        whose ``failures`` names each of them and the reason. With ``on_error="collect"``, the
        result has these ``failures`` instead.
        """
        check_on_error(on_error)
        result = yield from self._writer.add_many(readings)
        return result.settled(on_error)

    @operation
    def replace(self, reading: E) -> Work[None]:
        """Write a reading whether it exists or not, and rebuild the roll-ups it counts in.

        Roll-ups kept from the stream are not rebuilt. After a crash, repeat the call.
        """
        yield from self._check_rebuilding(reading)
        yield from self._writer.put(reading)
        yield from self._rebuild_around(reading)

    @operation
    def remove(self, reading: E) -> Work[None]:
        """Delete a reading and rebuild the roll-ups it counted in.

        Roll-ups kept from the stream are not rebuilt.
        """
        yield from self._check_rebuilding(reading)
        placed = yield from self._placement.place(reading)
        bucket = placed.bucket
        for shard in {self.layout.shard(reading, count) for count in bucket.counts}:
            partition = self.layout.partition(bucket.by, bucket.text, shard)
            key = self.layout.place.key(partition, self.layout.sort_of(placed.item))
            yield Call(
                "DeleteItem",
                {"TableName": self.layout.table(bucket.text), "Key": key},
                f"series {self.name}",
            )
        yield from self._rebuild_around(reading)

    def _check_rebuilding(self, reading: E) -> Work[None]:
        self._placement.check(reading)
        if self._book.from_stream:
            return
        for rule in self._book.rules:
            yield from self._rollups.check(period_start(rule.period_of(reading)))

    def _rebuild_around(self, reading: E) -> Work[None]:
        if self._book.from_stream:
            return
        for rule in self._book.rules:
            start = period_start(rule.period_of(reading))
            by = self.layout.by.of(reading)
            yield from self._rollups.rebuild(rule, by, start, following(rule.period, start))

    # -- reads

    @iteration
    def range(
        self,
        by: Any,
        start: datetime = BEGINNING,
        end: datetime = END,
        *,
        newest_first: bool = True,
        limit: int | None = None,
        consistent: bool = False,
        include_expired: bool = False,
    ) -> Pages[E]:
        """Return the readings at or after ``start`` and before ``end``, the newest first.

        ``newest_first=False`` returns the oldest first.
        """
        return self._pages(
            by,
            start,
            end,
            newest_first=newest_first,
            limit=limit,
            consistent=consistent,
            include_expired=include_expired,
        )

    @operation
    def page(
        self,
        by: Any,
        start: datetime = BEGINNING,
        end: datetime = END,
        *,
        limit: int,
        cursor: str | None = None,
        newest_first: bool = True,
        consistent: bool = False,
        include_expired: bool = False,
    ) -> Work[Page[E]]:
        """Return up to ``limit`` readings of a range, and the cursor of the next page.

        The cursor is None after the last page. A series is paged forward only, in the order of
        ``newest_first``: ``previous`` of the page is always None.
        """
        arguments = {
            "by": self.layout.by.text(by),
            "start": self.layout.at.text(start),
            "end": self.layout.at.text(end),
            "newest": newest_first,
        }
        about, secret = f"series {self.name}", self.context.cursor_key
        after: str | None = None
        if cursor is not None:
            [position] = read_cursor(cursor, about, arguments, secret).positions
            assert isinstance(position, dict)
            after = position["after"]["S"]
        pages = self._pages(
            by,
            start,
            end,
            newest_first=newest_first,
            limit=limit,
            consistent=consistent,
            include_expired=include_expired,
            after=after,
        )
        items = yield from pages.everything()
        if pages.last is None or not pages.may_have_more():
            return Page(items, None)
        return Page(items, make_cursor([{"after": {"S": pages.last}}], about, arguments, secret))

    @operation
    def latest(self, by: Any, n: int = 1, *, consistent: bool = False) -> Work[list[E]]:
        """Return the newest ``n`` readings. They may be of any age, but not expired."""
        return (
            yield from self._pages(by, BEGINNING, END, limit=n, consistent=consistent).everything()
        )

    @operation
    def count(
        self, by: Any, start: datetime = BEGINNING, end: datetime = END, *, consistent: bool = False
    ) -> Work[int]:
        """Return the number of readings in a range.

        This reads them all; ``rollup(...).range`` is cheaper.
        """
        check_range(start, end)
        keys = SeriesRange(
            self.layout.by.text(by), start, end, consistent=consistent, keys_only=True
        )
        pages: SeriesPages[None] = SeriesPages(
            self.context, self.layout, self.directory, keys, lambda item: None
        )
        total = 0
        while not pages.is_done:
            total += len((yield from pages.page()))
        return total

    def _pages(self, by: Any, start: datetime, end: datetime, **more: Any) -> SeriesPages[E]:
        check_range(start, end)
        check_limit(more.get("limit"))
        span = SeriesRange(self.layout.by.text(by), start, end, **more)
        return SeriesPages(self.context, self.layout, self.directory, span, self.layout.decode)

    # -- roll-ups

    def rollup(self, period: Period, *, of: Any) -> SeriesRollup[D]:
        """Return the roll-up of field ``of`` by ``period``, one of the series' ``rollups``."""
        rule = next((rule for rule in self._book.rules if rule.is_of(period, of)), None)
        if rule is None:
            raise ConfigurationError(
                f"series {self.name!r} has no roll-up of {of!r} by {period}",
                hint=f"create the Series with rollups=[Rollup({period!r}, of=...)]",
            )
        return SeriesRollup(self.db, self.layout, self._rollups, rule)

    def fold(self, images: Iterable[tuple[Item | None, Item | None]]) -> RollupUpdates:
        """Return the effect of changes on the roll-ups, without I/O.

        ``images`` are the old and new images of changes from a stream.
        """
        return self.changes.fold(images, self.context.now())

    @operation
    def apply(self, updates: RollupUpdates, *, batch: str) -> Work[None]:
        """Apply the result of ``fold``, only once for each ``batch``.

        Name the batch after the stream's shard and sequence numbers.
        """
        if self.rollups_from == "write":
            raise RequestRefused(
                f"series {self.name!r} updates its roll-ups with each write:"
                " these changes are already counted",
                hint='create the Series with rollups_from="stream" to apply changes',
            )
        yield from self.changes.apply(updates, batch)

    # -- tables

    @operation
    def tables(self) -> Work[list[str]]:
        """Return the names of the existing tables, the earliest first."""
        periods = (yield from self.directory.table_periods()) if self.layout.table_per else []
        return [self.layout.period_table(period) for period in periods]

    @operation
    def drop_before(self, moment: date, *, confirm: bool = False) -> Work[list[str]]:
        """Delete the tables of all periods that end at or before a day or moment; roll-ups stay.

        Returns the names of the deleted tables. Without ``confirm=True``, raises RequestRefused,
        and the error names the tables.
        """
        if self.layout.table_per is None:
            raise RequestRefused(
                f"series {self.name!r} has no tables of its own to drop",
                hint="create the Series with table_per=...",
            )
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        check_moment(moment, "drop_before")
        periods = yield from self.directory.table_periods()
        old = [
            text
            for text in periods
            if following(self.layout.table_per, period_start(text)) <= moment
        ]
        names = [self.layout.period_table(text) for text in old]
        if not confirm:
            raise RequestRefused(
                f"drop_before would delete {len(names)} tables and all their readings:"
                f" {', '.join(names) or 'none'}",
                hint="pass confirm=True to delete them",
            )
        if old:
            yield from self.directory.record_drop(
                following(self.layout.table_per, period_start(old[-1]))
            )
        for text in old:
            yield from self.directory.drop_table(text)
        return names

    def explain(self) -> PatternExplanation:
        """Return the items behind it, and what each operation consumes and costs."""
        with_writes = len(self._book.rules) if self.rollups_from == "write" else 0
        return explain_series(self.layout, self.directory, self._book.rules, with_writes)


class SeriesRollup(OnDb[D]):
    """One roll-up of a series."""

    def __init__(self, db: D, layout: SeriesLayout, reader: RollupReader, rule: RollupRule) -> None:
        super().__init__(db)
        self._layout = layout
        self._reader = reader
        self._rule = rule

    @operation
    def range(self, by: Any, start: datetime, end: datetime) -> Work[list[Summary]]:
        """Return a Summary of each non-empty period that overlaps the range, the earliest first."""
        check_range(start, end)
        return (yield from self._reader.range(self._rule, self._layout.by.text(by), start, end))

    @operation
    def rebuild(self, by: Any, start: datetime, end: datetime) -> Work[int]:
        """Rebuild the periods that overlap the range from the readings.

        Returns the number of roll-up items that changed.
        """
        check_range(start, end)
        return (yield from self._reader.rebuild(self._rule, self._layout.by.text(by), start, end))


def _least_shards(shards: int | Literal["adaptive"]) -> int:
    if shards == "adaptive":
        return 1
    if not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
        raise ConfigurationError(
            f'shards={shards!r} must be a number from 1 to {MAX_SHARDS}, or "adaptive"',
            hint="choose one shard for every 1,000 writes of up to 1 KB per second",
        )
    return shards

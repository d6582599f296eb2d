"""Time series: readings of many things, spread over partitions so that neither time nor traffic makes one too large or too hot.

    readings = Series(db, Reading, by=Reading.sensor_id, at=Reading.at, bucket="day", shards=4)
    readings.add(Reading(sensor_id="s-17", at=now, value=21.5))
    for reading in readings.range("s-17", start, end): ...

The readings of one sensor are cut by time into buckets, and each bucket into shards; every shard of every bucket is one partition:

    PK  SERIES#reading#s-17#2026-11-16#2    SK  2026-11-16T10:05:00.000000Z      the reading
    PK  SERIES#reading#s-17                 SK  BUCKET#2026-11-16                the bucket is there, and has 4 shards

(``series_layout`` has the keys, ``series_directory`` the list of buckets, ``series_writes`` and ``series_reads`` what is done with them, ``rollup``
and the modules beside it the sums.) The entity need not be in the design: its items lie beside the design's own, or in tables of a month or a year.

Promises:

- The same reading, added again, is there once, in whichever process and with however many shards: its place follows from its identity.
- The number of shards may grow at any time, by deploying ``shards=8`` in place of 4 or by itself (``shards="adaptive"``, when a partition is throttled).
  What was written before stays readable; readers look into as many shards as a bucket ever had. It never shrinks within a bucket.
- Roll-ups kept with the write are exact, whoever writes at the same time and whatever answers are lost.
- What is older than ``keep`` is hidden at once, and deleted by DynamoDB when it gets to it.

Not promised: a process learns of a growth within a minute. Should it within that minute write a reading *again, with other values*, that another has put
into one of the new shards, readers go on to see the other's. With roll-ups it would count that reading a second time: ``rebuild`` puts that right.
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
from stator.tables.writes.batches import BatchResult

E = TypeVar("E")
BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)
END: Final = datetime(9999, 12, 1, tzinfo=UTC)


class Series(OnDb[D], Generic[D, E]):
    """``add``, ``add_many``, ``range``, ``page``, ``latest``, ``count``, ``rollup``, ``drop_before``.

    ``by`` is the field that says whose series it is, ``at`` the one with the time. ``shards`` is the least number of shards of a bucket, or
    "adaptive". The shard of a reading follows from a hash of its identity, or of the field ``shard_by``. ``keep`` is how long readings live after
    their time. ``table_per`` gives each day, month or year a table of its own. ``rollups`` are kept with each write, or, with
    ``rollups_from="stream"``, by a worker (``app.roll_up``), or by ``fold``, ``apply`` and ``rebuild``. ``name`` is that of the entity unless another is given.
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
                f"roll-ups are not made from {rollups_from!r}", hint="from the write, or the stream"
            )
        self.layout = SeriesLayout(
            self.context.schema, entity,
            name=name, by=by, at=at, bucket=bucket, shard_by=shard_by, keep=keep, table_per=table_per,
        )  # fmt: skip
        self.name = self.layout.name
        self.rollups_from = rollups_from
        self.directory = BucketDirectory(
            self.context, self.layout, least, adaptive=shards == "adaptive"
        )
        from_stream = rollups_from == "stream"
        self._book = RollupBook(self.context, self.layout, tuple(rollups), from_stream=from_stream)
        counting = self._book if rollups and not from_stream else None
        self._placement = SeriesPlacement(self.context, self.layout, self.directory, counting)
        self._writer = SeriesWriter(self._placement)
        self._rollups = RollupReader(self.context, self.layout, self.directory, self._book)
        self.changes = RollupChanges(self._rollups)

    @property
    def has_rollups(self) -> bool:
        return bool(self._book.rules)

    # -- writes

    @operation
    def add(self, reading: E) -> Work[None]:
        """Write one. With roll-ups, ItemExists if it is there already with other values; without, it takes the other's place."""
        return (yield from self._writer.add(reading))

    @operation
    def add_many(self, readings: Iterable[E]) -> Work[BatchResult]:
        """Write any number, side by side; the result names each that was not written, and why."""
        return (yield from self._writer.add_many(readings))

    @operation
    def replace(self, reading: E) -> Work[None]:
        """Write one whether it is there or not, and rebuild the roll-ups it counts in, unless the stream keeps them. Called again after a crash, it puts them right."""
        yield from self._check_rebuilding(reading)
        yield from self._writer.put(reading)
        yield from self._rebuild_around(reading)

    @operation
    def remove(self, reading: E) -> Work[None]:
        """Delete one, and rebuild the roll-ups it counted in, unless the stream keeps them."""
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
        """What is at or after ``start`` and before ``end``, in the order of time."""
        return self._pages(
            by, start, end,
            newest_first=newest_first, limit=limit, consistent=consistent, include_expired=include_expired,
        )  # fmt: skip

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
        """Up to ``limit`` of a range, and a cursor that leads to the next."""
        asked = {
            "by": self.layout.by.text(by),
            "start": self.layout.at.text(start),
            "end": self.layout.at.text(end),
            "newest": newest_first,
        }
        about, secret = f"series {self.name}", self.context.cursor_key
        after: str | None = None
        if cursor is not None:
            [position], _ = read_cursor(cursor, about, asked, secret)
            assert isinstance(position, dict)
            after = position["after"]["S"]
        pages = self._pages(
            by, start, end,
            newest_first=newest_first, limit=limit, consistent=consistent, include_expired=include_expired, after=after,
        )  # fmt: skip
        items = yield from pages.everything()
        if pages.last is None or not pages.may_have_more():
            return Page(items, None)
        return Page(items, make_cursor([{"after": {"S": pages.last}}], about, asked, secret))

    @operation
    def latest(self, by: Any, n: int = 1, *, consistent: bool = False) -> Work[list[E]]:
        """The newest, however long ago that was."""
        return (
            yield from self._pages(by, BEGINNING, END, limit=n, consistent=consistent).everything()
        )

    @operation
    def count(
        self, by: Any, start: datetime = BEGINNING, end: datetime = END, *, consistent: bool = False
    ) -> Work[int]:
        """How many there are in a range. It reads them all: ``rollup(...).range`` knows it for less."""
        check_range(start, end)
        asked = SeriesRange(
            self.layout.by.text(by), start, end, consistent=consistent, keys_only=True
        )
        pages: SeriesPages[None] = SeriesPages(
            self.context, self.layout, self.directory, asked, lambda item: None
        )
        total = 0
        while not pages.is_done:
            total += len((yield from pages.page()))
        return total

    def _pages(self, by: Any, start: datetime, end: datetime, **more: Any) -> SeriesPages[E]:
        check_range(start, end)
        check_limit(more.get("limit"))
        asked = SeriesRange(self.layout.by.text(by), start, end, **more)
        return SeriesPages(self.context, self.layout, self.directory, asked, self.layout.decode)

    # -- roll-ups

    def rollup(self, period: Period, *, of: Any) -> SeriesRollup[D]:
        """One of the roll-ups the series was made with."""
        rule = next((rule for rule in self._book.rules if rule.is_of(period, of)), None)
        if rule is None:
            raise ConfigurationError(
                f"{self.name} has no roll-up of {of!r} by the {period}",
                hint=f"make the Series with rollups=[Rollup({period!r}, of=...)]",
            )
        return SeriesRollup(self.db, self.layout, self._rollups, rule)

    def fold(self, images: Iterable[tuple[Item | None, Item | None]]) -> RollupUpdates:
        """What changes of the table, as old and new images from its stream, mean for the roll-ups. Pure: nothing is read or written."""
        return self.changes.fold(images, self.context.now())

    @operation
    def apply(self, updates: RollupUpdates, *, batch: str) -> Work[None]:
        """Carry out what ``fold`` gave, once for each ``batch``: name it after the stream's shard and sequence numbers."""
        if self.rollups_from == "write":
            raise RequestRefused(
                f"the roll-ups of {self.name} are kept with each write: these changes are in them already",
                hint='make the Series with rollups_from="stream"',
            )
        yield from self.changes.apply(updates, batch)

    # -- tables

    @operation
    def tables(self) -> Work[list[str]]:
        """The names of the tables there are, the earliest first."""
        periods = (yield from self.directory.table_periods()) if self.layout.table_per else []
        return [self.layout.period_table(period) for period in periods]

    @operation
    def drop_before(self, moment: date, *, confirm: bool = False) -> Work[list[str]]:
        """Delete the tables of all periods that end at or before a day, or a moment; gives their names. Roll-ups stay."""
        if self.layout.table_per is None:
            raise RequestRefused(
                f"{self.name} has no tables of its own to drop",
                hint="make the Series with table_per=...",
            )
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        check_moment(moment, "the moment")
        periods = yield from self.directory.table_periods()
        old = [
            text
            for text in periods
            if following(self.layout.table_per, period_start(text)) <= moment
        ]
        names = [self.layout.period_table(text) for text in old]
        if not confirm:
            raise RequestRefused(
                f"this would delete {len(names)} tables with all that is in them: {', '.join(names) or 'none'}",
                hint="say confirm=True if that is meant",
            )
        if old:
            yield from self.directory.dropping_before(
                following(self.layout.table_per, period_start(old[-1]))
            )
        for text in old:
            yield from self.directory.drop_table(text)
        return names

    def explain(self) -> PatternExplanation:
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
        """A Summary of each period that has a moment in the range and holds something, the earliest first."""
        check_range(start, end)
        return (yield from self._reader.range(self._rule, self._layout.by.text(by), start, end))

    @operation
    def rebuild(self, by: Any, start: datetime, end: datetime) -> Work[int]:
        """Make the periods that have a moment in the range anew from the readings; gives how many items that changed."""
        check_range(start, end)
        return (yield from self._reader.rebuild(self._rule, self._layout.by.text(by), start, end))


def _least_shards(shards: int | Literal["adaptive"]) -> int:
    if shards == "adaptive":
        return 1
    if not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
        raise ConfigurationError(
            f'a bucket has 1 to {MAX_SHARDS} shards, or "adaptive", not {shards!r}',
            hint="each takes 1,000 writes of up to 1 KB a second",
        )
    return shards

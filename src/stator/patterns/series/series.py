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
  when a key gets hot (``shards="adaptive"``). Older readings stay readable, because readers look
  into as many shards as a bucket ever had. Within a bucket the number never shrinks; adaptive
  shards become fewer with the next bucket.
- Roll-ups kept by the writer are exact, even with concurrent writes and lost replies.
- Readings older than ``keep`` are hidden at once. DynamoDB deletes them later.

One case is not covered. A process may take up to a minute to learn that a bucket has grown, or ten
seconds if the bucket is hot. Within that time it may write a reading *again*, which another process
has already stored in one of the new shards. Readers then see it once, with the other process's
values. Roll-ups that are updated with each write count it twice; ``rebuild`` corrects that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Generic, Literal, TypeVar

from stator.errors import ConfigurationError, RequestRefused
from stator.model.heat.limits import PARTITION_UNITS, WRITE
from stator.model.periods import Period, check_moment, following, period_start
from stator.model.values import Item
from stator.patterns.explanation import PatternExplanation
from stator.patterns.rollups.reads import RollupReader, check_range
from stator.patterns.rollups.rollup import Rollup, RollupRule, Summary, shown_field
from stator.patterns.rollups.stream_changes import RollupChanges, RollupUpdates
from stator.patterns.rollups.writes import RollupBook
from stator.patterns.series.buckets import BucketShards
from stator.patterns.series.directory import MAX_SHARDS, MAX_TABLES, BucketDirectory
from stator.patterns.series.explanation import explain_series
from stator.patterns.series.layout import SeriesLayout
from stator.patterns.series.placement import END, SeriesPlacement
from stator.patterns.series.reads import SeriesPages, SeriesRange
from stator.patterns.series.transactions import locations_of
from stator.patterns.series.writes import SeriesWriter
from stator.tables.argument_rules import checks_arguments
from stator.tables.list_arguments import listed
from stator.tables.operation import D, OnDb, iteration, operation
from stator.tables.reads.cursors import make_cursor, read_cursor
from stator.tables.reads.pattern_read import Page, check_limit
from stator.tables.shards.adaptive_shards import Adaptive, AdaptiveShards, adaptive_shards
from stator.tables.shards.contributor_insights import MeasuredKey
from stator.tables.unknown_outcome import several_writes
from stator.tables.work import Call, Pages, Work
from stator.tables.writes.batches import BatchResult, OnError, check_on_error

E = TypeVar("E")
BEGINNING: Final = datetime(1, 1, 1, tzinfo=UTC)


@checks_arguments("Series")
class Series(OnDb[D], Generic[D, E]):
    """A series of readings of one entity.

    ``by`` is the field that names the series of a reading; ``at`` is the field with its time.
    ``shards`` is the minimum number of shards of a bucket, "adaptive", or AdaptiveShards with its
    limits. A hash of the reading's identity, or of the field ``shard_by``, chooses the shard.
    ``keep`` is how long a reading lives after its time. ``table_per`` gives each day, month or year
    its own table. ``rollups`` are updated with each write or, with ``rollups_from="stream"``, by a
    worker (``app.roll_up``) or through ``fold``, ``apply`` and ``rebuild``. ``name`` defaults to
    the name of the entity.
    """

    def __init__(
        self,
        db: D,
        entity: type[E],
        *,
        by: Any,
        at: Any,
        bucket: Period = "day",
        shards: int | Adaptive | AdaptiveShards = 1,
        shard_by: Any = None,
        keep: timedelta | None = None,
        table_per: Period | None = None,
        rollups: Sequence[Rollup] = (),
        rollups_from: Literal["write", "stream"] = "write",
        name: str | None = None,
    ) -> None:
        super().__init__(db)
        adaptive = adaptive_shards(shards, MAX_SHARDS, MAX_TABLES)
        least = _fixed_shards(shards) if adaptive is None else adaptive.least
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
            most_tables=1 if adaptive is None else adaptive.tables,
        )
        self.name = self.layout.name
        self.context.take_name("Series", self.name, self.layout.info.name)
        self.rollups_from = rollups_from
        self.directory = BucketDirectory(self.context, self.layout, least, adaptive=adaptive)
        from_stream = rollups_from == "stream"
        self._book = RollupBook(self.context, self.layout, tuple(rollups), from_stream=from_stream)
        book = self._book if rollups and not from_stream else None
        self._placement = SeriesPlacement(self.context, self.layout, self.directory, book)
        self._writer = SeriesWriter(self._placement, has_rollups=bool(rollups))
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

        If the reading exists with different values, it is replaced. A series that updates roll-ups
        with each write raises ItemExists instead; use ``replace``. If a later version of the class
        wrote the stored reading, raises NewerVersion.
        """
        return (yield from self._writer.add(reading))

    @operation
    def add_many(self, readings: Iterable[E], *, on_error: OnError = "raise") -> Work[BatchResult]:
        """Write any number of readings in parallel.

        A reading that exists with different values is replaced, as in ``add``. Without roll-ups,
        the readings are sent in batches, which cannot have conditions: they also replace readings
        that a later version of the class wrote.

        Every reading is tried. If some readings fail, the call raises BatchFailed at its end, whose
        ``failures`` names each failed reading and the reason. With ``on_error="collect"``, the
        result has these ``failures`` instead.
        """
        check_on_error(on_error)
        several = listed("Series.add_many", "readings", readings, "reading")
        result = yield from self._writer.add_many(several)
        return result.settled(on_error)

    @operation
    @several_writes(
        "the reading may be stored, and its roll-ups are not all rebuilt",
        "call replace() again with the same reading",
    )
    def replace(self, reading: E) -> Work[None]:
        """Write a reading whether it exists or not, and rebuild the roll-ups it counts in.

        Roll-ups that are updated from the stream are not rebuilt here. After a crash, repeat the
        call. Raises NewerVersion if a later version of the class wrote the stored reading.
        """
        yield from self._check_rebuilding(reading)
        yield from self._writer.put(reading)
        yield from self._rebuild_around(reading)

    @operation
    @several_writes(
        "the reading may be deleted, and its roll-ups are not all rebuilt",
        "call remove() again with the same reading",
    )
    def remove(self, reading: E) -> Work[None]:
        """Delete a reading and rebuild the roll-ups it counted in.

        Roll-ups that are updated from the stream are not rebuilt here.
        """
        yield from self._check_rebuilding(reading)
        placed = yield from self._placement.place(reading)
        bucket = placed.bucket
        for location in sorted(locations_of(self.layout, placed)):
            partition = self.layout.partition(bucket.by, bucket.text, location.shard)
            key = self.layout.place.key(partition, self.layout.sort_of(placed.item))
            table = self.layout.table(bucket.text, location.table)
            request = {"TableName": table, "Key": key}
            yield Call("DeleteItem", request, f"series {self.name}")
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
        """Return the readings of one series key from ``start`` to ``end``, the newest first.

        ``start`` is included, ``end`` is not. ``by`` is the series key, such as ``"s-17"``. With
        ``newest_first=False``, the oldest come first. Readings that have expired (``keep``) are
        left out, unless ``include_expired`` is set and DynamoDB has not deleted them yet.
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

        The other arguments are those of ``range``. The cursor is None after the last page. A series
        is paged in one direction only: ``previous`` of the page is always None.
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
        """Return the newest ``n`` readings of one series key, however old they are.

        Expired readings are left out.
        """
        return (
            yield from self._pages(by, BEGINNING, END, limit=n, consistent=consistent).everything()
        )

    @operation
    def count(
        self, by: Any, start: datetime = BEGINNING, end: datetime = END, *, consistent: bool = False
    ) -> Work[int]:
        """Return the number of readings of one series key in a range.

        This reads all of them, so it costs as much as ``range``. A roll-up counts them for less.
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

    @operation
    def shards(
        self, by: Any, start: datetime = BEGINNING, end: datetime = END, *, limit: int = 10
    ) -> Work[list[BucketShards]]:
        """Return how many shards the newest ``limit`` buckets of a series key have, and had."""
        check_range(start, end)
        check_limit(limit)
        listing = self.directory.listing(
            self.layout.by.text(by), start, end, newest_first=True, limit=limit
        )
        found = yield from listing.shards()
        return found[:limit]

    @operation
    def spread(self, keys: Iterable[MeasuredKey]) -> Work[int]:
        """Spread the buckets whose partitions ``keys`` names, and return how many got more shards.

        ``ContributorInsights.hot_keys`` finds such keys on AWS. A bucket gets the shards that the
        measured units need; a throttled partition counts as one at its limit. Keys of other
        patterns are ignored. A fixed number of shards is refused.
        """
        adaptive = self.directory.adaptive
        if adaptive is None:
            raise RequestRefused(
                f"series {self.name!r} has a fixed number of shards",
                hint='create the Series with shards="adaptive"',
            )
        units: dict[tuple[str, str], float] = {}
        for each in listed("Series.spread", "MeasuredKey", keys, "key"):
            if not isinstance(each, MeasuredKey):
                raise RequestRefused(
                    f"Series.spread() takes a list of MeasuredKey, not of {type(each).__name__}",
                    hint="pass what ContributorInsights.hot_keys() returns",
                )
            place = self.layout.bucket_of_partition(each.key)
            if place is not None:
                limit = PARTITION_UNITS[WRITE] if each.throttled else 0.0
                units[place] = units.get(place, 0.0) + max(each.write_units, limit)
        raised = 0
        for (by, bucket), rate in sorted(units.items()):
            raised += yield from self.directory.reserve(by, bucket, rate, "Contributor Insights")
        return raised

    def _pages(self, by: Any, start: datetime, end: datetime, **more: Any) -> SeriesPages[E]:
        check_range(start, end)
        check_limit(more.get("limit"))
        span = SeriesRange(self.layout.by.text(by), start, end, **more)
        return SeriesPages(self.context, self.layout, self.directory, span, self.layout.decode)

    # -- roll-ups

    def rollup(self, period: Period, *, of: Any) -> SeriesRollup[D]:
        """Return a reader of the roll-up that was declared as ``Rollup(period, of=...)``."""
        rule = next((rule for rule in self._book.rules if rule.is_of(period, of)), None)
        if rule is None:
            raise ConfigurationError(
                f"series {self.name!r} has no roll-up of {shown_field(of)} by {period}",
                hint=f"create the Series with rollups=[Rollup({period!r}, of=...)]",
            )
        return SeriesRollup(self.db, self.layout, self._rollups, rule)

    def fold(self, images: Iterable[tuple[Item | None, Item | None]]) -> RollupUpdates:
        """Compute how changes from the stream affect the roll-ups. Performs no I/O.

        ``images`` has the old and the new image of each change. Pass the result to ``apply``.
        """
        pairs = list(listed("Series.fold", "pairs of images", images, "(old, new)"))
        for each in pairs:
            if (
                not isinstance(each, (tuple, list))
                or len(each) != 2
                or not all(image is None or isinstance(image, Mapping) for image in each)
            ):
                raise RequestRefused(
                    f"Series.fold() takes pairs of an old and a new image, not a "
                    f"{type(each).__name__}",
                    hint="an image is an item in DynamoDB JSON, or None: [(None, new)]",
                )
        return self.changes.fold([(old, new) for old, new in pairs], self.context.now())

    @operation
    def apply(self, updates: RollupUpdates, *, batch: str) -> Work[None]:
        """Add the result of ``fold`` to the roll-ups, only once for each name ``batch``.

        Derive the name from the stream's shard and sequence numbers, so that a repeat has the same
        name.
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
        """Return the names of the series' own tables, the earliest period first.

        These are the tables of periods, and further tables of ``AdaptiveShards(tables=...)``.
        """
        tables = yield from self.directory.tables.listed()
        return [self.layout.period_table(table.period, table.number) for table in tables]

    @operation
    def ensure_tables(self) -> Work[list[str]]:
        """Create the series' further tables, and those of roll-ups that have one of their own.

        Roll-ups' tables get their settings. Further tables (``AdaptiveShards(tables=...)``) are on
        demand; with ``table_per``, those of the current period are created. Returns what was done.
        Without this call, a table is created when it is first needed, and writers wait for it.
        """
        done = yield from self._book.ensure_tables()
        return done + (yield from self.directory.tables.ensure())

    @operation
    def drop_before(self, moment: date, *, confirm: bool = False) -> Work[list[str]]:
        """Delete the tables of all periods that end at or before ``moment``. Roll-ups stay.

        Returns the names of the deleted tables. Without ``confirm=True``, nothing is deleted: it
        raises RequestRefused, and the error names the tables.
        """
        if self.layout.table_per is None:
            raise RequestRefused(
                f"series {self.name!r} has no tables of its own to drop",
                hint="create the Series with table_per=...",
            )
        if not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        check_moment(moment, "drop_before")
        periods = yield from self.directory.tables.periods()
        old = [
            text
            for text in periods
            if following(self.layout.table_per, period_start(text)) <= moment
        ]
        tables = yield from self.directory.tables.listed()
        names = [
            self.layout.period_table(each.period, each.number)
            for each in tables
            if each.period in old
        ]
        if not confirm:
            raise RequestRefused(
                f"drop_before would delete {len(names)} tables and all their readings:"
                f" {', '.join(names) or 'none'}",
                hint="pass confirm=True to delete them",
            )
        if old:
            yield from self.directory.tables.record_drop(
                following(self.layout.table_per, period_start(old[-1]))
            )
        for text in old:
            yield from self.directory.drop_table(text)
        return names

    def explain(self) -> PatternExplanation:
        """Return the keys of the series' items, and the units and cost of each operation."""
        with_writes = len(self._book.rules) if self.rollups_from == "write" else 0
        return explain_series(self.layout, self.directory, self._book.rules, with_writes)


@checks_arguments("SeriesRollup")
class SeriesRollup(OnDb[D]):
    """Reads and rebuilds one roll-up of a series; ``Series.rollup`` returns it."""

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


def _fixed_shards(shards: object) -> int:
    if not isinstance(shards, int) or not 1 <= shards <= MAX_SHARDS:
        raise ConfigurationError(
            f'shards={shards!r} must be a number from 1 to {MAX_SHARDS}, or "adaptive"',
            hint="choose one shard for every 1,000 writes of up to 1 KB per second",
        )
    return shards

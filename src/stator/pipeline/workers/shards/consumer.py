"""The consumer of one shard: reads it under its lease, from the checkpoint to the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from stator.backoff import Backoff, BackoffTimer
from stator.errors import (
    ExpiredIterator,
    LimitExceeded,
    ResourceNotFound,
    SlowDown,
    TrimmedDataAccess,
)
from stator.pipeline.workers.handlers.change import Record, read_record
from stator.pipeline.workers.shards.iterators import iterator_at
from stator.pipeline.workers.shards.lease_holder import LeaseHolder
from stator.pipeline.workers.shards.leases import OLDEST, is_bookkeeping
from stator.tables.work import Call, Pause, Work

log = logging.getLogger("stator.workers")

_LABEL = "stream"
# GetRecords is throttled by other readers of the shard, mostly for less than a second.
_THROTTLED = Backoff(base_seconds=0.2, cap_seconds=5.0)
_SHORTEST_PAUSE_SECONDS = 0.02
_ATTENTION_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of records from a shard, without the records that the consumer skips.

    ``is_tip`` says that the shard had no further records when the page was read. It is False if
    GetRecords was throttled. ``following`` is the next iterator, or None at the end of the shard.
    """

    records: list[Record]
    following: str | None
    is_tip: bool


class Consumer(LeaseHolder):
    _skip_before = 0.0
    _is_gone = False
    _attend_at = 0.0
    # The last record that was read, whether a skipped record was more than our own bookkeeping,
    # and when the checkpoint was last written.
    _passed = ""
    _passed_others = False
    _moved_at = 0.0
    _throttled: BackoffTimer

    def work(self) -> Work[None]:
        self._throttled = self.context.timer(_THROTTLED)
        iterator = yield from self._iterator()
        since = 0.0
        idle = self.context.timer(
            Backoff(_SHORTEST_PAUSE_SECONDS, self.tools.options.idle_seconds, jitter=0.0)
        )
        buffer: list[Record] = []
        while iterator is not None and not self.is_to_stop:
            self.held()
            asked_at = self.context.now()
            if self.delivery.needs_attention and asked_at >= self._attend_at:
                yield from self.delivery.attend(self.lease.position)
                self._attend_at = asked_at + _ATTENTION_SECONDS
            page = yield from self._page(iterator)
            if page is None:
                buffer = []
                self._passed, self._passed_others = "", False
                iterator = yield from self._iterator()
                continue
            since = since if buffer else self.context.now()
            buffer += page.records
            iterator = page.following
            if buffer and self._is_due(buffer, since, iterator):
                yield from self._handle(buffer)
                buffer = []
            if not buffer and self._is_far_ahead(page):
                yield from self._pass()
            if not page.is_tip:
                idle.reset()
            elif iterator is not None:
                if buffer:
                    self.set_lag(self._age(buffer[0]), is_handling=True)
                else:
                    self.set_lag(0.0)
                    self.caught_up_at = asked_at
                yield Pause(idle.next_delay())
        yield from self._leave(is_end=iterator is None)

    def _is_due(self, buffer: Sequence[Record], since: float, following: str | None) -> bool:
        options = self.tools.options
        is_old = self.context.now() - since >= options.window_seconds
        return len(buffer) >= options.batch_records or is_old or following is None

    def _page(self, iterator: str) -> Work[_Page | None]:
        """Return the next page of records, or None if reading must restart from the checkpoint.

        After throttling, waits and returns an empty page.
        """
        limit = min(self.tools.options.batch_records, 1000)
        try:
            page = yield Call("GetRecords", {"ShardIterator": iterator, "Limit": limit}, _LABEL)
        except ExpiredIterator:
            return None
        except TrimmedDataAccess:
            yield from self._lost_some()
            return None
        except (SlowDown, LimitExceeded) as error:
            log.debug("%s: %s", self.lease.name, error)
            self.set_lag(None)
            yield Pause(self._throttled.next_delay())
            return _Page([], iterator, is_tip=False)
        self._throttled.reset()
        lease = self.lease
        records = [read_record(raw, lease.table, lease.shard) for raw in page["Records"]]
        kept = self._kept([record for record in records if record.at >= self._skip_before])
        self.progress.records += len(kept)
        if records:
            self._passed = records[-1].sequence
        return _Page(kept, page.get("NextShardIterator"), is_tip=not records)

    def _kept(self, records: list[Record]) -> list[Record]:
        """Return the records to handle.

        These are all records, except in the stream of the design's own table. Of that stream,
        records that no subscriber wants are skipped: each checkpoint is a change to that table, and
        handling it would lead to another checkpoint without end.
        """
        place = self.context.schema.place
        if self.lease.table != place.table:
            return records
        kept = [record for record in records if self.delivery.wants(record)]
        if len(kept) < len(records):
            others = (record for record in records if not is_bookkeeping(record.keys, place))
            self._passed_others = self._passed_others or any(True for _ in others)
        return kept

    def _is_far_ahead(self, page: _Page) -> bool:
        """Whether records were skipped since the last checkpoint, and a new one should be written.

        At the tip of the shard the checkpoint is written at once, so that the lag shows as zero.
        But if all skipped records are about the workers' own items, it is written only three times
        in ``lease_seconds``.
        """
        if not self._passed:
            return False
        is_due = self.context.now() - self._moved_at >= self.tools.options.lease_seconds / 3
        return is_due or (page.is_tip and self._passed_others)

    def _handle(self, records: list[Record]) -> Work[None]:
        self.set_lag(self._age(records[0]), is_handling=True)
        handled = yield from self.delivery.run(records)
        self.progress.add_batch(handled)
        # The next change is no older than the last one of this batch.
        self.set_lag(self._age(records[-1]))
        yield from self._pass(self._age(records[-1]))

    def _pass(self, lag_seconds: float = 0.0) -> Work[None]:
        """Write a checkpoint after the last record read; all have been handled or skipped."""
        yield from self.move(self._passed, lag_seconds)
        self._passed, self._passed_others = "", False
        self._moved_at = self.context.now()

    def _leave(self, *, is_end: bool) -> Work[None]:
        if is_end:
            yield from self.tools.leases.end(self.held(), lost=self._is_gone)
        else:
            yield from self.give()

    def _age(self, record: Record) -> float:
        return max(0.0, self.context.now() - record.at)

    # -- where to read

    def _iterator(self) -> Work[str | None]:
        """Return an iterator at the checkpoint, or None if the shard is gone from the stream.

        If the stream has trimmed the next records, log it, and move to the oldest record.
        """
        lease = self.lease
        try:
            found = yield from iterator_at(lease.stream, lease.shard, lease.position, _LABEL)
        except TrimmedDataAccess:
            yield from self._lost_some()
            return (yield from self._iterator())
        except ResourceNotFound:
            self._lost_all()
            return None
        self._skip_before = found.skip_before
        return found.text

    def _lost_some(self) -> Work[None]:
        self.progress.lost += 1
        log.error(
            "%s: changes after %s were trimmed before they were read",
            self.lease.name,
            self.lease.position,
        )
        yield from self.move(OLDEST)

    def _lost_all(self) -> None:
        self._is_gone = True
        self.progress.lost += 1
        log.error(
            "%s is gone from the stream; it was read up to %s", self.lease.name, self.lease.position
        )

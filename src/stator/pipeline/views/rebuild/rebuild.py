"""Rebuilds a view from its table, exactly, while the view is read and updated.

A new *generation* is built while the old one is in use. The difficulty: a scan takes time, and
items change during it. An item may be read before its change or after, and the change must count
once either way.

1. The head records that generation 2 is being built. Every worker, when it next reads the head
   (``generations``), stores the position of its shard, the *start*, and from then on writes its
   changes to both generations. When every shard has a start, the starts together are a moment:
   generation 2 gets the changes after it.
2. The new generation lacks the *base*: what each item contributed to the view at that moment. The
   table is scanned, and from time to time the stream is read from the starts to its tip. A key with
   a change since its start is *dirty*: it counts with the image before its first change, no matter
   what the scan sees. A key that is not dirty when its page is counted has not changed since the
   start: it counts as it was scanned. At the end, dirty keys that were not counted are added with
   those first images. (In memory, each counted key takes eight bytes, and each dirty key keeps its
   contribution.) The stream may show a change a little late. A page is therefore counted only once
   the stream has been read ``settle_seconds`` after the page (``tally`` counts).
3. The base is written as partials of a shard named BUILD, and the head is switched. Readers follow
   the head, workers stop writing to generation 1, and generation 1 is deleted.

Rank rows need no base. The scan writes a source's rank rows and state only if the source has no
state yet. The state of a change always replaces the state of a scan. So the last change wins, no
matter whether the scan or the change is written first.

What fails: a rebuild that ends with an error removes its mark from the head, so workers write to
one generation again and the next rebuild can start at once. A builder that dies leaves its mark and
generation 2 unfinished, and workers write to it until another builder starts generation 3. That
builder may start when ``until`` is over, or at once if the head names a process of its own machine
that no longer runs. ``builder``, a random token, keeps two builders apart: each of their writes
names it. Because the workers count the changes, and not the builder, nothing has to be handed over.
``numbered`` in the head is the highest number that a generation ever had; no number is used twice.

Several views can be built together (``rebuild_together``): each as above, but a table that several
views share is scanned only once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, Final, Literal

from stator.coordination.lease import seconds
from stator.coordination.position import sequence_text
from stator.coordination.retry import retry, retry_call
from stator.errors import ConditionFailed, LeaseLost, StatorError, StreamError
from stator.model.seconds import check_seconds
from stator.model.values import Item
from stator.model.wide_numbers import wide_attributes
from stator.pipeline.views.batch_writes import write_all
from stator.pipeline.views.layout import LABEL, ViewGroup
from stator.pipeline.views.metrics import Number
from stator.pipeline.views.ranks import RankTarget
from stator.pipeline.views.rebuild.builder_process import has_ended, shown, this_process
from stator.pipeline.views.rebuild.retirement import retire
from stator.pipeline.views.rebuild.stream_tail import StreamTail, uncovered
from stator.pipeline.views.rebuild.tally import BaseTally, digests
from stator.pipeline.views.updater import MaintainedView
from stator.pipeline.workers.handlers.change import Record, key_mark, key_text
from stator.pipeline.workers.handlers.parking import Parking
from stator.pipeline.workers.shards.iterators import list_shards
from stator.pipeline.workers.shards.leases import LeaseTable
from stator.pipeline.workers.shards.lineage import StreamInfo
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.expressions import Expressions

log = logging.getLogger("stator.views")

BUILD: Final = "BUILD"
_HOLD_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.5
# The time between reads of the stream: each costs a request for every shard, and pages can wait.
_DRAIN_SECONDS: Final = 0.25
_WRITTEN_TOGETHER: Final = 500
# The attributes of the head that a rebuild holds.
_MARK: Final = ("building", "until", "builder", "process")


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """The times of a rebuild, in seconds, and the number of items in a page of its scan.

    ``settle_seconds`` is how late a stream may show a change. ``wait_seconds`` is how long the
    rebuild waits for workers to write to the new generation. The old generation is deleted
    ``grace_seconds`` after the switch to the new one, when no worker writes to it any more.
    """

    settle_seconds: float = 2.0
    wait_seconds: float = 60.0
    grace_seconds: float = 15.0
    page_items: int = 1000

    def __post_init__(self) -> None:
        check_seconds(
            "RebuildOptions",
            or_zero=True,
            settle_seconds=self.settle_seconds,
            wait_seconds=self.wait_seconds,
            grace_seconds=self.grace_seconds,
        )


RebuildPhase = Literal["starting", "reading", "settling", "switched", "done"]
"""What a rebuild does or waits for.

``starting`` waits until workers write to the new generation as well; ``reading`` scans the table;
``settling`` waits for late changes of the stream; ``switched`` waits until no worker writes to the
old generation, and then deletes it.
"""


@dataclass(slots=True)
class RebuildReport:
    """The result of a rebuild, or its state so far.

    ``generation`` is the number of the new generation, and ``groups`` how many groups were written.
    ``scanned`` counts every item of the table, also those of other entities. ``changed`` counts the
    items that changed meanwhile.

    ``unreadable`` counts two kinds of items. Items that do not decode are left out entirely. Items
    whose rank rows are refused as too large have no rank rows.
    """

    generation: int = 0
    scanned: int = 0
    changed: int = 0
    groups: int = 0
    unreadable: int = 0
    phase: RebuildPhase = "starting"


# Called when a phase begins, and from time to time, from the thread that counts.
RebuildProgress = Callable[[RebuildReport], None]


class Rebuild:
    def __init__(
        self,
        view: MaintainedView,
        options: RebuildOptions | None = None,
        progress: RebuildProgress | None = None,
        process: str | None = None,
        *,
        await_worker: bool = False,
    ) -> None:
        """``process`` names the building process, for others that find its mark.

        With ``await_worker``, the rebuild waits up to ``wait_seconds`` for a worker that has just
        been started to write the head of a new view, instead of failing at once.
        """
        self._view = view
        self._process = this_process() if process is None else process
        self._await_worker = await_worker
        self.context = view.context
        self.options = options or RebuildOptions()
        self.progress = progress or (lambda rebuilt: None)
        self.table = view.source.of.table.name
        self.key_names = view.source.of.key_names
        self.rebuilt = RebuildReport()
        self._until = 0.0
        self._app, self._old = "", 0
        self._tail: StreamTail | None = None
        self._token = view.context.token()
        self._tally = BaseTally(view.layout.name, view.source)
        self._drained_at = float("-inf")

    def run(self) -> Work[RebuildReport]:
        yield from rebuild_together([self])
        return self.rebuilt

    def start(self, builds: Sequence[Rebuild]) -> Work[None]:
        """Wait until workers write changes to the new generation as well, then follow the stream.

        Call ``take_head`` first. ``builds`` are all rebuilds that run together; their leases are
        renewed during the wait. Raises StreamError if a shard has no worker, or if changes of the
        view are parked.
        """
        arn, starts = yield from self._started(builds)
        yield from self._refuse_parked()
        self._tail = StreamTail(self.context, self.table, arn, starts, self.check)

    def finish(self, builds: Sequence[Rebuild]) -> Work[None]:
        """Write the base of the new generation, then switch the head so that readers use it.

        Call it after the scan, when all of its pages are counted. ``builds`` are the rebuilds that
        are not finished yet; their leases are renewed meanwhile.
        """
        self._tally.count_dirty()
        yield from self._write_base(builds)
        yield from self._switch()

    def retire(self) -> Work[None]:
        """Delete the generation that was in use before, and any that a dead builder left."""
        for generation in range(1, self.rebuilt.generation):
            if generation >= self._old:
                yield from retire(self.context, self._view.layout, generation)

    # -- the head

    def take_head(self) -> Work[None]:
        head = yield from self._view.heads.load()
        give_up = self.context.now() + self.options.wait_seconds
        while head is None and self._await_worker and self.context.now() < give_up:
            yield Pause(_LOOK_SECONDS)
            head = yield from self._view.heads.load()
        if head is None:
            raise StreamError(
                f"no worker has started the view {self._view.layout.name} yet",
                hint="run its app with `stator work`, then rebuild the view",
            )
        group = yield from LeaseTable(self.context, head.app, 1.0, 0.0).load()
        if group.runner == "lambda":
            raise StreamError(
                f"the view {self._view.layout.name} is kept by AWS Lambda and cannot be rebuilt:"
                " a rebuild needs workers, which know how far each shard was read",
                hint="declare the view under another name in an app for `stator work`, and rebuild"
                " that one",
            )
        now = self.context.now()
        generation = max(head.numbered, head.building or 0) + 1
        written = Expressions()
        building, until = written.name("building"), written.name("until")
        number = written.value({"N": str(generation)})
        as_seen = f"attribute_not_exists({building})"
        if head.building is not None:
            other = written.value({"N": str(head.building)})
            as_seen = f"{building} = {other}"
            if not has_ended(head.process):
                as_seen += f" AND {until} < {written.value(seconds(now))}"
        end = written.value(seconds(now + _HOLD_SECONDS))
        changes = f"SET {building} = {number}, {until} = {end}"
        changes += f", {written.name('numbered')} = {number}"
        changes += f", {written.name('builder')} = {written.value({'S': self._token})}"
        changes += f", {written.name('process')} = {written.value({'S': self._process})}"
        self._until = now + _HOLD_SECONDS
        try:
            yield from retry(
                self.context, None, partial(self._change_head, written, changes, as_seen)
            )
        except ConditionFailed as refused:
            # If the token is ours, the first attempt succeeded and its answer was lost.
            if (refused.item or {}).get("builder") != {"S": self._token}:
                raise self._refusal(refused.item or {}, now) from None
        self.rebuilt.generation = generation
        self._app, self._old = head.app, head.generation
        self.enter("starting")

    def _refusal(self, head: Item, now: float) -> StreamError:
        process = head["process"]["S"] if "process" in head else ""
        end = float(head["until"]["N"]) if "until" in head else now
        return StreamError(
            f"another process is rebuilding the view {self._view.layout.name}"
            + (f": {shown(process)}" if process else ""),
            hint=f"wait for it; if it has died, try again in {max(1, ceil(end - now))} s",
        )

    def release(self) -> Work[None]:
        """Remove this rebuild's mark from the head, unless the readers were already switched.

        Call it when the rebuild failed. Does nothing if another builder has taken over. An error of
        the database is only logged, because the mark expires by itself.
        """
        if not self._until:
            return  # it never tried to take the head
        written = Expressions()
        changes = f"REMOVE {', '.join(map(written.name, _MARK))}"
        mine = f"{written.name('builder')} = {written.value({'S': self._token})}"
        try:
            yield from self._change_head(written, changes, mine)
        except ConditionFailed:
            return
        except StatorError as error:
            log.warning(
                "%s: the mark of the failed rebuild could not be removed (%s); it ends in %.0f s",
                self._view.layout.name,
                error,
                _HOLD_SECONDS,
            )

    def enter(self, phase: RebuildPhase) -> None:
        self.rebuilt.phase = phase
        self.progress(self.rebuilt)

    def _change_head(self, written: Expressions, changes: str, condition: str) -> Work[None]:
        request = {
            "TableName": self._view.layout.place.table,
            "Key": self._view.layout.head(),
            "UpdateExpression": changes,
            "ConditionExpression": condition,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        yield Call("UpdateItem", written.into(request), LABEL)

    def check(self) -> None:
        if self.context.now() >= self._until:
            raise LeaseLost(
                f"the rebuild of {self._view.layout.name} paused too long between two steps, and"
                " its lease on the view has ended",
                hint="start the rebuild again",
            )

    def hold(self) -> Work[None]:
        """Renew this rebuild's lease on the head, if half of the lease is over."""
        now = self.context.now()
        if now < self._until - _HOLD_SECONDS / 2:
            return
        self.check()
        written = Expressions()
        end = written.value(seconds(now + _HOLD_SECONDS))
        changes = f"SET {written.name('until')} = {end}"
        yield from self._as_builder(written, changes)
        self._until = now + _HOLD_SECONDS

    def _switch(self) -> Work[None]:
        written = Expressions()
        number = written.value({"N": str(self.rebuilt.generation)})
        changes = f"SET {written.name('generation')} = {number} "
        changes += f"REMOVE {', '.join(map(written.name, _MARK))}"
        try:
            yield from self._as_builder(written, changes)
        except LeaseLost:
            head = yield from self._view.heads.load()
            if head is None or head.generation != self.rebuilt.generation:
                raise  # otherwise the switch succeeded, and its answer was lost

    def _as_builder(self, written: Expressions, changes: str) -> Work[None]:
        mine = f"{written.name('builder')} = {written.value({'S': self._token})}"
        try:
            yield from retry(
                self.context, self.check, partial(self._change_head, written, changes, mine)
            )
        except ConditionFailed:
            name = self._view.layout.name
            raise LeaseLost(
                f"another process took over the rebuild of {name}",
                hint="nothing to do: that process goes on with it",
            ) from None

    # -- the starts

    def _started(self, builds: Sequence[Rebuild]) -> Work[tuple[str, dict[str, str]]]:
        """Wait until every shard has a start, the position from which the new generation counts.

        Returns the stream's ARN and the starts by shard. Raises StreamError after ``wait_seconds``.
        """
        leases = LeaseTable(self.context, self._app, 1.0, 0.0)
        give_up = self.context.now() + self.options.wait_seconds
        while True:
            described = yield from retry(self.context, self.check, partial(_described, self.table))
            arn = described["LatestStreamArn"]
            shards = yield from retry(
                self.context, self.check, partial(list_shards, arn, "view rebuild")
            )
            group = yield from retry(self.context, self.check, leases.load)
            starts = yield from retry(
                self.context, self.check, partial(self._view.heads.starts, self.rebuilt.generation)
            )
            ended = frozenset(
                lease.shard
                for lease in group.leases.values()
                if lease.table == self.table and lease.is_ended
            )
            beginning = group.beginnings.get(self.table)
            skipped = frozenset() if beginning is None else beginning.skipped
            missing = uncovered(StreamInfo(self.table, arn, shards), starts, ended, skipped)
            if beginning is not None and beginning.stream == arn and not missing:
                return arn, starts
            if self.context.now() > give_up:
                raise StreamError(
                    f"{len(missing)} shards of {self.table} have no worker",
                    hint=f"run the app {self._app} with `stator work`, or rebuild with --work",
                )
            yield Pause(_LOOK_SECONDS)
            yield from _hold(builds)

    def _refuse_parked(self) -> Work[None]:
        """Raise StreamError if changes that the view could not count are parked.

        The scan counts an item as it is after such a change. A retry of the change after the
        rebuild would count it a second time.
        """
        parking = Parking(self.context, self._app, LeaseTable(self.context, self._app, 1.0, 0.0))
        parked = yield from retry(self.context, self.check, parking.keys)
        mine = [each for each in parked if each.handler == self._view.layout.name]
        if mine:
            raise StreamError(
                f"{len(mine)} items that {self._view.layout.name} could not count are parked",
                hint="run `stator parked retry` or `stator parked drop` first",
            )

    # -- the base

    @property
    def has_rows(self) -> bool:
        return bool(self._view.source.orders)

    def take(self, items: list[Item], keys: list[int]) -> Work[None]:
        """Take a page of the scan: write its rank rows now, and keep it until ``count`` adds it up.

        ``keys`` has the digest of each item's key (``tally.digests``).
        """
        marks = []
        if self.has_rows:
            texts = (key_text({name: item[name] for name in self.key_names}) for item in items)
            marks = [key_mark(self.table, text) for text in texts]
        taken = self._tally.take(items, keys, marks, self.context.now())
        self.rebuilt.scanned += len(items)
        if marks:
            rows = [
                RankTarget(mark, "", each)
                for mark, each in zip(marks, taken)
                if each is not None and each.rows
            ]
            for refused, error in (
                yield from self._view.ranks.place(self.rebuilt.generation, rows, self.check)
            ):
                log.warning(
                    "%s: rank rows of %s are left out: %s",
                    self._view.layout.name,
                    refused.mark,
                    error,
                )
                self._tally.unreadable += 1
        self.rebuilt.unreadable = self._tally.unreadable

    def count(self, *, all_of_them: bool = False) -> Work[None]:
        """Read the stream, then count the pages that were scanned at least ``settle_seconds`` ago.

        Does nothing if the stream was read moments ago. With ``all_of_them``, always reads the
        stream, and counts every page.
        """
        assert self._tail is not None
        now = self.context.now()
        if not all_of_them and abs(now - self._drained_at) < _DRAIN_SECONDS:
            return
        self._drained_at = now
        yield from self._tail.drain(self._see)
        self._tally.count(float("inf") if all_of_them else now - self.options.settle_seconds)
        self.rebuilt.unreadable, self.rebuilt.changed = self._tally.unreadable, self._tally.changed

    def _see(self, record: Record) -> None:
        mark = key_mark(record.table, record.key) if self.has_rows else ""
        [key] = digests([record.keys], self.key_names)
        self._tally.see(key, record.old, mark, self.context.now())

    def _write_base(self, builds: Sequence[Rebuild]) -> Work[None]:
        if not self._view.has_sums:
            return
        generation, table = self.rebuilt.generation, self._view.layout.place.table
        groups = [(group, sums) for group, sums in self._tally.sums.items() if any(sums.values())]
        self.rebuilt.groups = len(groups)
        keys = {group.by for group, _ in groups}
        items = [self._view.layout.group(generation, by) for by in sorted(keys)]
        items += [self._partial(group, sums) for group, sums in groups]
        for at in range(0, len(items), _WRITTEN_TOGETHER):
            requests = [
                {"PutRequest": {"Item": item}} for item in items[at : at + _WRITTEN_TOGETHER]
            ]
            yield from write_all(self.context, table, requests, self.check)
            yield from _hold(builds)

    def _partial(self, group: ViewGroup, sums: dict[str, Number]) -> Item:
        item = self._view.layout.partial(self.rebuilt.generation, group, BUILD)
        for name, amount in sums.items():
            if amount:
                item |= wide_attributes(name, amount)
        item["applied"] = {"S": sequence_text("0")}
        end = self._view.source.end(group.bucket)
        if end is not None:
            item[self._view.layout.place.ttl] = {"N": str(int(end))}
        return item


def rebuild_together(builds: Sequence[Rebuild]) -> Work[list[RebuildReport]]:
    """Rebuild several views. A table that several views share is scanned only once.

    If the rebuild fails, it removes its marks from the heads of the views.
    """
    if not builds:
        return []
    try:
        yield from _rebuild(builds)
    except Exception:
        yield from release_all(builds)
        raise
    return [build.rebuilt for build in builds]


def release_all(builds: Sequence[Rebuild]) -> Work[None]:
    """Remove the marks of rebuilds that were interrupted."""
    for build in builds:
        yield from build.release()


def _rebuild(builds: Sequence[Rebuild]) -> Work[None]:
    tables: dict[str, list[Rebuild]] = {}
    for build in builds:
        yield from build.take_head()
        tables.setdefault(build.table, []).append(build)
    for build in builds:
        yield from build.start(builds)
    for those in tables.values():
        yield from _scan(those, builds)
    for at, build in enumerate(builds):
        yield from build.finish(builds[at:])
    for build in builds:
        build.enter("switched")
    yield Pause(max(build.options.grace_seconds for build in builds))
    for build in builds:
        yield from build.retire()
        build.enter("done")


def _scan(those: Sequence[Rebuild], builds: Sequence[Rebuild]) -> Work[None]:
    """Scan one table, and count every item in each rebuild of this table (``those``).

    The leases of all rebuilds in ``builds`` are renewed meanwhile.
    """
    for build in those:
        build.enter("reading")
    first = those[0]
    request: dict[str, Any] = {
        "TableName": first.table,
        "ConsistentRead": True,
        "Limit": first.options.page_items,
    }
    page = yield from _page(first, request)
    while True:
        items = page["Items"]
        yield from _hold(builds)
        if "LastEvaluatedKey" not in page:
            yield from _take(those, items)
            break
        following = _page(first, request | {"ExclusiveStartKey": page["LastEvaluatedKey"]})
        if any(build.has_rows for build in those):  # writing rows makes parallel calls of its own
            yield from _take(those, items)
            page = yield from following
        else:
            page, _ = gathered((yield Gather([following, _take(those, items)])))
    for build in those:
        build.enter("settling")
    yield Pause(max(build.options.settle_seconds for build in those))
    for build in those:
        yield from build.count(all_of_them=True)


def _page(build: Rebuild, request: dict[str, Any]) -> Work[dict[str, Any]]:
    return retry_call(build.context, build.check, Call("Scan", request, "view rebuild"))


def _take(those: Sequence[Rebuild], items: list[Item]) -> Work[None]:
    keys = digests(items, those[0].key_names)
    for build in those:
        yield from build.take(items, keys)
        yield from build.count()
        build.progress(build.rebuilt)


def _hold(builds: Sequence[Rebuild]) -> Work[None]:
    for build in builds:
        yield from build.hold()


def _described(table: str) -> Work[dict[str, Any]]:
    reply = yield Call("DescribeTable", {"TableName": table}, "view rebuild")
    found: dict[str, Any] = reply["Table"]
    return found

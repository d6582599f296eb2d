"""``copy`` copies the items of one table into another, at any address.

A parallel Scan feeds the writers of a load; reading and writing each have a rate of their own.
Every segment of the Scan is a lane with a position of its own: the key after which it continues.
The first pages of each run are small, and the oldest rows are preferred, so the positions move soon
after the start. Therefore even a copy that is killed again and again makes progress.

The hashes of the items are summed as they are written (``checksum``). At the end the target is
scanned and must have the same sum. The journal also holds the progress of that Scan, under
``verifying``. If the target had items before the copy, the sums cannot be compared, and the report
says so.
"""

from __future__ import annotations

import importlib
import queue
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson

from stator.clock import Clock, SystemClock
from stator.design.plan.html_table import html_report
from stator.errors import ConfigurationError, DataDiffers
from stator.model.values import Item
from stator.pipeline.bulk.checksum import Digest, digest, hash_of
from stator.pipeline.bulk.export.paged_source import TableScan
from stator.pipeline.bulk.job.daily_hours import Gate
from stator.pipeline.bulk.job.governor import Governor, Pace
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.pending_rows import Block, PendingRow, RowCounts, per_second
from stator.pipeline.bulk.job.write_job import WriteJob, WriteSettings, key_of
from stator.pipeline.bulk.load.attribute_types import table_key
from stator.pipeline.bulk.retried_call import retried_call
from stator.pipeline.bulk.table_creation import ensure_table, like_creation
from stator.pipeline.bulk.targets import BulkTarget, described

Transform = Callable[[Item], Item | None]
_SEGMENTS = 8
_FIRST_PAGE_ITEMS = 16
_CHECKPOINT_SECONDS = 0.2
"""The time between two checkpoints while the target is scanned."""


@dataclass(frozen=True, slots=True)
class CopyOptions:
    """Options of a copy. Rates are in capacity units a second.

    ``create`` creates a missing target with the source's keys and indexes. ``between`` is the time
    of day in which the copy may work, such as 01:00-05:00.
    """

    read_rate: float | None = None
    write_rate: float | None = None
    segments: int = _SEGMENTS
    readers: int = 4
    writers: int | None = None
    window_rows: int = 10_000
    window_bytes: int = 48 << 20
    create: bool = False
    verify: bool = True
    journal: str | Path | None = None
    resume: bool = False
    restart: bool = False
    dead_letters: str | Path | None = None
    max_errors: int | None = None
    between: str | None = None


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far a copy is: the counts of items, and the rates of reading and writing.

    ``share`` is how much of the source has been read, from 0 to 1. ``waits_until`` is when the
    copy continues, in seconds since the epoch, if it is outside of its daily hours.
    ``written_before`` items were written by earlier runs of the copy, and ``seconds`` is the time
    of this run.
    """

    counts: RowCounts
    reading: Pace
    writing: Pace
    share: float
    seconds: float
    waits_until: float | None = None
    written_before: int = 0

    @property
    def per_second(self) -> float:
        """How many items this run has written in a second, on average."""
        return per_second(self.counts.written, self.written_before, self.seconds)


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of a copy.

    ``verified`` is True if the target has the same checksum as the copied items; a difference
    raises DataDiffers. ``verified`` is False if the target had items before the copy, because the
    checksums cannot be compared then. ``verified`` is None if the options turn verification off.
    A copy that was resumed counts the items of all of its runs; ``written_before`` of them are from
    earlier runs, and ``seconds`` is the time of the last run.
    """

    read: int
    written: int
    dropped: int
    failed: int
    checksum: str
    verified: bool | None
    write_units: float
    seconds: float
    dead_letters: str | None = None
    written_before: int = 0

    @property
    def per_second(self) -> float:
        """How many items the last run wrote in a second, on average."""
        return per_second(self.written, self.written_before, self.seconds)

    def _repr_html_(self) -> str:
        """Return the report as a table for a notebook."""
        return html_report("Copy", self.to_data())

    @property
    def ok(self) -> bool:
        """Whether every item was written. The field ``verified`` says whether the tables agree."""
        return not self.failed

    def to_data(self) -> dict[str, Any]:
        """Return the report as the dictionary that ``stator copy --json`` prints."""
        return asdict(self)


def find_transform(name: str) -> Transform:
    """Import ``module:function`` and return the function.

    The current folder is added to the import path. Raises ConfigurationError if the function
    cannot be imported or called.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigurationError(
            f"--transform {name} does not have the form module:function",
            hint="write --transform module:function",
        )
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _import_failed(module, error.name or module) from None
    found = getattr(loaded, function, None)
    if found is None:
        raise ConfigurationError(
            f"{module} has no {function}",
            hint=f"define {function} in {module}, or name another function",
        )
    if not callable(found):
        raise ConfigurationError(
            f"{name} cannot be called",
            hint="name a function such as def transform(item): return item",
        )
    return cast("Transform", found)


def _import_failed(module: str, missing: str) -> ConfigurationError:
    """Return the error for ``module``, whose import failed because ``missing`` is not installed.

    ``missing`` may be ``module`` itself.
    """
    if module == missing or module.startswith(f"{missing}."):
        return ConfigurationError(
            f"there is no module {module}",
            hint=f"run the command in the folder that contains {module}, or add that folder to"
            " PYTHONPATH",
        )
    return ConfigurationError(
        f"{module} imports {missing}, which is not installed",
        hint="install it in this environment",
    )


class Copy:
    """One copy of a table into another.

    ``transform`` takes an item in DynamoDB JSON and returns the item to write, or None to drop it.
    """

    def __init__(
        self,
        source: BulkTarget,
        target: BulkTarget,
        options: CopyOptions | None = None,
        *,
        transform: Transform | None = None,
        transform_name: str | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.options = options or CopyOptions()
        self.source = source
        self.target = target
        self.clock = clock or SystemClock()
        self.chance = chance or random.Random()  # noqa: S311 - for shuffling and jitter
        self._transform = transform
        self._gate = Gate.between(self.clock, self.options.between)
        if source.table == target.table and source.is_at(target):
            raise ConfigurationError(
                f"source and target are the same table, {source.table}",
                hint="name another table with --to-table",
            )
        description = described(source, self.clock, self.chance)
        self._expected = int(description.get("ItemCount") or 0)
        if self.options.create:
            request = like_creation(description, target.table)
            ensure_table(target, request, self.clock, self.chance)
        found = described(target, self.clock, self.chance, advice="create it with --create, or ")
        self._key = table_key(found).names
        self._job_facts = {
            "from": [source.address, source.table],
            "to": [target.address, target.table],
            "segments": self.options.segments,
            "transform": transform_name,
            "dead_letters": None
            if self.options.dead_letters is None
            else str(self.options.dead_letters),
        }
        self.journal_path = Path(
            self.options.journal or f"copy-{source.table}-{target.table}.journal"
        )
        self._reading = Governor(self.clock, self.options.read_rate, gate=self._gate)
        self._dropped = 0

    def run(self, watch: Callable[[CopyProgress], None] | None = None) -> CopyReport:
        """Copy until every item is written and, if the options say so, the target is verified.

        ``watch`` is called with the progress from time to time.
        """
        options = self.options
        journal = Journal(self.journal_path, self._job_facts)
        state = journal.begin(resume=options.resume, restart=options.restart)
        if state is None:
            place: dict[str, Any] = {
                "lanes": {},
                "digest": Digest().to_data(),
                "was_empty": self._is_empty(),
                "dropped": 0,
            }
            state = JournalState(place)
        place = state.place
        with journal.reading_state():
            self._digest = Digest.from_data(place["digest"])
            self._dropped = int(place["dropped"])
            start = {int(lane): dict(end) for lane, end in place["lanes"].items()}
            place["was_empty"] = bool(place["was_empty"])
        job = WriteJob(
            self.target,
            self._key,
            journal,
            WriteSettings(
                options.write_rate,
                options.writers,
                options.window_rows,
                options.window_bytes,
                options.dead_letters,
                options.max_errors,
            ),
            state,
            start,
            lambda lanes: {
                "lanes": {str(lane): end for lane, end in lanes.items()},
                "digest": self._digest.to_data(),
                "was_empty": place["was_empty"],
                "dropped": self._dropped,
                "verifying": place.get("verifying"),
            },
            clock=self.clock,
            chance=self.chance,
            passed=self._passed,
            gate=self._gate,
        )
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for lane in range(options.segments):
            if not start.get(lane, {}).get("done"):
                waiting.put(lane)
        scan = TableScan(
            self.source.transport,
            self.source.table,
            options.segments,
            self._reading,
            self.clock,
            self.chance,
            first_items=_FIRST_PAGE_ITEMS,
        )
        readers = [
            lambda: self._read(job, scan, waiting, start)
            for _ in range(max(1, min(options.readers, options.segments)))
        ]

        def show() -> None:
            if watch is not None:
                watch(self._progress(job))

        job.run(readers, show, source=self.source.owned_transport)
        verified = self._verified(journal, job.state, show) if options.verify else None
        journal.finish()
        counts = job.watermark.counts
        return CopyReport(
            read=counts.read + self._dropped,
            written=counts.written,
            dropped=self._dropped,
            failed=counts.failed,
            checksum=self._digest.checksum,
            verified=verified,
            write_units=round(counts.consumed_units, 1),
            seconds=round(job.seconds, 3),
            dead_letters=None if job.letters.path is None else str(job.letters.path),
            written_before=job.watermark.written_before,
        )

    # -- reading

    def _read(
        self, job: WriteJob, scan: TableScan, waiting: queue.SimpleQueue[int], start: dict[int, Any]
    ) -> None:
        while not job.stopping():
            try:
                lane = waiting.get_nowait()
            except queue.Empty:
                return
            row = 0
            for page in scan.pages(lane, start.get(lane, {}).get("after")):
                self._page(
                    job, lane, row, page.items, {"after": page.after, "done": page.after is None}
                )
                row += len(page.items)
                if job.stopping():
                    return

    def _page(
        self, job: WriteJob, lane: int, row: int, items: list[Item], end: dict[str, Any]
    ) -> None:
        transformed, faults = self._transformed(items)
        note: dict[str, Any] = {
            "hashes": {},
            "dropped": len(items) - len(transformed) - len(faults),
        }
        block = Block(
            f"{self.source.table}, segment {lane}",
            row,
            end,
            len(transformed) + len(faults),
            lane,
            note=note,
        )
        entries = []
        for at, item in transformed:
            try:
                item_hash, encoded = hash_of(item), orjson.dumps(item)
            except Exception as error:  # the user's function may return anything
                reason = f"the transform returned no item: {type(error).__name__}: {error}"
                faults.append((at, items[at], reason))
                continue
            try:
                key = key_of(item, self._key)
            except (KeyError, AttributeError, ValueError, ArithmeticError):
                faults.append((at, item, f"the item lacks the key {', '.join(self._key)}"))
                continue
            note["hashes"][at] = item_hash
            entries.append(PendingRow(key, encoded, at, block))
        job.watermark.opened(block)
        for at, item, reason in faults:
            job.dead(block, at, item, reason)
        job.add(entries)

    def _transformed(
        self, items: list[Item]
    ) -> tuple[list[tuple[int, Item]], list[tuple[int, Item, str]]]:
        if self._transform is None:
            return list(enumerate(items)), []
        transformed: list[tuple[int, Item]] = []
        faults: list[tuple[int, Item, str]] = []
        for at, item in enumerate(items):
            try:
                changed = self._transform(item)
            except Exception as error:  # the user's function may raise anything about this item
                faults.append((at, item, f"the transform failed: {type(error).__name__}: {error}"))
                continue
            if changed is not None:
                transformed.append((at, changed))
        return transformed, faults

    def _passed(self, block: Block) -> None:
        hashes = block.note["hashes"]
        for letter in block.dead:
            hashes.pop(letter.row - block.first_row - 1, None)
        self._digest += Digest(len(hashes), sum(hashes.values()) % (1 << 128))
        self._dropped += block.note["dropped"]

    def _progress(self, job: WriteJob) -> CopyProgress:
        live = job.watermark.live
        share = min(0.99, live.written / self._expected) if self._expected else 0.0
        return CopyProgress(
            live,
            self._reading.pace,
            job.governor.pace,
            share,
            job.seconds,
            self._gate.closed_until,
            job.watermark.written_before,
        )

    # -- verifying

    def _is_empty(self) -> bool:
        request = {"TableName": self.target.table, "Limit": 1, "ConsistentRead": True}
        reply = retried_call(self.target.transport, self.clock, self.chance, "Scan", request)
        return not reply["Items"] and "LastEvaluatedKey" not in reply

    def _verified(self, journal: Journal, state: JournalState, show: Callable[[], None]) -> bool:
        """Scan the target and compare its items with the copied items.

        The journal records the progress of the Scan. Returns True if the items are equal, and
        raises DataDiffers if they are not. Returns False, without a comparison, if the target had
        items before the copy.
        """
        if not state.place["was_empty"]:
            return False
        begun = state.place["verifying"] or {"lane": 0, "after": None, **Digest().to_data()}
        found, after = Digest.from_data(begun), begun["after"]
        governor = Governor(self.clock, self.options.read_rate, gate=self._gate)
        scan = TableScan(
            self.target.transport,
            self.target.table,
            self.options.segments,
            governor,
            self.clock,
            self.chance,
            consistent=True,
        )
        checkpointed = time.monotonic()
        for lane in range(begun["lane"], self.options.segments):
            self._gate.wait(show)
            for page in scan.pages(lane, after):
                found += digest(page.items)
                if time.monotonic() - checkpointed >= _CHECKPOINT_SECONDS:
                    at = {"lane": lane, "after": page.after} if page.after else {"lane": lane + 1}
                    verifying = {"after": None, **at, **found.to_data()}
                    journal.write(replace(state, place=state.place | {"verifying": verifying}))
                    checkpointed = time.monotonic()
                self._gate.wait(show)
            after = None
        if found != self._digest:
            journal.finish()
            raise DataDiffers(
                f"{self._digest.items:,} items were copied,"
                f" and {self.target.table} has {found.items:,}"
                + ("" if found.items != self._digest.items else "; some of them differ"),
                hint="stop other writers to the target, make sure that the transform gives no two"
                " items the same key, and copy again",
            )
        return True

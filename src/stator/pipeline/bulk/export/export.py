"""``export`` writes a table, or an export that AWS made of a table, to files.

Threads read pieces of the source (segments of a Scan, files of a snapshot) and write a part file
for every few pages. After each part the journal records how far the piece has been read, which
parts exist, and the count and checksum of their items. A resumed run continues after the last part
of each piece; a part that was written but not recorded is written again under the same name.

A folder gets the parts and, last of all, ``_manifest.json``. An export with a manifest is complete:
a resumed run checks the files, removes what is left over, and writes nothing.

A single file is joined from parts in a folder next to it, which is then removed; an export to S3 is
uploaded from such a folder. CSV needs a header and Parquet a schema, which is the same for all
files. All attributes and their types are known only at the end, so until then the parts are
DynamoDB JSON. With a design, parts go into a folder for each entity, for example
``entity=Order/part-...``, and have the columns of its fields (``field_columns``).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from stator.clock import Clock, SystemClock
from stator.design.plan.html_table import html_report
from stator.errors import BulkError, ConfigurationError, DataDiffers, JournalDamaged
from stator.formats.parquet_columns import ColumnFacts, add_facts, merged_facts
from stator.model.values import Item
from stator.pipeline.bulk.checksum import Digest, digest
from stator.pipeline.bulk.export.destinations import SPOOL, Destination
from stator.pipeline.bulk.export.field_columns import FieldColumns
from stator.pipeline.bulk.export.paged_source import PagedSource
from stator.pipeline.bulk.export.parquet_schema import ParquetSchema
from stator.pipeline.bulk.export.parts import (
    EXPORT_FORMATS,
    PartFile,
    check_part,
    digest_of_file,
    encode_part,
    extension,
    read_items,
    write_part,
)
from stator.pipeline.bulk.job.daily_hours import Gate
from stator.pipeline.bulk.job.interrupted_threads import end_threads
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.pending_rows import per_second

_PART_PAGES = 16
"""The most pages of a part. In a resumed run the first parts have 1, 2, 4 and 8 pages, so that an
export gets on if it is killed again and again."""
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options of an export.

    ``compression`` is gzip or zstd; Parquet compresses its own pages with it. ``part_items`` bounds
    the rows of one part. ``verify`` reads the written files back and compares them. ``between`` is
    the time of day in which the export may read, such as 01:00-05:00.
    """

    format: str | None = None
    compression: str | None = None
    readers: int = 4
    part_items: int = 10_000
    journal: str | Path | None = None
    resume: bool = False
    restart: bool = False
    verify: bool = True
    between: str | None = None


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """How far an export is: the items and pieces of the source that are written.

    ``units`` are the read units consumed so far. ``items_before`` items were exported by earlier
    runs, and ``seconds`` is the time of this run.
    """

    items: int
    pieces_done: int
    pieces: int
    units: float
    seconds: float
    waits_until: float | None = None
    items_before: int = 0

    @property
    def per_second(self) -> float:
        """How many items this run has exported in a second, on average."""
        return per_second(self.items, self.items_before, self.seconds)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The result of an export: its files, what they contain, and what reading cost.

    An export that was resumed counts the items of all of its runs; ``items_before`` of them are
    from earlier runs, and ``seconds`` is the time of the last run.
    """

    out: str
    format: str
    items: int
    checksum: str
    files: int
    size_bytes: int
    consumed_units: float
    seconds: float
    verified: bool
    manifest: str
    already_complete: bool = False
    """Whether an earlier run had finished the export, so that this run wrote nothing."""
    finished_at: str = ""
    items_before: int = 0

    @property
    def per_second(self) -> float:
        """How many items the last run exported in a second, on average."""
        return per_second(self.items, self.items_before, self.seconds)

    def _repr_html_(self) -> str:
        """Return the report as a table for a notebook."""
        return html_report(f"Export to {self.out}", self.to_data())

    def to_data(self) -> dict[str, Any]:
        """Return the report as the dictionary that ``stator export --json`` prints."""
        return asdict(self)


class ExportJob:
    """One export from a source to a destination.

    ``job`` describes the source for the journal. ``first`` names the attributes that become the
    first columns. ``kind_of`` returns the name of an item's entity, whose folder receives the item;
    ``fields`` has the columns of each entity. ``expected`` is the number of items in the source, if
    known.
    """

    def __init__(
        self,
        source: PagedSource,
        out: str,
        job: dict[str, Any],
        options: ExportOptions | None = None,
        *,
        first: tuple[str, ...] = (),
        kind_of: Callable[[Item], str | None] | None = None,
        fields: Mapping[str, FieldColumns] | None = None,
        expected: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.options = options or ExportOptions()
        self.source = source
        self.clock = clock or SystemClock()
        self.to = Destination.parse(out, self.options.format, self.options.compression)
        if self.to.format not in EXPORT_FORMATS:
            raise ConfigurationError(
                f"the format {self.to.format} is unknown",
                hint=f"name one with --format {'|'.join(EXPORT_FORMATS)}",
            )
        self._first = first
        self._kind_of = kind_of
        self._fields = fields or {}
        self._expected = expected
        self.journal_path = (
            Path(self.options.journal) if self.options.journal else self.to.default_journal
        )
        self._journal = Journal(
            self.journal_path,
            {
                **job,
                "out": out,
                "format": self.to.format,
                "compression": self.to.compression,
                "pieces": source.pieces,
            },
        )
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._stopping = threading.Event()
        self._gate = Gate.between(self.clock, self.options.between)
        self._units = 0.0

    def run(self, watch: Callable[[ExportProgress], None] | None = None) -> ExportReport:
        """Write all files of the export, and the manifest last. Return the result.

        ``watch`` is called with the progress from time to time.
        """
        self._started, started_at = time.monotonic(), self.clock.now()
        is_unfinished = self._is_unfinished()
        state = self._journal.begin(resume=self.options.resume, restart=self.options.restart)
        place = (state or JournalState()).place
        if self.options.resume:
            manifest = self._manifest_of_this_export(place.get("run"))
            if manifest is not None:
                return self._already_complete(manifest)
        self.to.create_folder()
        if state is not None:
            self.to.remove_leftovers({each["name"] for each in place.get("files", [])})
        elif is_unfinished:
            self.to.remove_unfinished()
        if state is None:
            self.to.check_empty()
        self._first_pages = _PART_PAGES if state is None else 1
        with self._journal.reading_state():
            self._run = place.get("run") or uuid4().hex
            self._pieces: dict[str, Any] = dict(place.get("pieces", {}))
            self._files = [PartFile(**each) for each in place.get("files", [])]
            self._digest = Digest.from_data(place["digest"]) if place else Digest()
            self._items_before = self._digest.items
            self._columns: set[str] = set(place.get("columns", []))
            self._facts: dict[str, dict[str, ColumnFacts]] = {
                kind: {name: ColumnFacts.from_data(each) for name, each in facts.items()}
                for kind, facts in place.get("facts", {}).items()
            }
            self._units = float(place.get("units", 0.0))
        self._check_spooled()
        self._journal.write(self._state())
        self._read(watch or (lambda _: None))
        if self._expected is not None and self._digest.items != self._expected:
            raise DataDiffers(
                f"the source announces {self._expected:,} items,"
                f" but {self._digest.items:,} were read",
                hint="the source is damaged or incomplete: download or export it again",
            )
        self._files.sort(key=lambda part: part.name)
        return self._finished(started_at)

    def _check_spooled(self) -> None:
        """Refuse to resume a Parquet export that an earlier version of Stator began.

        Each part of such an export may have different column types.
        """
        if self.to.format == "parquet" and not all(
            part.name.startswith(f"{SPOOL}/") for part in self._files
        ):
            raise BulkError(
                f"the journal {self.journal_path} belongs to an export by an earlier version of"
                " Stator, whose Parquet parts may differ in their column types",
                hint="start over with --restart",
            )

    # -- after an earlier run

    def _is_unfinished(self) -> bool:
        """Whether the journal shows that an earlier run to the same destination did not finish.

        Raises JournalDamaged for a damaged journal, which does not name its destination. With
        ``--restart``, a damaged journal at the default path counts as one for this destination.
        But if a manifest shows that the export there is complete, the result is False.
        """
        try:
            earlier = self._journal.earlier_job()
        except JournalDamaged:
            if not self.options.restart:
                raise
            return self.options.journal is None and self.to.read_manifest() is None
        return earlier is not None and earlier.get("out") == self.to.out

    def _manifest_of_this_export(self, run: str | None) -> dict[str, Any] | None:
        """Return the manifest if this export is complete, else None.

        ``run`` is the identifier of the run in the journal, or None if there is none. If ``run`` is
        set, only a manifest of the same run counts: S3 may hold the manifest of an earlier export.
        Raises BulkError if there is no journal and the manifest belongs to another export.
        """
        manifest = self.to.read_manifest()
        if manifest is None:
            return None
        if run is not None:
            return manifest if manifest.get("run") == run else None
        if self.journal_path.exists():
            return None
        differs = self._journal.difference(manifest.get("source") or {})
        if differs is not None:
            raise BulkError(
                f"the manifest {self.to.manifest} belongs to another export: {differs}",
                hint="name another place with --out, or delete the earlier export",
            )
        return manifest

    def _already_complete(self, manifest: dict[str, Any]) -> ExportReport:
        files = [PartFile(**each) for each in manifest["files"]]
        if self.options.verify:
            for part in files:
                self.to.check_published(part)
        self._journal.finish()
        self.to.clean()
        return ExportReport(
            out=self.to.out,
            format=str(self.to.format),
            items=manifest["items"],
            checksum=manifest["checksum"],
            files=len(files),
            size_bytes=sum(part.size_bytes for part in files),
            consumed_units=manifest["consumed_units"],
            seconds=round(time.monotonic() - self._started, 3),
            verified=self.options.verify,
            manifest=self.to.manifest,
            already_complete=True,
            finished_at=manifest["finished_at"],
            items_before=manifest["items"],
        )

    # -- reading

    def _read(self, watch: Callable[[ExportProgress], None]) -> None:
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for piece in range(self.source.pieces):
            if not self._pieces.get(str(piece), {}).get("done"):
                waiting.put(piece)
        count = max(1, min(self.options.readers, waiting.qsize()))
        threads = [
            threading.Thread(target=self._reader, args=(waiting,), daemon=True)
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(_LOOK_SECONDS)
                watch(self._progress())
        except BaseException:
            self._stop()
            end_threads(threads, self.source.owned_transport)
            raise
        if self._error is not None:
            raise self._error

    def _progress(self) -> ExportProgress:
        done = sum(bool(each.get("done")) for each in list(self._pieces.values()))
        return ExportProgress(
            self._digest.items,
            done,
            self.source.pieces,
            self._units,
            time.monotonic() - self._started,
            self._gate.closed_until,
            self._items_before,
        )

    def _stop(self) -> None:
        self._stopping.set()
        self._gate.stop()
        self.source.stop()

    def _reader(self, waiting: queue.SimpleQueue[int]) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    piece = waiting.get_nowait()
                except queue.Empty:
                    return
                self._piece(piece)
        except BaseException as error:  # the waiting thread raises it
            self._error = self._error or error
            self._stop()

    def _piece(self, piece: int) -> None:
        held: list[Item] = []
        pages, units, most_pages = 0, 0.0, self._first_pages
        self._gate.wait()
        if self._stopping.is_set():
            return
        for page in self.source.pages(piece, self._pieces.get(str(piece), {}).get("after")):
            held += page.items
            pages += 1
            units += page.units
            if page.after is None or pages >= most_pages or len(held) >= self.options.part_items:
                self._part(piece, held, page.after, units)
                held, pages, units, most_pages = [], 0, 0.0, min(most_pages * 2, _PART_PAGES)
            self._gate.wait()  # before the next page is read
            if self._stopping.is_set():
                return

    def _part(self, piece: int, items: list[Item], after: Any, units: float) -> None:
        own = digest(items)
        before = self._pieces.get(str(piece), {"parts": 0})
        name = f"part-{piece:03d}-{before['parts']:05d}{self.to.part_extension}"
        written = []
        spool = f"{SPOOL}/" if self.to.is_spooled else ""
        facts: dict[str, dict[str, ColumnFacts]] = {}
        columns: set[str] = set()
        for kind, members in self._by_kind(items):
            rows = self._rows(kind, members)
            if self.to.format == "parquet":
                add_facts(facts.setdefault(kind or "", {}), rows)
            elif self.to.format == "csv":
                columns.update(*rows)
            is_raw = self.to.part_format == "dynamodb-json"
            content = encode_part(
                members if is_raw else rows, self.to.part_format, self.to.part_compression
            )
            written.append(
                write_part(
                    self.to.folder,
                    f"{spool}entity={kind}/{name}" if kind else f"{spool}{name}",
                    content,
                    len(members),
                )
            )
        with self._lock:
            self._files += written
            self._digest += own
            self._units += units
            self._columns |= columns
            for found, own_facts in facts.items():
                self._facts[found] = merged_facts(self._facts.get(found, {}), own_facts)
            parts = before["parts"] + (1 if written else 0)
            self._pieces[str(piece)] = {"after": after, "done": after is None, "parts": parts}
            self._journal.write(self._state())

    def _by_kind(self, items: list[Item]) -> Iterable[tuple[str | None, list[Item]]]:
        kinds: dict[str | None, list[Item]] = {}
        for item in items:
            kinds.setdefault(
                None if self._kind_of is None else self._kind_of(item) or "other", []
            ).append(item)
        return kinds.items()

    def _rows(self, kind: str | None, items: list[Item]) -> list[Item]:
        """Return items as rows of CSV or Parquet. Items of an entity lose their key attributes.

        ``kind`` is the name of the entity, or None.
        """
        fields = self._fields.get(kind or "")
        return items if fields is None else [fields.row(item) for item in items]

    def _state(self) -> JournalState:
        return JournalState(
            {
                "pieces": self._pieces,
                "files": [part.to_data() for part in self._files],
                "digest": self._digest.to_data(),
                "columns": sorted(self._columns),
                "facts": {
                    kind: {name: each.to_data() for name, each in facts.items()}
                    for kind, facts in self._facts.items()
                },
                "units": self._units,
                "run": self._run,
            }
        )

    # -- finishing

    def _finished(self, started_at: float) -> ExportReport:
        if self.options.verify:
            self._verify(self._files)
        if self.to.format == "parquet":
            files = self.to.uploaded(self._as_parquet())
        else:
            parts = self._as_csv() if self.to.format == "csv" else self._files
            files = self.to.publish(parts)
        if self.options.verify and not self.to.is_remote:
            for part in files:
                self.to.check_published(part)
        finished_at = _shown(self.clock.now())
        manifest = {
            "stator_export": 1,
            "run": self._run,
            "source": self._journal.job,
            "format": self.to.format,
            "compression": self.to.compression,
            **self._digest.to_data(),
            "consumed_units": self._units,
            "started_at": _shown(started_at),
            "finished_at": finished_at,
            "verified": self.options.verify,
            "files": [part.to_data() for part in files],
        }
        where = self.to.write_manifest(orjson.dumps(manifest, None, orjson.OPT_INDENT_2))
        self._journal.finish()
        self.to.clean()
        return ExportReport(
            out=self.to.out,
            format=str(self.to.format),
            items=self._digest.items,
            checksum=self._digest.checksum,
            files=len(files),
            size_bytes=sum(part.size_bytes for part in files),
            consumed_units=self._units,
            seconds=round(time.monotonic() - self._started, 3),
            verified=self.options.verify,
            manifest=where,
            finished_at=finished_at,
            items_before=self._items_before,
        )

    def _verify(self, parts: list[PartFile]) -> None:
        rows = sum(part.rows for part in parts)
        if rows != self._digest.items:
            raise BulkError(
                f"the parts have {rows:,} rows, but {self._digest.items:,} items were read",
                hint="start over with --restart",
            )
        for part in parts:
            check_part(self.to.folder, part)
        if self.to.part_format == "dynamodb-json":
            found = sum((digest_of_file(self.to.folder / part.name) for part in parts), Digest())
            if found != self._digest:
                raise DataDiffers(
                    f"the parts hold {found.items:,} items with checksum {found.checksum},"
                    f" but {self._digest.items:,} items with checksum {self._digest.checksum}"
                    " were read",
                    hint="check the disk, then start over with --restart",
                )

    def _as_csv(self) -> list[PartFile]:
        """Rewrite the parts as CSV with one header, now that all attributes are known."""
        first = self._first_columns()
        columns = [name for name in first if name in self._columns]
        columns += sorted(self._columns - set(columns))
        parts = []
        for part in self._files:
            items = self._rows(_kind(part), list(read_items(self.to.folder / part.name)))
            content = encode_part(items, "csv", self.to.compression, columns)
            name = self._final_name(part, extension("csv", self.to.compression))
            parts.append(write_part(self.to.folder, name, content, part.rows))
        return parts

    def _as_parquet(self) -> list[PartFile]:
        """Rewrite the parts as Parquet with one schema for each entity.

        With ``verify``, each file is read back and compared with the items.
        """
        verify = self.options.verify
        if self.to.file is not None:
            schema = self._schema(self._facts)
            groups = [partial(self._group, part) for part in self._files]
            written = schema.write(self.to.file, groups, self.to.compression, verify=verify)
            return [PartFile(self.to.file.name, self._digest.items, *written)]
        parts = []
        schemas = {kind: self._schema({kind: facts}) for kind, facts in self._facts.items()}
        for kind, schema in schemas.items():
            own = [part for part in self._files if (_kind(part) or "") == kind]
            names = [self._final_name(part, extension("parquet", None)) for part in own]
            files = {
                self.to.folder / name: [partial(self._group, part)]
                for name, part in zip(names, own)
            }
            parts += [
                PartFile(name, part.rows, *found)
                for name, part, found in zip(
                    names,
                    own,
                    schema.write_all(files, self.to.compression, verify=verify),
                )
            ]
        return sorted(parts, key=lambda part: part.name)

    def _group(self, part: PartFile) -> list[Item]:
        return self._rows(_kind(part), list(read_items(self.to.folder / part.name)))

    def _schema(self, facts: Mapping[str, Mapping[str, ColumnFacts]]) -> ParquetSchema:
        """Return the schema of Parquet files that hold the items of the kinds in ``facts``.

        A kind is an entity's name, or empty. With a single entity, the columns have the types that
        the design gives its fields. If there are no items, the columns are those of the only entity
        to export, or else the table's keys.
        """
        kinds = list(facts) or (list(self._fields) if len(self._fields) == 1 else [])
        merged: dict[str, ColumnFacts] = {}
        for each in facts.values():
            merged = merged_facts(merged, each)
        if not merged:
            merged = {name: ColumnFacts() for name in self._first}
        fields = self._fields.get(kinds[0]) if len(kinds) == 1 else None
        if fields is not None and not facts:
            merged = {}
        return ParquetSchema(merged, self._first_columns(), fields)

    def _first_columns(self) -> tuple[str, ...]:
        """The names of the first columns: the fields of an entity, or the table's keys."""
        names = [name for fields in self._fields.values() for name in fields.names]
        return tuple(dict.fromkeys((*names, *self._first))) if self._fields else self._first

    def _final_name(self, part: PartFile, ending: str) -> str:
        name = part.name.removeprefix(f"{SPOOL}/").removesuffix(self.to.part_extension)
        return name + ending


def _kind(part: PartFile) -> str | None:
    """Return the entity that a part belongs to: ``Order`` for ``entity=Order/part-...``."""
    folder = part.name.removeprefix(f"{SPOOL}/").rpartition("/")[0]
    return folder.removeprefix("entity=") or None


def _shown(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")

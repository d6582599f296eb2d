"""``load`` writes files into a table. A ``LoadPlan`` can be inspected before it runs.

A reader returns the input block by block (``readers``), an encoder turns blocks into items
(``columns``, ``lines``, ``entity_rows``, ``entity_columns``), a window shuffles them, and writers
put them as fast as the table takes them (``bulk.job``). A journal records how far the load has got.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import orjson

from stator.clock import Clock, SystemClock
from stator.design.plan.html_table import html_report
from stator.errors import BulkError, ConfigurationError
from stator.formats.dynamodb_json import is_attribute_value, unwrap
from stator.pipeline.bulk.job.daily_hours import Gate
from stator.pipeline.bulk.job.governor import Pace
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.job.pending_rows import (
    WRITTEN,
    Block,
    PendingRow,
    RowCounts,
    RowPosition,
    per_second,
)
from stator.pipeline.bulk.job.row_condition import RowCondition
from stator.pipeline.bulk.job.rows_ahead import RowsAhead
from stator.pipeline.bulk.job.write_job import WriteJob, WriteSettings
from stator.pipeline.bulk.load.attribute_types import (
    AttributeType,
    TableKey,
    check_key_types,
    column_types,
    columns_of,
    parse_map,
    parse_types,
    table_key,
)
from stator.pipeline.bulk.load.columns import ColumnEncoder, Dead
from stator.pipeline.bulk.load.entity_columns import EntityColumnEncoder, fits_columns
from stator.pipeline.bulk.load.entity_rows import EntityEncoder, check_columns
from stator.pipeline.bulk.load.inputs import Input, find_inputs
from stator.pipeline.bulk.load.letter_rows import is_letter, letter_rows
from stator.pipeline.bulk.load.lines import DynamoDbLineEncoder, LineEncoder
from stator.pipeline.bulk.load.readers import RawRows, read
from stator.pipeline.bulk.table_creation import check_same_key, ensure_table, key_creation
from stator.pipeline.bulk.targets import BulkTarget, described, find_description
from stator.tables.schema.entity_map import EntityMap

_NESTED = ("jsonl", "dynamodb-json", "dead-letters")


class Encoder(Protocol):
    def entries(self, rows: RawRows, block: Block, dead: Dead) -> list[PendingRow]: ...


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options of a load.

    ``rate`` is in write capacity units a second; without one the load adapts to the table. ``map``
    renames fields (``source=target``) and drops them (``source=``); ``types`` sets the type of an
    attribute (``total=N``). ``condition`` is an expression for every put, in which ``:name`` stands
    for the row's value of ``name``. ``window_rows`` and ``window_bytes`` bound the rows in memory.
    At most ``max_errors`` rows may fail; None allows any number. ``create`` creates missing tables:
    those of the design, or a table with the ``key`` (``pk=S``, ``sk=N``). ``flatten`` turns nested
    JSON objects into dotted names. ``between`` is the time of day in which the load may write, such
    as 01:00-05:00.
    """

    format: str | None = None
    delimiter: str | None = None
    map: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    condition: str | None = None
    rate: float | None = None
    writers: int | None = None
    window_rows: int = 20_000
    window_bytes: int = 48 << 20
    journal: str | Path | None = None
    keep_journal: bool = True
    resume: bool = False
    restart: bool = False
    dead_letters: str | Path | None = None
    max_errors: int | None = None
    create: bool = False
    key: tuple[str, ...] = ()
    flatten: bool = False
    between: str | None = None


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: the counts of rows, and the rate of writing.

    ``share`` is how much of the input has been loaded, from 0 to 1. ``written_before`` rows were
    written by earlier runs of the load, and ``seconds`` is the time of this run.
    """

    counts: RowCounts
    pace: Pace
    share: float
    seconds: float
    waits_until: float | None = None
    written_before: int = 0

    @property
    def per_second(self) -> float:
        """How many rows this run has written in a second, on average."""
        return per_second(self.counts.written, self.written_before, self.seconds)


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load.

    ``written`` counts the rows that are in the table or were replaced by a later row with the same
    key. These include ``already_there``, rows whose condition failed because the same item was
    stored already. A load that was resumed counts the rows of all of its runs; ``written_before``
    of them are from earlier runs, and ``seconds`` is the time of the last run.
    """

    table: str
    read: int
    written: int
    already_there: int
    failed: int
    consumed_units: float
    throttled: int
    seconds: float
    resumed_at_row: int
    dead_letters: str | None
    already_done: bool = False
    """Whether an earlier run had finished the load with rows that failed, so that this run wrote
    nothing. The other values are those of that run."""
    written_before: int = 0

    @property
    def per_second(self) -> float:
        """How many rows the last run wrote in a second, on average."""
        return per_second(self.written, self.written_before, self.seconds)

    def _repr_html_(self) -> str:
        """Return the report as a table for a notebook."""
        return html_report(f"Load into {self.table}", self.to_data())

    @property
    def ok(self) -> bool:
        """Whether every row was written."""
        return not self.failed

    def to_data(self) -> dict[str, Any]:
        """Return the report as the dictionary that ``stator load --json`` prints."""
        return asdict(self)


def load(
    files: str | Iterable[str],
    target: BulkTarget,
    options: LoadOptions | None = None,
    *,
    clock: Clock | None = None,
    watch: Callable[[LoadProgress], None] | None = None,
) -> LoadReport:
    """Put every row of the files into a table.

    ``BulkTarget.open`` selects the table, by its name or by a design and an entity. ``watch`` is
    called with the progress from time to time.
    """
    return LoadPlan(files, target, options, clock=clock).run(watch)


class LoadPlan:
    """A load that is ready to start. ``run`` runs it.

    ``types`` holds the attribute types of the first input. It is empty for lines of JSON, whose
    values each have a type of their own.
    """

    def __init__(
        self,
        files: str | Iterable[str],
        target: BulkTarget,
        options: LoadOptions | None = None,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.options = options or LoadOptions()
        self.target = target
        self.clock = clock or SystemClock()
        self.chance = chance or random.Random()  # noqa: S311 - for shuffling and jitter
        self.inputs = find_inputs([files] if isinstance(files, str) else files, self.options.format)
        _check_dead_letters(self.options.dead_letters, self.inputs)
        _check_journal(self.options.journal, self.options.dead_letters, self.inputs)
        self._renamed = parse_map(self.options.map)
        self._given = parse_types(self.options.types)
        self.condition = (
            None if self.options.condition is None else RowCondition(self.options.condition)
        )
        if self.condition is not None and target.is_written_alone:
            raise ConfigurationError(
                f"--condition does not work with {target.entity_name}: its versions, unique or"
                " large fields need conditions of their own",
                hint="leave out --condition",
            )
        self.gate = Gate.between(self.clock, self.options.between)
        self._check_flatten()
        _check_delimiter(self.options.delimiter, self.inputs)
        self.creation: dict[str, Any] | None = None
        """The CreateTable request for a table that does not exist yet."""
        description = self.description = self._described()
        self.key = table_key(description)
        check_key_types(self.key, self._given)
        self.indexes = sum(
            len(description.get(kind) or ())
            for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        )
        self._known: dict[str, AttributeType] = {}
        self._first = self._peeked(self.inputs[0])
        self.types = tuple(self._known.values())
        self._check_given_types()

    # -- the table

    def _described(self) -> dict[str, Any]:
        """Return the table's description, or the CreateTable request if the load will create it.

        The request is also stored in ``creation``. Raises ConfigurationError if the table is
        missing and cannot be created, or if its key differs from the ``--key`` options.
        """
        wanted = self._wanted()
        if not self.options.create:
            return described(self.target, self.clock, self.chance, advice=self._creation_advice())
        found = find_description(self.target, self.clock, self.chance)
        if found is not None:
            if wanted is not None and self.options.key:
                check_same_key(self.target, found, wanted)
            return found
        if wanted is None:
            raise ConfigurationError(
                f"there is no table {self.target.table} at {self.target.address},"
                " and --create needs to know its key",
                hint="name the partition key and, if there is one, the sort key:"
                " --key pk=S --key sk=N",
            )
        self.creation = wanted
        return wanted

    def _wanted(self) -> dict[str, Any] | None:
        """Return the CreateTable request for the table that the design or ``key`` describes.

        Returns None if neither is given.
        """
        options, entity = self.options, self.target.entity
        if options.key and (entity is not None or not options.create):
            raise ConfigurationError(
                f"--key {options.key[0]} has no use here",
                hint="leave it out: the design has the keys"
                if entity is not None
                else "add --create to create the table with this key, or leave out --key",
            )
        if entity is not None:
            return entity.table.create_request()
        return key_creation(self.target.table, options.key) if options.key else None

    def _creation_advice(self) -> str:
        key = "" if self.target.entity is not None else " --key pk=S"
        return f"create it with --create{key}, or "

    def _create_tables(self) -> None:
        """Create missing tables if ``create`` is set, including all other tables of a design."""
        if self.options.create and self.target.entity is not None:
            self.target.create_design_tables(self.chance)
        elif self.options.create:
            ensure_table(self.target, self.description, self.clock, self.chance)

    # -- the plan

    def _check_flatten(self) -> None:
        other = next((each for each in self.inputs if each.format not in _NESTED), None)
        if self.options.flatten and other is not None:
            raise ConfigurationError(
                f"--flatten is for JSON lines, and {other.name} is {other.format or 'unknown'}",
                hint="leave out --flatten, or load the JSON files on their own",
            )

    def _check_given_types(self) -> None:
        """Raise ConfigurationError if a ``--type`` option names an attribute of no column.

        Lines of JSON have no columns, so any of them may have the attribute.
        """
        if self.options.types and self.target.entity is not None:
            raise ConfigurationError(
                f"--type {self.options.types[0]} has no effect: the design of"
                f" {self.target.entity_name} has the types",
                hint="leave it out",
            )
        missing = set(self._given) - {each.target for each in self.types}
        for source in self.inputs[1:]:
            if missing and source.format not in _NESTED:
                head = next(self._read(source), None)
                names = () if head is None or head.lines is not None else head.names
                missing -= {self._renamed.get(name, name) for name in names}
        if missing and self.types and not any(each.format in _NESTED for each in self.inputs):
            name = min(missing)
            raise ConfigurationError(
                f"--type names {name}, but no column becomes that attribute",
                hint=f"choose one of {', '.join(each.target for each in self.types)}",
            )

    def _peeked(self, source: Input) -> Iterator[RawRows]:
        """Return the blocks of an input, after its first block has decided the attribute types."""
        blocks = self._read(source)
        head = next(blocks, None)
        if head is None:
            return iter(())
        self.encoder(source, head)
        return chain((head,), blocks)

    def _read(self, source: Input, start: RowPosition | None = None) -> Iterator[RawRows]:
        blocks = read(source, start, self.options.delimiter)
        return letter_rows(blocks) if source.format == "dead-letters" else blocks

    def encoder(self, source: Input, rows: RawRows) -> Encoder:
        """Return an encoder for blocks like ``rows``: with the same columns, or the same lines.

        The attribute types inferred from ``rows`` also hold for later blocks and inputs.
        """
        of, form = self.target.entity, rows.format or source.format
        self._check_no_letters(source, rows)
        if of is not None:
            if rows.lines is None:
                is_letter = source.format == "dead-letters"
                check_columns(of, source.name, rows.names, self._renamed, complete=not is_letter)
            if rows.batch is not None and fits_columns(of):
                return EntityColumnEncoder(of, self._renamed, self.clock.now)
            return EntityEncoder(
                of,
                self._renamed,
                form == "dynamodb-json" or self._looks_like_entities(of, rows),
                self.clock.now,
                flatten=self.options.flatten,
            )
        if rows.lines is not None:
            if form == "dynamodb-json" or self._looks_like_items(source, rows):
                return self._dynamodb_encoder()
            return LineEncoder(
                self.key.names,
                {**self._given, **self.key.kinds},
                self._renamed,
                flatten=self.options.flatten,
            )
        given = {**rows.types, **self._given} | {
            each.target: each.kind
            for each in self._known.values()
            if each.kind and each.why == "inferred"
        }
        types = column_types(rows, self.key, self._renamed, given)
        for each in types:
            self._known.setdefault(each.target, each)
        return ColumnEncoder(columns_of(types, rows), self.key.names)

    def _looks_like_items(self, source: Input, rows: RawRows) -> bool:
        """Whether the first line of a block is DynamoDB JSON, such as ``{"pk": {"S": "a"}}``."""
        if self.options.format is not None or not rows.lines:
            return False
        with suppress(Exception):  # any failure means that the line is no item
            self._dynamodb_encoder().item(rows.lines[0])
            return True
        return False

    def _looks_like_entities(self, of: EntityMap, rows: RawRows) -> bool:
        """Whether the first line of a block is an item of the entity in DynamoDB JSON.

        Such a line has a type for each attribute, also for the fields that identify the item, which
        plain JSON never writes as objects.
        """
        if self.options.format is not None or not rows.lines:
            return False
        with suppress(Exception):  # any failure means that the line is no item
            item, _ = unwrap(orjson.loads(rows.lines[0]))
            identity = {*of.identity, *of.key_names}
            return bool(item.keys() & identity) and all(map(is_attribute_value, item.values()))
        return False

    def _check_no_letters(self, source: Input, rows: RawRows) -> None:
        """Raise ConfigurationError if a file of dead letters would be loaded as plain JSON."""
        if source.format != "jsonl" or self.options.format is not None or not rows.lines:
            return
        if is_letter(rows.lines[0]):
            raise ConfigurationError(
                f"{source.name} holds dead letters: rows that an earlier load could not write",
                hint="correct their content, and load them with --format dead-letters; "
                "--format jsonl loads the letters themselves",
            )

    def _dynamodb_encoder(self) -> DynamoDbLineEncoder:
        return DynamoDbLineEncoder(
            self.key.names, _key_kinds(self.key), self._renamed, flatten=self.options.flatten
        )

    def entries(self, dead: Dead) -> Iterator[tuple[Block, list[PendingRow], RawRows]]:
        """Yield every block of the inputs with its encoded rows and its rows as read.

        This is for estimates. ``dead`` is called for each row that cannot be read or encoded.
        """
        yield from self.entries_from(RowPosition(), dead, lambda _: None)

    def _learn_types(self, start: RowPosition) -> None:
        """Infer the attribute types of all CSV inputs up to the position ``start`` again.

        The first run inferred them from the first rows of each input. A resumed run reads these
        rows again, so that it uses the same types.
        """
        for source in self.inputs[1 : start.source + 1]:
            head = next(self._read(source), None) if source.format == "csv" else None
            if head is not None:
                self.encoder(source, head)

    def entries_from(
        self, start: RowPosition, dead: Dead, opened: Callable[[Block], None]
    ) -> Iterator[tuple[Block, list[PendingRow], RawRows]]:
        """Yield the rows from the position ``start`` on, in blocks.

        Each block comes with its encoded rows and with the rows as read. ``opened`` is called with
        each block before its rows are encoded, and ``dead`` for each row that cannot be read or
        encoded.
        """
        self._learn_types(start)
        for at, source in enumerate(self.inputs):
            if at < start.source:
                continue
            begin = start if at == start.source else RowPosition(at)
            blocks = self._first if begin == RowPosition() else self._read(source, begin)
            encoder: Encoder | None = None
            for rows in blocks:
                if encoder is None or rows.format is not None:
                    encoder = self.encoder(source, rows)
                end = RowPosition(at, rows.first_row + rows.count, rows.end_byte, rows.end_line)
                block = Block(source.name, rows.first_row, end, rows.to_account)
                opened(block)
                for each in rows.unreadable:
                    dead(block, each.row, each.content, each.reason)
                yield block, encoder.entries(rows, block, dead), rows

    # -- the run

    def journal(self) -> Journal:
        """Return the journal of this load, from which a killed load resumes.

        A load from standard input has a journal that writes nothing.
        """
        options = self.options
        is_stdin = any(each.is_stdin for each in self.inputs)
        if is_stdin and options.journal is not None:
            raise BulkError(
                "--journal has no effect: a load from stdin cannot resume",
                hint="leave it out, or write the data to a file first and load that",
            )
        if not options.keep_journal or is_stdin:
            if options.resume:
                raise BulkError(
                    "a load from stdin cannot resume",
                    hint="write the data to a file first, and load that",
                )
            return Journal(None, {})
        return Journal(self.journal_path, self._job())

    @property
    def journal_path(self) -> Path:
        """The path of the journal: as in the options, or else a file beside the first input."""
        if self.options.journal is not None:
            return Path(self.options.journal)
        first = self.inputs[0]
        name = f"{first.name.rstrip('/').rpartition('/')[2]}.{self.target.table}.journal"
        return Path(first.name).parent / name if first.is_local else Path(name)

    def _job(self) -> dict[str, Any]:
        options = self.options
        return {
            "inputs": [[each.name, each.format, each.fingerprint] for each in self.inputs],
            "table": self.target.table,
            "address": self.target.address,
            "entity": self.target.entity_name,
            "map": list(options.map),
            "types": list(options.types),
            "condition": options.condition,
            "delimiter": options.delimiter,
            "dead_letters": None if options.dead_letters is None else str(options.dead_letters),
            # An earlier Stator did not flatten, and its journals do not mention it.
            "flatten": True if options.flatten else None,
        }

    def run(self, watch: Callable[[LoadProgress], None] | None = None) -> LoadReport:
        """Run the load, and return its result.

        An error that ends the load early is raised. The journal then says how far the load got.
        ``watch`` is called with the progress from time to time.
        """
        journal = self.journal()
        done = journal.done() if self.options.resume and not self.options.restart else None
        if done is not None:
            with journal.reading_state():
                return LoadReport(**{**done, "already_done": True})
        self._create_tables()
        return _LoadRun(self, watch or (lambda _: None)).report()


class _LoadRun:
    def __init__(self, plan: LoadPlan, watch: Callable[[LoadProgress], None]) -> None:
        options = plan.options
        self._plan = plan
        self._watch = watch
        self._source, self._share = 0, 0.0
        self._journal = plan.journal()
        state = (
            self._journal.begin(resume=options.resume, restart=options.restart) or JournalState()
        )
        with self._journal.reading_state():
            self._start = RowPosition(**state.place)
            if not all(type(each) is int for each in asdict(self._start).values()):
                raise self._journal.damaged()
            self._ahead = RowsAhead(state.ahead)
        self._job = WriteJob(
            plan.target,
            plan.key.names,
            self._journal,
            WriteSettings(
                options.rate,
                options.writers,
                options.window_rows,
                options.window_bytes,
                options.dead_letters,
                options.max_errors,
            ),
            state,
            {0: self._start},
            lambda positions: asdict(positions[0]),
            clock=plan.clock,
            chance=plan.chance,
            condition=plan.condition,
            gate=plan.gate,
            ahead=self._ahead,
        )

    def report(self) -> LoadReport:
        self._job.run([self._read], lambda: self._watch(self._progress()))
        counts, letters = self._job.watermark.counts, self._job.letters
        report = LoadReport(
            table=self._plan.target.table,
            read=counts.read,
            written=counts.written,
            already_there=counts.already_there,
            failed=counts.failed,
            consumed_units=round(counts.consumed_units, 1),
            throttled=self._job.governor.pace.throttled,
            seconds=round(self._job.seconds, 3),
            resumed_at_row=self._start.row,
            dead_letters=None if letters.path is None else str(letters.path),
            written_before=self._job.watermark.written_before,
        )
        if report.ok:
            self._journal.finish()
        else:
            self._journal.finish_with(self._job.state, report.to_data())
        return report

    def _read(self) -> None:
        job = self._job
        for block, entries, rows in self._plan.entries_from(self._start, job.dead, self._opened):
            job.add(self._unwritten(block, entries))
            self._source, self._share = block.end.source, rows.share
            if job.stopping():
                return

    def _opened(self, block: Block) -> None:
        end: RowPosition = block.end
        block.done = self._ahead.flags(end.source, block.first_row, end.row - block.first_row)
        self._job.watermark.opened(block)

    def _unwritten(self, block: Block, entries: list[PendingRow]) -> list[PendingRow]:
        """Return the rows that no earlier run finished.

        The other rows are counted as written, or become dead letters, as the earlier runs recorded.
        """
        flags = bytes(block.done)
        if not any(flags):
            return entries
        job = self._job
        job.watermark.skipped([entry for entry in entries if flags[entry.row] == WRITTEN])
        for entry in entries:
            if flags[entry.row] > WRITTEN:
                reason = self._ahead.reason(flags[entry.row])
                job.dead(block, entry.row, orjson.loads(entry.item), reason)
        return [entry for entry in entries if not flags[entry.row]]

    def _progress(self) -> LoadProgress:
        """Return how far the load is.

        Rows are read before they are written. The ``share`` is therefore the share of the input
        that was read, times the share of the rows read that are done.
        """
        job, live = self._job, self._job.watermark.live
        read = min(1.0, (self._source + self._share) / len(self._plan.inputs))
        done = (live.written + live.failed) / live.read if live.read else 0.0
        return LoadProgress(
            live,
            job.governor.pace,
            read * done,
            job.seconds,
            self._plan.gate.closed_until,
            job.watermark.written_before,
        )


def _check_delimiter(delimiter: str | None, inputs: Iterable[Input]) -> None:
    if delimiter is None:
        return
    if not any(each.format in ("csv", None) for each in inputs):
        raise ConfigurationError(
            f"--delimiter {delimiter!r} has no effect: no input is CSV", hint="leave it out"
        )
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigurationError(
            f"--delimiter {delimiter!r} is not one character that can separate fields",
            hint="write one character, for example --delimiter ';'",
        )


def _key_kinds(key: TableKey) -> dict[str, str]:
    return {name: key.kinds[name] for name in key.names}


def _check_journal(
    journal: str | Path | None, dead_letters: str | Path | None, inputs: Iterable[Input]
) -> None:
    """Raise ConfigurationError if the journal is also the dead-letter file or an input."""
    if journal is None:
        return
    place = Path(journal).resolve()
    if dead_letters is not None and Path(dead_letters).resolve() == place:
        raise ConfigurationError(
            f"--journal and --dead-letters both name {journal}", hint="name two different files"
        )
    if any(not each.is_stdin and Path(each.name).resolve() == place for each in inputs):
        raise ConfigurationError(
            f"--journal {journal} is one of the files to load",
            hint="name another file for the journal",
        )


def _check_dead_letters(path: str | Path | None, inputs: Iterable[Input]) -> None:
    """Raise ConfigurationError if the dead-letter file is one of the inputs."""
    if path is None or not Path(path).exists():
        return
    for each in inputs:
        if Path(each.name).exists() and Path(each.name).samefile(path):
            raise ConfigurationError(
                f"--dead-letters {path} is one of the files to load",
                hint="name another file for the dead letters",
            )

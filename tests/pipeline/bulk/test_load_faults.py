"""Loads through rejections, throttling, lost replies, crashes at any moment, and bad rows."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    AccessDenied,
    BulkError,
    ConfigurationError,
    InternalServerError,
    JournalDiffers,
    ReplyLost,
    ThroughputExceeded,
    TooManyErrors,
)
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.export.export import ExportOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.job.journal import Journal, JournalState
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, load
from stator.testing import Faults, FaultyTransport, Killed

from .stock import (
    ITEMS,
    ROWS,
    Through,
    create,
    engine_target,
    packed,
    seeded,
    stored,
    target_through,
    write_lines,
)


def body(request: Mapping[str, Any]) -> Any:
    """A request as the service sees it."""
    return orjson.loads(orjson.dumps(request))


# -- what the service does


def test_what_is_left_unprocessed_is_sent_again_until_it_is_written(tmp_path: Path) -> None:
    chance = seeded()

    def leave_some(
        operation: str, request: Mapping[str, Any], reply: dict[str, Any]
    ) -> dict[str, Any]:
        if operation != "BatchWriteItem":
            return reply
        entries = body(request)["RequestItems"]["orders"]
        left = [entry for entry in entries if chance.random() < 0.5]
        return {**reply, "UnprocessedItems": {"orders": left} if left else {}}

    with Engine.open() as engine:
        create(engine)
        target = target_through(Through(engine, answer=leave_some))
        report = load(str(write_lines(tmp_path / "x.jsonl", ROWS)), target, clock=VirtualClock())
        assert (report.written, report.failed) == (60, 0)
        assert report.throttled > 0
        assert stored(engine) == ITEMS


@pytest.mark.parametrize(
    "error", [ThroughputExceeded, InternalServerError, lambda: ReplyLost("gone")]
)
def test_what_may_pass_by_itself_is_tried_again(error: Any, tmp_path: Path) -> None:
    chance = seeded()

    def fail(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem" and chance.random() < 0.7:
            raise error()

    with Engine.open() as engine:
        create(engine)
        report = load(
            str(write_lines(tmp_path / "x.jsonl", ROWS)),
            target_through(Through(engine, fail)),
            clock=VirtualClock(),
        )
        assert report.written == 60
        assert stored(engine) == ITEMS


def test_a_table_with_a_limit_is_written_no_faster_and_no_slower_than_it_takes(
    tmp_path: Path,
) -> None:
    """A bucket of 100 units a second throttles the rest; the load settles near that rate."""
    clock = VirtualClock()
    limit, rows = 100.0, [{"pk": str(number)} for number in range(4000)]
    bucket = {"tokens": limit, "at": clock.now(), "refused": 0}

    def throttle(operation: str, request: Mapping[str, Any]) -> None:
        if operation != "BatchWriteItem":
            return
        units = len(body(request)["RequestItems"]["orders"])
        bucket["tokens"] = min(limit, bucket["tokens"] + (clock.now() - bucket["at"]) * limit)
        bucket["at"] = clock.now()
        if bucket["tokens"] < units:
            bucket["refused"] += 1
            reason = {"reason": "TableWriteProvisionedThroughputExceeded", "resource": "orders"}
            raise ThroughputExceeded(throttling_reasons=[reason])
        bucket["tokens"] -= units

    with Engine.open() as engine:
        create(engine)
        target = target_through(Through(engine, throttle))
        started = clock.now()
        report = load(
            str(write_lines(tmp_path / "x.jsonl", rows)),
            target,
            LoadOptions(writers=1),
            clock=clock,
        )
        passed = clock.now() - started
        assert report.written == 4000
        assert 39 <= passed <= 120  # 40 seconds is the least the table allows
        assert bucket["refused"] < 160  # of the 160 requests and more that are sent


def test_a_rate_is_kept(tmp_path: Path) -> None:
    clock = VirtualClock()
    with Engine.open() as engine:
        create(engine)
        started = clock.now()
        load(
            str(write_lines(tmp_path / "x.jsonl", [{"pk": str(number)} for number in range(1000)])),
            engine_target(engine),
            LoadOptions(rate=50, writers=1),
            clock=clock,
        )
        assert clock.now() - started == pytest.approx(1000 / 50, rel=0.1)


def test_a_service_that_says_no_ends_the_run_and_the_journal_stays(tmp_path: Path) -> None:
    calls = 0

    def refuse(operation: str, request: Mapping[str, Any]) -> None:
        nonlocal calls
        calls += operation == "BatchWriteItem"
        if calls == 2:
            raise AccessDenied("not yours")

    path = write_lines(tmp_path / "x.jsonl", ROWS)
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(AccessDenied):
            load(str(path), target_through(Through(engine, refuse)), LoadOptions(writers=1))
        with pytest.raises(BulkError, match="did not finish"):
            load(str(path), target_through(Through(engine)))
        report = load(str(path), target_through(Through(engine)), LoadOptions(resume=True))
        assert report.written == 60
        assert stored(engine) == ITEMS
        assert not list(tmp_path.glob("*.journal"))


def test_a_service_that_takes_nothing_for_minutes_ends_the_run(tmp_path: Path) -> None:
    def never(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            raise ThroughputExceeded

    with Engine.open() as engine:
        create(engine)
        with pytest.raises(ThroughputExceeded):
            load(
                str(write_lines(tmp_path / "x.jsonl", ROWS)),
                target_through(Through(engine, never)),
                clock=VirtualClock(),
            )


# -- rows that are no items


def test_bad_rows_go_to_the_dead_letters_and_stop_nothing(tmp_path: Path) -> None:
    rows: list[str] = [json.dumps(row) for row in ROWS]
    rows[3] = "{not json"
    rows[10] = json.dumps({"pk": "", "x": 1})
    rows[20] = json.dumps({"total": 1})
    rows[30] = json.dumps({"pk": "large", "x": "y" * 410_000})
    rows[40] = "[1]"
    rows.insert(50, "")
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(rows) + "\n")
    with Engine.open() as engine:
        create(engine)
        report = load(
            str(path), engine_target(engine), LoadOptions(dead_letters=tmp_path / "dead.jsonl")
        )
        letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert (report.read, report.written, report.failed) == (60, 55, 5)
        assert {letter["row"] for letter in letters} == {4, 11, 21, 31, 41}
        reasons = {letter["row"]: letter["reason"] for letter in letters}
        assert "not JSON" in reasons[4]
        assert "empty" in reasons[11]
        assert "the key attribute pk is missing" in reasons[21]
        assert "maximum allowed size" in reasons[31]
        assert len(stored(engine)) == 55


def test_csv_rows_of_the_wrong_length_and_values_of_the_wrong_type(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = ["pk,n"] + [f"k{number},{number}" for number in range(2500)]
    lines[5] = "k4,4,extra"
    lines[2400] = "k2399,many"  # behind the head by which the column was taken for numbers
    path.write_text("\n".join(lines))
    with Engine.open() as engine:
        create(engine)
        report = load(
            str(path), engine_target(engine), LoadOptions(dead_letters=tmp_path / "dead.jsonl")
        )
        letters = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert (report.written, report.failed) == (2498, 2)
        assert [(letter["row"], letter["reason"]) for letter in letters] == [
            (5, "3 fields where the header has 2"),
            (2400, "n: 'many' is not a number"),
        ]


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.csv.gz", "x.jsonl.zst", "x.parquet"])
def test_a_damaged_input_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    content = packed(path, "zstd" if name.endswith("zst") else "gzip").read_bytes()
    (tmp_path / name).write_bytes(
        b"PAR1 and no more" if name.endswith("parquet") else content[: len(content) // 2]
    )
    with Engine.open() as engine:
        create(engine)
        with pytest.raises((BulkError, ConfigurationError), match=name.replace(".", "[.]")):
            load(str(tmp_path / name), engine_target(engine))


def test_too_many_errors_end_the_run(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"nokey": 1}] * 10)
    with Engine.open() as engine:
        create(engine)
        with pytest.raises(TooManyErrors, match="10 rows failed and 3 were allowed"):
            load(str(path), engine_target(engine), LoadOptions(max_errors=3))


# -- conditions


def test_a_condition_keeps_what_is_there_and_an_identical_item_is_no_failure(
    tmp_path: Path,
) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    options = LoadOptions(
        condition="attribute_not_exists(pk)", dead_letters=tmp_path / "dead.jsonl"
    )
    with Engine.open() as engine:
        create(engine)
        engine.call(
            "PutItem",
            {"TableName": "orders", "Item": {"pk": {"S": "order-0001"}, "other": {"S": "x"}}},
        )
        engine.call("PutItem", {"TableName": "orders", "Item": ITEMS["order-0002"]})
        report = load(str(path), engine_target(engine), options)
        assert (report.written, report.already_there, report.failed) == (59, 1, 1)
        assert stored(engine)["order-0001"] == {"pk": {"S": "order-0001"}, "other": {"S": "x"}}
        [letter] = [json.loads(line) for line in (tmp_path / "dead.jsonl").read_text().splitlines()]
        assert letter["row"] == 2


def test_a_condition_sees_the_rows_own_attributes(tmp_path: Path) -> None:
    rows = [{"pk": "a", "rev": 3}, {"pk": "a", "rev": 5}, {"pk": "a", "rev": 4}, {"pk": "b"}]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine:
        create(engine)
        report = load(
            str(path),
            engine_target(engine),
            LoadOptions(condition="attribute_not_exists(pk) OR #rev < :rev"),
        )
        assert (report.written, report.failed) == (2, 2)
        assert stored(engine)["a"]["rev"] == {"N": "5"}


def test_rows_with_a_condition_share_requests(tmp_path: Path) -> None:
    rows = [{"pk": f"{number:04d}", "n": number} for number in range(1000)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine:
        create(engine)
        through = Through(engine)
        options = LoadOptions(condition="attribute_not_exists(pk)", writers=1)
        assert load(str(path), target_through(through), options).written == 1000
        writes = [each for each in through.operations if each.startswith("Batch")]
        assert writes == ["BatchExecuteStatement"] * 40
        assert "PutItem" not in through.operations


NEWER = "attribute_not_exists(pk) OR #rev < :rev"


@pytest.mark.parametrize("seed", range(12))
def test_the_newest_rows_win_and_every_row_counts_once_through_faults(
    seed: int, tmp_path: Path
) -> None:
    """Rows of the same items in any order, some of them stored before, and faults of all kinds."""
    chance = seeded(seed)
    before = {f"k{at}": chance.randrange(20) for at in range(0, 60, 2)}
    rows: list[Any] = [
        {"pk": f"k{chance.randrange(60)}", "rev": chance.randrange(40)} for _ in range(400)
    ]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine:
        create(engine)
        for key, rev in before.items():
            item = {"pk": {"S": key}, "rev": {"N": str(rev)}, "old": {"S": "x"}}
            engine.call("PutItem", {"TableName": "orders", "Item": item})
        transport = FaultyTransport(
            EngineTransport(engine, owned=False),
            Faults.mixed(seed, 0.3),
            clock=(clock := VirtualClock()),
        )
        options = LoadOptions(condition=NEWER, window_rows=50, writers=1)
        report = load(str(path), target_through(transport), options, clock=clock)
        assert transport.injected
        newest = dict(before)
        for row in rows:
            newest[row["pk"]] = max(newest.get(row["pk"], -1), row["rev"])
        found = stored(engine)
        assert {key: int(item["rev"]["N"]) for key, item in found.items()} == newest
        for key, item in found.items():  # a replaced item keeps nothing of the one before
            assert ("old" in item) == (newest[key] == before.get(key))
        assert report.written + report.failed == len(rows)


def test_of_rows_with_one_key_the_last_stays(tmp_path: Path) -> None:
    rows = [{"pk": str(number % 5), "n": number} for number in range(500)]
    path = write_lines(tmp_path / "x.jsonl", rows)
    with Engine.open() as engine:
        create(engine)
        report = load(str(path), engine_target(engine), LoadOptions(window_rows=30))
        assert report.written == 500
        assert {key: item["n"]["N"] for key, item in stored(engine).items()} == {
            str(k): str(495 + k) for k in range(5)
        }


# -- crashes


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    deaths=st.lists(st.tuples(st.integers(1, 25), st.integers(0, 40), st.booleans()), max_size=4),
    condition=st.booleans(),
    bad=st.sets(st.integers(0, 299), max_size=40),
)
def test_no_row_is_lost_or_doubled_whenever_the_process_dies(
    deaths: list[tuple[int, int, bool]], condition: bool, bad: set[int]
) -> None:
    """The process dies before or after a call, and only the first journals reached the disk."""
    rows: list[Any] = [{"pk": f"{number}", "n": number} for number in range(300)]
    for number in bad:
        rows[number] = {"n": number}
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine.open() as engine,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("stator.pipeline.bulk.load.readers.BLOCK_ROWS", 20)
        create(engine)
        path = write_lines(Path(folder) / "x.jsonl", rows)
        letters = Path(folder) / "dead.jsonl"
        options = LoadOptions(
            condition="attribute_not_exists(pk)" if condition else None,
            dead_letters=letters,
            window_rows=40,
            writers=2,
        )
        for at, journals, is_after in deaths:
            if not _die(engine, path, options, at, journals, is_after):
                break
        resume = bool(list(Path(folder).glob("*.journal")))
        report = load(str(path), target_through(Through(engine)), _with(options, resume=resume))
        wanted = {str(number) for number in range(300) if number not in bad}
        assert {key: item["n"]["N"] for key, item in stored(engine).items()} == {
            key: key for key in wanted
        }
        assert (report.read, report.written, report.failed) == (300, len(wanted), len(bad))
        found = [json.loads(line)["row"] - 1 for line in letters.read_text().splitlines()]
        assert sorted(found) == sorted(bad)


def _with(options: LoadOptions, **changes: Any) -> LoadOptions:
    from dataclasses import replace

    return replace(options, **changes)


def _die(
    engine: Engine, path: Path, options: LoadOptions, at: int, journals: int, is_after: bool
) -> bool:
    """One run that dies; False when it was through before."""
    calls = written = 0
    dead = False

    def count(operation: str) -> None:
        nonlocal calls, dead
        calls += operation in ("BatchWriteItem", "BatchExecuteStatement", "PutItem")
        if dead or calls >= at:
            dead = True
            raise Killed

    def before(operation: str, request: Mapping[str, Any]) -> None:
        if not is_after:
            count(operation)

    def after(operation: str, request: Mapping[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if is_after:
            count(operation)
        return reply

    transport = Through(engine, before, after)
    resume = bool(list(path.parent.glob("*.journal")))
    keep = Journal.write

    def write(self: Journal, state: JournalState) -> None:
        nonlocal written
        written += 1
        if written <= journals and not dead:
            keep(self, state)

    plan = LoadPlan(str(path), target_through(transport), _with(options, resume=resume))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "write", write)
        patch.setattr("stator.pipeline.bulk.job.write_job._CHECKPOINT_SECONDS", 0.0)
        patch.setattr("stator.pipeline.bulk.job.write_job._LOOK_SECONDS", 0.0005)
        try:
            plan.run()
        except Killed:
            return True
    return False


def test_a_load_that_is_killed_again_and_again_gets_on(tmp_path: Path) -> None:
    """Each run sends five requests of a window of 2,000 rows, and is killed at the sixth.

    Before each request the run waits for a checkpoint that began after the one before was done.
    """
    path = write_lines(tmp_path / "x.jsonl", [{"pk": f"{number}"} for number in range(2000)])
    checkpoints = threading.Semaphore(0)
    sent: list[str] = []
    keep = Journal.write

    def write(self: Journal, state: JournalState) -> None:
        keep(self, state)
        checkpoints.release()

    def before(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            while checkpoints.acquire(blocking=False):
                pass
            for _ in range(2):  # the first may have begun before the last request was done
                checkpoints.acquire(timeout=5)
            sent.append(operation)
            if len(sent) > 5:
                raise Killed

    with Engine.open() as engine, pytest.MonkeyPatch.context() as patch:
        create(engine)
        patch.setattr(Journal, "write", write)
        patch.setattr("stator.pipeline.bulk.job.write_job._CHECKPOINT_SECONDS", 0.0)
        patch.setattr("stator.pipeline.bulk.job.write_job._LOOK_SECONDS", 0.0005)
        for _ in range(2000 // (5 * 25)):
            sent.clear()
            with suppress(Killed):
                options = LoadOptions(writers=1, resume=True)
                load(str(path), target_through(Through(engine, before)), options)
        assert len(stored(engine)) == 2000


def test_a_supervisor_starts_and_restarts_a_job_with_one_command(tmp_path: Path) -> None:
    """``resume`` starts from the beginning when there is no journal: load, copy and export."""
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    deaths = [0, 1, 2]
    with Engine.open() as engine, Engine.open() as other:
        create(engine)
        create(other)

        def run(job: str, die: Any) -> Any:
            target = target_through(Through(engine, die))
            if job == "load":
                return load(str(path), target, LoadOptions(resume=True)).written
            if job == "export":
                out = ExportOptions(resume=True)
                return table_export(target, str(tmp_path / "out"), out, segments=2).run().items
            copy = CopyOptions(resume=True, journal=tmp_path / "copy.journal", segments=2)
            return Copy(target, target_through(Through(other), place="other"), copy).run().written

        for job in ("load", "export", "copy"):
            for death in deaths:
                with suppress(Killed):
                    run(job, _dying_after(death))
            assert run(job, None) == 60
        assert stored(other) == stored(engine) == ITEMS


def _dying_after(calls: int) -> Any:
    left = calls

    def die(operation: str, request: Mapping[str, Any]) -> None:
        nonlocal left
        if operation in ("Scan", "BatchWriteItem"):
            left -= 1
            if left < 0:
                raise Killed

    return die


def test_a_changed_input_or_other_options_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)

    def die(operation: str, request: Mapping[str, Any]) -> None:
        if operation == "BatchWriteItem":
            raise Killed

    with Engine.open() as engine:
        create(engine)
        with pytest.raises(Killed):
            load(str(path), target_through(Through(engine, die)))
        with pytest.raises(JournalDiffers, match="map was"):
            load(
                str(path), target_through(Through(engine)), LoadOptions(resume=True, map=("note=",))
            )
        write_lines(path, ROWS[:10])
        with pytest.raises(
            JournalDiffers,
            match=r"inputs: .* has changed: it had .* bytes, modified 20.*, and now has",
        ):
            load(str(path), target_through(Through(engine)), LoadOptions(resume=True))
        assert (
            load(str(path), target_through(Through(engine)), LoadOptions(restart=True)).written
            == 10
        )

"""Whatever is written, and whenever: copies are of one moment.

Random writes at random times, with steps of backups and restores in between, are compared with
dictionaries.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.recovery import capture, restores, tasks
from stator.engine.recovery.tasks import Task
from stator.errors import ResourceInUse

from .world import START, Items, World, item

KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 3))
WRITES = st.one_of(
    st.tuples(st.just("put"), KEYS, st.sampled_from(["", "x", "y"])),
    st.tuples(st.just("delete"), KEYS, st.just("")),
    st.tuples(st.just("pair"), KEYS, st.sampled_from("xy")),
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two items make a chunk, so that work on a dozen takes many steps."""
    monkeypatch.setattr(capture, "CHUNK_ITEMS", 2)
    monkeypatch.setattr(restores, "CHUNK_ITEMS", 2)


@contextmanager
def opened(**options: Any) -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "exports").mkdir()
        clock = VirtualClock(START)
        with Engine.open(clock=clock, buckets=folder, **options) as engine:
            world = World(engine, clock, Path(folder) / "exports")
            world.create()
            yield world


def write(world: World, program: tuple[str, tuple[str, int], str], mark: int) -> None:
    kind, (pk, sk), group = program
    content = item(pk, sk, n={"N": str(mark)}, **({"g": {"S": group}} if group else {}))
    if kind == "put":
        world.put(content)
    elif kind == "delete":
        world.delete(pk, sk)
    else:
        other = {**content, "pk": {"S": "z"}}
        actions = [{"Put": {"TableName": "orders", "Item": each}} for each in (content, other)]
        world.call("TransactWriteItems", TransactItems=actions)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), WRITES), max_size=30), st.data())
def test_a_restore_to_any_second_has_the_items_of_that_second(
    program: list[tuple[int, tuple[str, tuple[str, int], str]]], data: st.DataObject
) -> None:
    with opened() as world:
        world.put(item("a", 0, n={"N": "-1"}))
        world.enable()
        states: dict[int, Items] = {0: world.items()}
        elapsed = 0
        for mark, (wait, each) in enumerate(program):
            world.clock.advance(wait)
            elapsed += wait
            write(world, each, mark)
            states[elapsed] = world.items()
        world.clock.advance(301)
        second = data.draw(st.integers(0, elapsed + 1))
        expected = states[max(at for at in states if at <= second)]
        world.restore_to(START + second, "restored")
        world.check_whole("restored", expected)
        assert world.exported(world.export(ExportTime=START + second)) == expected


@settings(max_examples=60)
@given(st.lists(st.one_of(WRITES, st.just("step"), st.just("backup")), max_size=60))
def test_a_backup_has_the_items_of_the_moment_it_was_asked_for(program: list[Any]) -> None:
    """The steps of several backups are carried out one by one, between writes."""
    with opened() as world:
        recovery = world.engine.recovery
        for count in range(7):
            world.put(item("abc"[count % 3], count, n={"N": "-1"}))
        waiting: list[Task] = []
        moments: list[tuple[str, Items]] = []
        start = recovery.tasks.start
        recovery.tasks.start = (  # type: ignore[method-assign]  # replaced for the test
            lambda task, *, at_once: waiting.append(task)
        )
        for mark, each in enumerate(["backup", *program]):
            if each == "backup":
                moments.append((world.back_up(), world.items()))
            elif each != "step":
                write(world, each, mark)
            elif waiting:
                recovery.tasks.step(waiting[mark % len(waiting)])
        recovery.tasks.start = start  # type: ignore[method-assign]  # put back
        for task in waiting:
            recovery.tasks.start(task, at_once=True)
        world.settle()
        for number, (arn, expected) in enumerate(moments):
            world.restore(arn, f"restored-{number}")
            world.check_whole(f"restored-{number}", expected)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 2000), WRITES), max_size=25),
    st.sampled_from(["NEW_IMAGE", None]),
)
def test_incremental_exports_after_a_full_one_make_the_table(
    program: list[tuple[int, tuple[str, tuple[str, int], str]]], view: str | None
) -> None:
    with opened() as world:
        world.enable()
        world.put(item("a", 0, n={"N": "-1"}))
        world.clock.advance(1)
        state = world.exported(world.export())
        since = START + 1
        for mark, (wait, each) in enumerate(program):
            write(world, each, mark)
            world.clock.advance(wait)
            if world.clock.now() - since >= 3600:
                since = apply_changes(world, state, since, view)
        world.clock.advance(3600)
        apply_changes(world, state, since, view)
        assert state == world.items()


def apply_changes(world: World, state: Items, since: float, view: str | None) -> float:
    """Bring a state forward by an incremental export, whose old images must be the state before."""
    until = float(int(world.clock.now()))
    exported = world.export_changes(
        since, until, **({} if view is None else {"ExportViewType": view})
    )
    for change in world.lines(exported):
        key = (change["Keys"]["pk"]["S"], change["Keys"]["sk"]["N"])
        assert since * 1e6 <= int(change["Metadata"]["WriteTimestampMicros"]["N"]) < until * 1e6
        if view is None:
            assert change.get("OldImage") == state.get(key)
        else:
            assert "OldImage" not in change
        if "NewImage" in change:
            state[key] = change["NewImage"]
        else:
            state.pop(key, None)
    return until


def test_a_backup_under_load_is_of_one_moment_and_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Amounts move between accounts while the table is copied: the total never changes."""
    monkeypatch.setattr(capture, "CHUNK_ITEMS", 10)
    monkeypatch.setattr(tasks, "STEPS_AT_ONCE", 0)
    (tmp_path / "exports").mkdir()
    accounts, total = 300, 300 * 100
    with Engine.open(str(tmp_path / "data"), durability="process", buckets=str(tmp_path)) as engine:
        world = World(engine, VirtualClock(), tmp_path / "exports")
        world.create()
        world.enable()
        world.put(*(item("account", number, amount={"N": "100"}) for number in range(accounts)))
        stop = threading.Event()
        moved = [0, 0]

        def transfer(writer: int) -> None:
            step = writer + 1
            while not stop.is_set():
                source, target = step % accounts, (step * 7 + 1) % accounts
                if source != target:
                    engine.call(
                        "TransactWriteItems", {"TransactItems": [add(source, -1), add(target, 1)]}
                    )
                    moved[writer] += 1
                step += 13

        writers = [threading.Thread(target=transfer, args=(number,)) for number in range(2)]
        for writer in writers:
            writer.start()
        arns = [world.back_up(f"backup-{number}") for number in range(3)]
        exports = [world.export() for _ in range(2)]
        world.settle()
        during = sum(moved)
        stop.set()
        for writer in writers:
            writer.join()
        assert during > 0
        for number, arn in enumerate(arns):
            world.restore(arn, f"restored-{number}")
            assert amounts(world.items(f"restored-{number}")) == (accounts, total)
        for export in exports:
            assert amounts(world.exported(export)) == (accounts, total)


def add(number: int, amount: int) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": "orders",
            "Key": item("account", number),
            "UpdateExpression": "ADD amount :a",
            "ExpressionAttributeValues": {":a": {"N": str(amount)}},
        }
    }


def amounts(items: Items) -> tuple[int, int]:
    return len(items), sum(int(each["amount"]["N"]) for each in items.values())


def test_a_table_with_history_in_use_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as world:
        world.enable()
        world.put(item("a", 1))
        started: list[Task] = []
        with monkeypatch.context() as patched:
            patched.setattr(
                world.engine.recovery.tasks, "start", lambda task, at_once: started.append(task)
            )
            world.export()
        world.refused("DeleteTable", ResourceInUse, TableName="orders")
        world.engine.recovery.tasks.start(started[0], at_once=False)
        world.settle()
        [summary] = world.call("ListExports")["ExportSummaries"]
        assert summary["ExportStatus"] == "COMPLETED"
        manifest = next(world.bucket.rglob("manifest-files.json")).read_text().splitlines()
        lines = [
            gzip.decompress((world.bucket / json.loads(line)["dataFileS3Key"]).read_bytes())
            for line in manifest
        ]
        assert b"".join(lines) == b'{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}\n'

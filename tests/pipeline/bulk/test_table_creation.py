"""``load --create``: missing tables are created by the design or by the key that options state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stator import Design, Entity, connect, ident, unique
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import ConfigurationError, ReplyLost
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.load.estimate import estimate
from stator.pipeline.bulk.load.load import LoadOptions, LoadPlan, load
from stator.pipeline.bulk.table_creation import key_creation
from stator.pipeline.bulk.targets import BulkTarget
from stator.tables.connection import make_context
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.testing import kill_points

from .stock import ITEMS, ROWS, Through, create, engine_target, stored, target_through, write_lines


class Member(Entity):
    member_id: str = ident()
    email: str = unique()


club = Design("club", [Member])


@pytest.fixture
def engine() -> Any:
    with Engine.open() as made:
        yield made


def tables(engine: Engine) -> list[str]:
    return list(engine.call("ListTables", {})["TableNames"])


def remote_target(engine: Engine) -> BulkTarget:
    """A target as at an http address, where opening it creates no table."""
    context = make_context(club, {"clock": VirtualClock()})
    transport = EngineTransport(engine, owned=False)
    entity = context.schema.of(Member)
    return BulkTarget(
        transport,
        entity.table.name,
        address="http://test",
        schema=context.schema,
        entity=entity,
        db=Db(context, Runner(transport, context.clock)),
        context=context,
        owned=False,
    )


def test_a_plain_table_is_created_with_the_stated_key(engine: Engine, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    options = LoadOptions(create=True, key=("pk=S", "quantity=N"))
    report = load(str(path), engine_target(engine), options, clock=VirtualClock())
    assert report.written == 60
    assert stored(engine) == ITEMS
    found = engine.call("DescribeTable", {"TableName": "orders"})["Table"]
    assert [each["AttributeName"] for each in found["KeySchema"]] == ["pk", "quantity"]
    assert load(str(path), engine_target(engine), options).written == 60  # it exists by now


def test_the_tables_of_a_design_are_created(engine: Engine, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"member_id": "m1", "email": "a@b"}])
    with pytest.raises(ConfigurationError, match="there is no table club") as raised:
        load(str(path), remote_target(engine))
    assert str(raised.value.hint).startswith("create it with --create, or choose")
    assert tables(engine) == []
    report = load(str(path), remote_target(engine), LoadOptions(create=True))
    assert (report.written, report.failed) == (1, 0)
    with connect(club, engine) as db:
        found = db.get(Member, member_id="m1")
        assert found is not None and found.email == "a@b"


def test_a_dry_run_creates_nothing(engine: Engine, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    plan = LoadPlan(str(path), engine_target(engine), LoadOptions(create=True, key=("pk=S",)))
    assert estimate(plan).items == 60
    assert tables(engine) == []


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (LoadOptions(), "there is no table orders", "--create --key pk=S"),
        (LoadOptions(create=True), "--create needs to know its key", "--key pk=S --key sk=N"),
        (LoadOptions(key=("pk=S",)), "--key pk=S has no use here", "add --create"),
        (LoadOptions(create=True, key=("pk",)), "--key pk cannot be parsed", "NAME=S|N|B"),
        (LoadOptions(create=True, key=("pk=BOOL",)), "pk=BOOL cannot be parsed", "NAME=S|N|B"),
        (LoadOptions(create=True, key=("a=S", "a=S")), "--key names a, a", "the partition key"),
        (LoadOptions(create=True, key=("a=S", "b=S", "c=S")), "names a, b, c", "the partition"),
    ],
)
def test_what_is_missing_to_create_a_table_is_said(
    engine: Engine, tmp_path: Path, options: LoadOptions, message: str, hint: str
) -> None:
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    with pytest.raises(ConfigurationError, match=message) as raised:
        load(str(path), engine_target(engine), options)
    assert hint in str(raised.value.hint)
    assert tables(engine) == []


def test_an_existing_table_with_another_key_is_refused(engine: Engine, tmp_path: Path) -> None:
    create(engine)
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    with pytest.raises(ConfigurationError, match="exists with the key pk=S, but --key says id=S"):
        load(str(path), engine_target(engine), LoadOptions(create=True, key=("id=S",)))
    with pytest.raises(ConfigurationError, match="--key id=S has no use here"):
        load(str(path), remote_target(engine), LoadOptions(create=True, key=("id=S",)))


@pytest.mark.parametrize("job", ["load", "copy"])
def test_the_same_command_continues_wherever_it_was_killed(job: str, tmp_path: Path) -> None:
    """Killed at each call, also while the table is being created, then started once more."""
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    clock = VirtualClock()
    with Engine.open() as source, Engine.open(clock=clock, status_delay_seconds=10) as other:
        create(source)
        load(str(path), engine_target(source))

        def run(transport: Any) -> int:
            target = target_through(transport, place="other")
            if job == "load":
                options = LoadOptions(create=True, key=("pk=S",), resume=True, writers=1)
                return load(str(path), target, options, clock=clock).written
            options_of_copy = CopyOptions(
                create=True, resume=True, segments=2, writers=1, journal=tmp_path / "copy.journal"
            )
            return Copy(engine_target(source), target, options_of_copy, clock=clock).run().written

        transport = EngineTransport(other, owned=False)
        points = 0
        for point in kill_points(transport, run):
            points += 1
            assert run(transport) == 60, point
            assert stored(other) == ITEMS, point
            assert not list(tmp_path.glob("*.journal"))
            other.call("DeleteTable", {"TableName": "orders"})
            clock.advance(20)
        assert stored(other) == ITEMS
        assert points >= 12


@pytest.mark.parametrize("job", ["load", "copy"])
def test_a_lost_reply_to_the_creation_is_no_error(job: str, tmp_path: Path) -> None:
    lost = 0

    def lose(operation: str, request: Any, reply: dict[str, Any]) -> dict[str, Any]:
        nonlocal lost
        if operation == "CreateTable" and not lost:
            lost += 1
            raise ReplyLost("gone")
        return reply

    with Engine.open() as source, Engine.open(status_delay_seconds=0) as other:
        target = target_through(Through(other, answer=lose), place="other")
        if job == "load":
            path = write_lines(tmp_path / "x.jsonl", ROWS)
            load(str(path), target, LoadOptions(create=True, key=("pk=S",)), clock=VirtualClock())
        else:
            source.call("CreateTable", key_creation("orders", ["pk=S"]))
            options = CopyOptions(create=True, journal=tmp_path / "journal")
            Copy(engine_target(source), target, options, clock=VirtualClock()).run()
        assert lost == 1
        assert tables(other) == ["orders"]

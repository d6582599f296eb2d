"""Every public method with every wrong kind of value: only errors of ours, with what to do.

``wrong_uses`` has the methods, the values and the rule for errors.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

from stator import Db, attr, connect, connect_async, patterns
from stator.errors import StatorError
from stator.patterns import Lock, Once
from stator.tables.operation import OnDb
from stator.testing import VirtualClock

from . import wrong_uses as sweep
from .wrong_uses import ID, NOW, VALUES, Guarded, Stranger, Wide, complaint, finish, replaced, wide


@pytest.fixture
def db() -> Iterator[Db]:
    with connect(sweep.DESIGN, plan=sweep.PLAN, clock=VirtualClock(NOW.timestamp())) as made:
        made.put(wide())
        made.put(Guarded(id="1", email=None))
        made.put(Stranger(id="1"))
        yield made


class Complaints:
    """Carries out wrong uses, and keeps what is wrong with their errors."""

    def __init__(self) -> None:
        self.tried = 0
        self.found: dict[str, list[str]] = {}

    def of(self, name: str, call: Callable[[], Any]) -> None:
        self.tried += 1
        what = complaint(call)
        if what is not None:
            self.found.setdefault(what, []).append(name)

    def check(self, least: int) -> None:
        shown = [f"{what}: {names[:3]}" for what, names in self.found.items()]
        assert not shown, "\n".join([f"{len(shown)} kinds", *shown[:20]])
        assert self.tried >= least


def test_methods_of_a_db(db: Any) -> None:
    complaints = Complaints()
    known = {name for name in dir(Db) if not name.startswith("_")} - {"close", "dry_run"}
    calls = sweep.db_calls()
    assert known == calls.keys()
    for method, right in calls.items():
        for argument, shown, wrong in replaced(right):

            def call(method: str = method, wrong: Callable[[], sweep.Made] = wrong) -> Any:
                args, named = wrong()
                return getattr(db, method)(*args, **named)

            complaints.of(f"{method} {argument}={shown}", call)
    for shown, value in VALUES.items():
        complaints.of(f"run {shown}", lambda value=value: db.run(value()))  # type: ignore[misc]
    complaints.check(5500)


def test_methods_of_an_async_db(db: Any) -> None:
    other: Any = connect_async(sweep.DESIGN, plan=sweep.PLAN)
    complaints = Complaints()

    async def finished(result: Any) -> None:
        if hasattr(result, "__aenter__"):
            async with result:
                pass
        elif isinstance(result, AsyncIterator):
            async for _ in result:
                pass
        elif asyncio.iscoroutine(result):
            await result

    with asyncio.Runner() as runner:
        runner.run(other.ensure())
        for method, right in sweep.db_calls().items():
            for argument, shown, wrong in replaced(right):

                def call(method: str = method, wrong: Callable[[], sweep.Made] = wrong) -> None:
                    args, named = wrong()

                    async def run() -> None:
                        await finished(getattr(other, method)(*args, **named))

                    runner.run(run())

                complaints.of(f"{method} {argument}={shown}", call)
        runner.run(other.close())
    complaints.check(5500)


def test_methods_of_a_transaction(db: Any) -> None:
    complaints = Complaints()
    for method, right in sweep.transaction_calls().items():
        for argument, shown, wrong in replaced(right):

            def call(method: str = method, wrong: Callable[[], sweep.Made] = wrong) -> None:
                args, named = wrong()
                with db.transaction() as tx:
                    finish(getattr(tx, method)(*args, **named))

            complaints.of(f"{method} {argument}={shown}", call)
    complaints.check(1000)


def test_methods_of_pattern_objects(db: Any) -> None:
    complaints = Complaints()
    known = {
        name
        for name in patterns.__all__
        if isinstance(found := getattr(patterns, name), type) and issubclass(found, OnDb)
    }
    assert known - sweep.MAKERS.keys() == {"BlobAudit", "HeldLock"}  # they take no values
    for kind, make in sweep.MAKERS.items():
        made = make(db)
        for method, signature in sweep.pattern_methods(type(made)):
            for argument, shown, wrong in replaced(lambda of=signature: sweep.pattern_call(of)):  # type: ignore[misc]
                if kind == "SeriesRollup" and shown in ("the first time", "the last time"):
                    continue  # thousands of years of days

                def call(
                    made: Any = made, method: str = method, wrong: Callable[[], Any] = wrong
                ) -> Any:
                    args, named = wrong()
                    return getattr(made, method)(*args, **named)

                complaints.of(f"{kind}.{method} {argument}={shown}", call)
    complaints.check(5000)


def test_arguments_of_patterns(db: Any) -> None:
    right: dict[str, Any] = {
        "team": "t", "count": 1, "start": NOW, "end": NOW.replace(year=2027), "month": "2026-03",
        "colours": [sweep.Colour.RED], "most": 5, "amount": Decimal(1), "key": uuid.UUID(int=1),
        "flag": True, "id": "1",
    }  # fmt: skip
    complaints = Complaints()
    for pattern in sweep.PATTERNS:
        for name in pattern.parameters:
            for shown, value in VALUES.items():

                def call(
                    pattern: Any = pattern, name: str = name, value: Callable[[], Any] = value
                ) -> Any:
                    given = {each: right[each] for each in pattern.parameters}
                    return db.all(pattern(**given | {name: value()}))

                complaints.of(f"{pattern.name} {name}={shown}", call)
    complaints.check(1000)


def test_values_of_fields_and_conditions(db: Any) -> None:
    complaints = Complaints()

    def of(name: str, value: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        field = getattr(Wide, name)
        return {
            "put": lambda: db.put(wide(**{name: value()})),
            "write_many": lambda: db.write_many([wide(**{name: value()})]),
            "patch": lambda: db.patch(Wide, {name: value()}, **ID),
            "==": lambda: db.patch(Wide, {"flag": True}, when=field == value(), **ID),
            "<": lambda: db.patch(Wide, {"flag": True}, when=field < value(), **ID),
            "is_in": lambda: db.delete(Wide, when=attr(field).is_in(value()), **ID),
            "begins": lambda: db.delete(Wide, when=attr(field).begins_with(value()), **ID),
            "contains": lambda: db.delete(Wide, when=attr(field).contains(value()), **ID),
            "between": lambda: db.delete(Wide, when=attr(field).between(value(), value()), **ID),
        }

    for name in Wide.__dataclass_fields__:
        for shown, value in VALUES.items():
            for what, call in of(name, value).items():
                complaints.of(f"{what} {name} {shown}", call)
    complaints.check(10_000)


def test_changes_of_an_update(db: Any) -> None:
    complaints = Complaints()
    for what, change in sweep.update_changes().items():
        for shown, value in VALUES.items():

            def call(
                change: Callable[[Any, Any], Any] = change, value: Callable[[], Any] = value
            ) -> None:
                with db.update(Wide, **ID) as opened:
                    change(opened, value())

            complaints.of(f"{what} {shown}", call)
    complaints.check(10_000)


def test_an_update_says_which_use_of_its_fields_is_wrong(db: Any) -> None:
    said = {
        "negative": (lambda o: o.lines.__setitem__(-1, 3), "-1 is neither a key"),
        "slice": (lambda o: o.lines.__setitem__(slice(0, 1), [3]), "a slice is neither a key"),
        "nan": (lambda o: setattr(o, "ratio", float("nan")), "a float that is finite, got nan"),
        "one element": (lambda o: o.lines.extend(5), "a int is not a list of values"),
        "text for a set": (lambda o: o.tags.update("ab"), "a str is not a set of values"),
    }
    for name, (change, text) in said.items():
        with pytest.raises(StatorError, match=text), db.update(Wide, **ID) as opened:
            change(opened)
            pytest.fail(name)


# --- blocks ---------------------------------------------------------------------------------------


def test_a_block_is_used_once_and_keeps_no_change_in_silence(db: Any) -> None:
    opening: Any = db.update(Wide, **ID)
    with pytest.raises(StatorError, match="count was set on the update itself"):
        opening.count = 5
    with opening as opened:
        opened.count = opened.count + 1
    with pytest.raises(StatorError, match="has ended: its block cannot be used twice"), opening:
        pytest.fail("it was entered again")
    for late in (
        lambda: setattr(opened, "count", 7), lambda: delattr(opened, "note"),
        lambda: opened.lines.append(1),
    ):  # fmt: skip
        with pytest.raises(StatorError, match="would be lost"):
            late()
    with db.transaction() as tx, tx.update(Wide, **ID) as inside:
        inside.count += 1
    with pytest.raises(StatorError, match="would be lost"):
        inside.count = 9
    assert db.get_one(Wide, **ID).count == 2


def test_with_and_async_with_are_not_mixed_up(db: Any) -> None:
    async def wrong_here() -> None:
        for block in blocks(db):
            with pytest.raises(StatorError, match="`async with`") as caught:
                async with block:
                    pytest.fail("it was entered")
            assert caught.value.hint is not None
            assert caught.value.hint.startswith("write `with ")

    async def wrong_there() -> None:
        other: Any = connect_async(sweep.DESIGN, plan=sweep.PLAN)
        await other.ensure()
        for block in blocks(other)[:-1]:
            with pytest.raises(StatorError, match="`with`") as caught, block:
                pytest.fail("it was entered")
            assert caught.value.hint is not None
            assert caught.value.hint.startswith("write `async with ")
        async with other.transaction() as tx:
            with pytest.raises(StatorError, match="`async with`"):
                async with tx.update(Wide, **ID):
                    pytest.fail("it was entered")
        await other.close()

    def blocks(of: Any) -> list[Any]:
        made = [
            of.update(Wide, **ID), of.transaction(), of, Lock(of, "x").held(),
            Once(of, "x").attempt("k"),
        ]  # fmt: skip
        with db.transaction() as tx:
            return [*made, tx.update(Wide, **ID)]

    asyncio.run(wrong_here())
    asyncio.run(wrong_there())


def test_a_refused_update_names_all_missing_fields_at_once(db: Any) -> None:
    from stator import Design, Entity, Query, find, ident, read

    class Task(
        Entity, index={"GSI1": ("T#{team}", "{state}#{due}"), "GSI2": ("D#{due}#{owner}", "T")}
    ):
        task_id: str = ident()
        team: str
        state: str
        due: str
        owner: str

    @read(rps=1)
    def of_state(team: str, state: str) -> Query[Task]:
        return find(Task).where(Task.team == team, Task.state == state)

    other: Any = connect(Design("tasks", [Task], [of_state]))
    other.put(Task(task_id="1", team="t", state="open", due="d", owner="o"))
    with pytest.raises(StatorError) as caught, other.update(Task, task_id="1") as task:
        task.state = "done"
    assert caught.value.missing == ("due", "owner")  # type: ignore[attr-defined]
    with other.update(Task, task_id="1") as task:
        task.state, task.due, task.owner = "done", "e", "p"
    assert other.get(Task, task_id="1").state == "done"

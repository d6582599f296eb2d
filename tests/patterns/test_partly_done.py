"""An operation that has written and cannot finish says so, and how to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stator import Design, Entity, connect, connect_async, ident
from stator.errors import PartlyDone, StatorError, ThroughputExceeded
from stator.patterns import Counter, Links, Rollup, Series, Tree
from stator.tables.observers import WRITES
from stator.testing import Fault, InterceptedCall, faulty

AT = datetime(2026, 11, 16, tzinfo=UTC)


class Folder(Entity):
    folder_id: str = ident()


class Tag(Entity):
    tag_id: str = ident()
    text: str = ""


class Reading(Entity):
    sensor: str = ident()
    at: datetime = ident()
    value: int = 0


DESIGN = Design("parts", [Folder, Tag])


def tree(db: Any) -> Any:
    return Tree(db, Folder)


def links(db: Any) -> Any:
    return Links(db, Folder, Tag, copy_right=(Tag.text,), name="tags")


def series(db: Any) -> Any:
    rollups = [Rollup("hour", of=Reading.value), Rollup("day", of=Reading.value)]
    return Series(db, Reading, by="sensor", at="at", name="readings", rollups=rollups)


def counter(db: Any) -> Any:
    return Counter(db, "views", shards=2)


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "move": lambda db: tree(db).move("b", "a"),
    "delete": lambda db: tree(db).delete("b"),
    "replace": lambda db: series(db).replace(Reading(sensor="s", at=AT, value=3)),
    "remove": lambda db: series(db).remove(Reading(sensor="s", at=AT, value=1)),
    "reset": lambda db: counter(db).reset(),
    "compact": lambda db: counter(db).compact(),
    "unlink_all": lambda db: links(db).unlink_all(left="a"),
}
RESUME: dict[str, Callable[[Any], Any]] = {
    **OPERATIONS,
    "move": lambda db: tree(db).resume(),
    "delete": lambda db: tree(db).resume(),
}


def prepare(db: Any) -> None:
    db.create(Folder(folder_id="a"))
    for name, parent in (("a", None), ("b", None), ("c", "b"), ("d", "c")):
        tree(db).add(Folder(folder_id=name), parent=parent)
    series(db).add(Reading(sensor="s", at=AT, value=1))
    series(db).add(Reading(sensor="s", at=AT + timedelta(minutes=1), value=1))
    for _ in range(20):
        counter(db).add(1)
    for number in range(3):
        db.create(Tag(tag_id=str(number)))
        links(db).link(Folder(folder_id="a"), Tag(tag_id=str(number)))


def state(db: Any) -> Any:
    day, days = (AT, AT + timedelta(days=1)), series(db).rollup("day", of=Reading.value)
    return (
        [(node.entity.folder_id, node.parent) for node in tree(db).descendants()],
        [each.value for each in series(db).latest("s", 9)],
        [(each.count, each.sum) for each in days.range("s", *day)],
        counter(db).value(),
        links(db).count(left="a"),
    )


def after_the_first_write(call: InterceptedCall, written: list[int]) -> Fault | None:
    if "_shards" in str(call.request):  # the entry of a bucket, which is open already
        return None
    if call.operation in WRITES and not written:
        written.append(call.number)
        return None
    return Fault("throttled") if written else None


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_step_that_fails_after_a_write(name: str) -> None:
    whole, half = connect(DESIGN), connect(DESIGN)
    prepare(whole)
    prepare(half)
    OPERATIONS[name](whole)
    written: list[int] = []
    with (
        faulty(half, lambda call: after_the_first_write(call, written)),
        pytest.raises(PartlyDone, match="a later step failed") as seen,
    ):
        OPERATIONS[name](half)
    assert seen.value.sent
    assert isinstance(seen.value.__cause__, StatorError)
    assert "()" in str(seen.value.hint)
    RESUME[name](half)
    assert state(half) == state(whole)


@pytest.mark.parametrize("name", OPERATIONS)
def test_before_the_first_write_it_is_only_throttled(name: str) -> None:
    db = connect(DESIGN)
    prepare(db)
    before = state(db)
    with faulty(db, lambda call: Fault("throttled")), pytest.raises(ThroughputExceeded):
        OPERATIONS[name](db)
    assert state(db) == before


def test_the_same_awaited() -> None:
    async def main() -> None:
        async with connect_async(DESIGN) as db:
            for folder in ("a", "b"):
                await tree(db).add(Folder(folder_id=folder))
            written: list[int] = []
            with (
                faulty(db, lambda call: after_the_first_write(call, written)),
                pytest.raises(PartlyDone, match="has moved"),
            ):
                await OPERATIONS["move"](db)
            assert (await tree(db).get("b")).parent == "a"

    asyncio.run(main())

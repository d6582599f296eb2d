"""``verify`` finds every way in which the parts of a folder can disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stator.engine import keyspace
from stator.engine.items import records
from stator.engine.verification import verify
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

from ..fuzz.play import play
from ..fuzz.world import World, new_world


@pytest.fixture
def world() -> Iterator[World]:
    with new_world() as world:
        item = {"pk": {"S": "t"}, "sk": {"N": "1"}, "ttl": {"N": "1999999999"}}
        world.engine.call("PutItem", {"TableName": "music", "Item": item})
        yield world


def _prefix(world: World, index: str | None = None) -> bytes:
    [table] = [each for each in world.engine.database.catalog.all() if each.name == "music"]
    if index is None:
        return table.prefix
    found = table.index(index)
    assert found is not None
    return found.prefix


def _first(storage: Storage, prefix: bytes) -> tuple[bytes, bytes]:
    return next(iter(storage.scan(prefix, after_prefix(prefix))))


def test_a_folder_in_order_has_no_faults(world: World) -> None:
    found = verify(world.engine.storage)
    assert found.faults == []
    assert (found.tables, found.items, found.backups) == (4, 16, 1)
    assert found.index_entries > 0
    assert found.stream_records == 9


def _lose_an_item(world: World) -> Changes:
    return {_first(world.engine.storage, _prefix(world))[0]: None}


def _lose_an_entry(world: World) -> Changes:
    return {_first(world.engine.storage, _prefix(world, "global"))[0]: None}


def _add_an_entry(world: World) -> Changes:
    key, entry = _first(world.engine.storage, _prefix(world, "global"))
    return {key + b"x": entry}


def _change_an_entry(world: World) -> Changes:
    key, entry = _first(world.engine.storage, _prefix(world, "global"))
    item = {**records.unpack(entry), "n": {"N": "6"}}
    return {key: records.pack(item, records.size_of(entry))}


def _change_an_item(world: World) -> Changes:
    key, record = _first(world.engine.storage, _prefix(world))
    item = {**records.unpack(record), "n": {"N": "6"}}
    return {key: records.pack(item, records.size_of(record))}


def _change_a_size(world: World) -> Changes:
    key, record = _first(world.engine.storage, _prefix(world))
    return {key: records.pack(records.unpack(record), 1)}


def _misplace_an_item(world: World) -> Changes:
    key, record = _first(world.engine.storage, _prefix(world))
    return {key: None, key[:-3] + b"y\0\0": record}


def _write_rubbish(world: World) -> Changes:
    return {_first(world.engine.storage, _prefix(world))[0]: b"\x01\0\0\0\1rubbish"}


def _change_a_count(world: World) -> Changes:
    key, record = _first(world.engine.storage, keyspace.STATS)
    return {key: (99).to_bytes(8, "big") + record[8:]}


def _lose_an_expiry_line(world: World) -> Changes:
    return {_first(world.engine.storage, b"x")[0]: None}


def _write_a_rubbish_record(world: World) -> Changes:
    return {_first(world.engine.storage, b"r")[0]: b"\0" * 12 + b"rubbish"}


def _lose_part_of_a_backup(world: World) -> Changes:
    return {_first(world.engine.storage, keyspace.AREAS)[0]: None}


def _write_a_rubbish_log_entry(world: World) -> Changes:
    return {_first(world.engine.storage, keyspace.LOG)[0]: b"\0"}


@pytest.mark.parametrize(
    ("break_it", "where", "problem"),
    [
        (_lose_an_item, "table music", "the stored count is"),
        (_lose_an_entry, "table music", "no entry in the index global"),
        (_add_an_entry, "index music.global", "belong to no item"),
        (_change_an_entry, "table music", "differs from its item"),
        (_change_an_item, "stream of music", "differs from the item"),
        (_change_a_size, "table music", "differs from the size in its header"),
        (_misplace_an_item, "table music", "a key that is not its own"),
        (_write_rubbish, "table music", "is not an item"),
        (_change_a_count, "table", "the stored count is 99"),
        (_lose_an_expiry_line, "table music", "not in the expiry list"),
        (_lose_an_item, "stream of music", "whether it exists"),
        (_write_a_rubbish_record, "stream of music", "is not a change"),
        (_lose_part_of_a_backup, "backup ", "its record says 8"),
        (_write_a_rubbish_log_entry, "the recovery log", "is not a change"),
    ],
)
def test_a_disagreement_is_found(
    world: World, break_it: Callable[[World], Changes], where: str, problem: str
) -> None:
    changes = break_it(world)
    world.engine.storage.write(changes)
    # The catalogue in memory still has the counts; a reader of the folder loads them.
    found = verify(world.engine.storage).faults
    assert any(fault.where.startswith(where) and problem in fault.problem for fault in found), found


@pytest.mark.parametrize("seed", range(5))
def test_random_requests_leave_a_folder_in_order(seed: int) -> None:
    for each in play(seed, 300, after=lambda world: _assert_in_order(world)):
        assert not each.is_broken


def _assert_in_order(world: World) -> None:
    world.engine.recovery.tasks.wait()
    assert verify(world.engine.storage).faults == []

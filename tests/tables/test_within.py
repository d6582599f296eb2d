"""A Db with a deadline shares the connection, and does not close it."""

from __future__ import annotations

import asyncio

import pytest

from stator import Design, Entity, Query, connect, connect_async, find, ident, read
from stator.errors import DbClosed, RequestRefused, ValidationFailed


class Room(Entity):
    room_id: str = ident()
    floor: int = 0


@read(rps=5)
def rooms_of_floor(floor: int) -> Query[Room]:
    return find(Room).where(Room.floor == floor)


hotel = Design("hotel", [Room], [rooms_of_floor])


def test_the_end_of_a_block_with_a_deadline_leaves_the_connection_open() -> None:
    with connect(hotel) as db:
        with db.within(5) as quick:
            quick.create(Room(room_id="r1"))
        db.within(5).close()
        assert db.get(Room, room_id="r1") is not None
    with pytest.raises(DbClosed):
        db.within(5).get(Room, room_id="r1")


def test_awaited_as_well() -> None:
    async def run() -> None:
        async with connect_async(hotel) as db:
            async with db.within(5) as quick:
                await quick.create(Room(room_id="r1"))
            assert await db.get(Room, room_id="r1") is not None

    asyncio.run(run())


def test_a_pattern_that_was_not_called_is_named() -> None:
    with connect(hotel) as db, pytest.raises(RequestRefused) as caught:
        db.all(rooms_of_floor)  # type: ignore[arg-type]
    assert caught.value.message == "the pattern rooms_of_floor was passed without being called"
    assert caught.value.hint == "call it with its arguments: rooms_of_floor(...)"


def test_a_missing_index_says_what_adds_it() -> None:
    with connect(hotel) as db, pytest.raises(ValidationFailed) as caught:
        db.call(
            "Query",
            {
                "TableName": "hotel",
                "IndexName": "GSI9",
                "KeyConditionExpression": "GSI9PK = :p",
                "ExpressionAttributeValues": {":p": {"S": "x"}},
            },
        )
    assert "db.ensure() adds missing indexes to hotel" in (caught.value.hint or "")

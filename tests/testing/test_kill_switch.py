"""Kill points: a program dies before and after each of its calls, and makes no call after that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stator import connect, connect_async
from stator.addresses import EngineTransport
from stator.engine import Engine
from stator.tables.db import AsyncDb, Db
from stator.testing import Killed, KillPoint, KillSwitch, faulty, kill_points, kill_points_async

from .club import PLAN, Account, bank

POINTS = [KillPoint(call, carried_out) for call in (1, 2, 3) for carried_out in (False, True)]


def move(db: Db) -> None:
    """Three calls, two of them writes, with a clean-up that a dead process never gets to."""
    try:
        db.put(Account(account_id="a", note="began"))
        db.put(Account(account_id="b", note="began"))
        db.get(Account, account_id="a")
    except Exception:
        pytest.fail("a kill is no exception that a program handles")
    finally:
        db.delete(Account, account_id="a")


def stored(db: Db) -> str:
    return "".join(sorted(each.account_id for each in db.scan(Account, allow=True)))


def test_a_program_dies_at_every_call_until_it_gets_through() -> None:
    found = []
    with connect(bank, plan=PLAN) as db:
        for point in kill_points(db, move):
            found.append((point, stored(db)))
            for key in ("a", "b"):
                db.delete(Account, account_id=key)
        assert stored(db) == "b"
    expected = ["", "a", "a", "ab", "ab", "ab", "ab", "b"]
    assert [kept for _, kept in found] == expected
    assert [point for point, _ in found][:6] == POINTS


def test_async_programs_die_alike() -> None:
    async def move_async(db: AsyncDb) -> None:
        await db.put(Account(account_id="a"))
        await db.put(Account(account_id="b"))

    with Engine.open() as engine, connect(bank, engine, plan=PLAN) as look:
        db = connect_async(bank, engine, plan=PLAN)
        found = []
        for _ in kill_points(db, move_async):
            found.append(stored(look))
            for key in ("a", "b"):
                look.delete(Account, account_id=key)

        async def inside() -> list[str]:
            kept = []
            async for _ in kill_points_async(db, move_async):
                kept.append(stored(look))
                for key in ("a", "b"):
                    look.delete(Account, account_id=key)
            return kept

        for key in ("a", "b"):
            look.delete(Account, account_id=key)
        assert found == asyncio.run(inside()) == ["", "a", "a", "ab"]


def test_a_bare_transport_is_given_to_the_work() -> None:
    def ask(transport: Any) -> None:
        transport.call("ListTables", {})

    with Engine.open() as engine:
        points = list(kill_points(EngineTransport(engine, owned=False), ask))
        assert points == POINTS[:2]


def test_a_dead_process_stays_dead() -> None:
    with connect(bank, plan=PLAN) as db:
        switch = KillSwitch(KillPoint(1, carried_out=True))
        with faulty(db, switch.before, switch.after):
            for _ in range(3):
                with pytest.raises(Killed):
                    db.put(Account(account_id="a"))
        assert stored(db) == "a"

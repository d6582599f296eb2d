"""A test under many seeds names the seed that failed, and replays it alone."""

from __future__ import annotations

import pytest

from stator import connect
from stator.clock import VirtualClock
from stator.errors import ConfigurationError, ConnectionTrouble, ServiceError
from stator.testing import Faults, faulty, run_schedules
from stator.testing.schedules import SEED_VARIABLE

from .club import PLAN, Account, bank


@pytest.fixture(autouse=True)
def no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEED_VARIABLE, raising=False)


def test_every_seed_runs_once() -> None:
    ran: list[int] = []
    assert run_schedules(ran.append, 5) == 5
    assert run_schedules(ran.append, [7, 9]) == 2
    assert ran == [0, 1, 2, 3, 4, 7, 9]


def test_a_failure_keeps_its_error_and_names_the_seed() -> None:
    def fail(seed: int) -> None:
        assert seed != 3, "three"

    async def fail_async(seed: int) -> None:
        assert seed != 3, "three"

    for schedule in (fail, fail_async):
        with pytest.raises(AssertionError, match="three") as raised:
            run_schedules(schedule, 10)
        [note] = raised.value.__notes__
        assert "seed 3 failed, after 3 that passed" in note and "STATOR_SEED=3" in note


def test_the_environment_replays_one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    monkeypatch.setenv(SEED_VARIABLE, "417")
    assert run_schedules(ran.append, 5) == 1
    assert ran == [417]
    monkeypatch.setenv(SEED_VARIABLE, "all")
    with pytest.raises(ConfigurationError, match="STATOR_SEED is 'all'"):
        run_schedules(ran.append)


def deposit_carelessly(seed: int) -> None:
    """A program with a bug: it repeats a deposit whose outcome is unknown."""
    with connect(bank, clock=VirtualClock(), plan=PLAN) as db:
        db.put(Account(account_id="a"))
        with faulty(db, Faults.mixed(seed)):
            for _ in range(5):
                for _ in range(50):
                    try:
                        with db.update(Account, account_id="a") as account:
                            account.balance += 1
                        break
                    except (ConnectionTrouble, ServiceError):
                        continue
        found = db.get(Account, account_id="a")
        assert found is not None and found.balance == 5


def test_schedules_find_a_program_that_counts_twice_and_replay_it() -> None:
    with pytest.raises(AssertionError) as raised:
        run_schedules(deposit_carelessly)
    [note] = raised.value.__notes__
    seed = int(note.split("seed ")[1].split()[0])
    with pytest.raises(AssertionError):
        run_schedules(deposit_carelessly, [seed])

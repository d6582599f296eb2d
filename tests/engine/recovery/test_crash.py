"""Copies cut off by kill -9 are finished at the next opening, each as of its one moment."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path

import pytest

from .crash_program import ACCOUNTS, TOTAL, open_world, prepare, work_until_killed
from .world import Items, World

_processes = multiprocessing.get_context("forkserver")
# One fork server serves all tests of a process, so it preloads the other crash test's program.
_processes.set_forkserver_preload(
    ["tests.engine.crash_program", "tests.engine.recovery.crash_program", "stator.storage.rocks"]
)


def run_and_kill(folder: Path, seed: int, chance: random.Random) -> list[str]:
    receiving, sending = _processes.Pipe(duplex=False)
    worker = _processes.Process(target=work_until_killed, args=(folder, seed, sending))
    worker.start()
    sending.close()
    receiving.recv()
    reported: list[str] = [receiving.recv() for _ in range(chance.randint(1, 6))]
    time.sleep(chance.random() * 0.02)
    worker.kill()
    worker.join()
    try:
        while True:
            reported.append(receiving.recv())
    except (EOFError, OSError):
        return reported


def check(folder: Path, reported: list[str]) -> int:
    """Return how many copies were in flight at the crash; acknowledged ones must be whole."""
    world = open_world(folder)
    cut_off = len(list(world.engine.recovery.tasks))
    world.settle()
    for name in reported:
        if "/backup/" in name:
            world.restore(name, "restored")
            check_copy(world, "restored")
            world.call("DeleteTable", TableName="restored")
            world.call("DeleteBackup", BackupArn=name)
        elif "/export/" in name:
            described = world.call("DescribeExport", ExportArn=name)["ExportDescription"]
            assert described["ExportStatus"] == "COMPLETED"
            check_total(world.exported(described))
        elif "/import/" in name:
            described = world.call("DescribeImport", ImportArn=name)["ImportTableDescription"]
            assert (described["ImportStatus"], described["ImportedItemCount"]) == (
                "COMPLETED",
                ACCOUNTS,
            )
            table = described["TableCreationParameters"]["TableName"]
            check_total(world.items(table))
            assert len(world.items(table, "by-g")) == ACCOUNTS
        else:
            check_copy(world, name)
    for table in world.call("ListTables")["TableNames"]:
        if table != "orders":
            world.call("DeleteTable", TableName=table)
    check_copy(world, "orders")
    world.engine.close()
    return cut_off


def check_copy(world: World, table: str) -> None:
    items = world.items(table)
    check_total(items)
    world.check_whole(table, items)


def check_total(items: Items) -> None:
    assert (len(items), sum(int(each["amount"]["N"]) for each in items.values())) == (
        ACCOUNTS,
        TOTAL,
    )


def kill_many_times(folder: Path, times: int) -> None:
    chance = random.Random(5)
    prepare(folder)
    cut_off = 0
    for seed in range(times):
        reported = run_and_kill(folder, seed, chance)
        cut_off += check(folder, reported)
    assert cut_off > 0  # some were killed in the middle of their work


def test_what_was_cut_off_is_finished(tmp_path: Path) -> None:
    kill_many_times(tmp_path, 8)


@pytest.mark.slow
def test_what_was_cut_off_is_finished_hundreds_of_times(tmp_path: Path) -> None:
    kill_many_times(tmp_path, 300)

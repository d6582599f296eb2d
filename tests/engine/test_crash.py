"""A writer killed with -9 at random moments: no acknowledged write is lost, none is half done."""

from __future__ import annotations

import multiprocessing
import random
import time
from pathlib import Path
from typing import Any

import pytest

from stator.engine import Engine
from stator.model.values import item_size

from .crash_program import TABLE, Model, apply, contents, step, write_until_killed
from .streams.reading import read_all

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.engine.crash_program", "stator.storage.rocks"])


def run_and_kill(path: str, seed: int, chance: random.Random) -> int:
    """Let a writer run for a moment and kill it; the number of steps it was told were done."""
    receiving, sending = _processes.Pipe(duplex=False)
    writer = _processes.Process(target=write_until_killed, args=(path, seed, sending))
    writer.start()
    sending.close()
    done = 0
    if chance.random() < 0.85:
        receiving.recv()  # it has opened the folder; else the kill may hit the opening itself
        for _ in range(chance.randrange(12)):  # however slow the machine is
            done = max(done, receiving.recv() + 1)
    time.sleep(chance.random() * 0.03)
    writer.kill()
    writer.join()
    try:
        while True:
            done = max(done, receiving.recv() + 1)
    except (EOFError, OSError):
        return done


def check(path: str, before: Model, seed: int, done: int) -> Model:
    """The folder holds exactly the acknowledged steps, and at most the one that was under way
    beside them.
    """
    expected: Model = {key: dict(item) for key, item in before.items()}
    for number in range(done):
        apply(expected, step(seed, number))
    one_more: Model = dict(expected)
    apply(one_more, step(seed, done))
    with Engine.open(path) as engine:
        if TABLE not in engine.call("ListTables", {})["TableNames"]:
            assert done == 0
            assert not before
            return {}
        items = contents(engine)
        found = {(item["pk"]["S"], item["sk"]["N"]): item for item in items}
        assert found in (expected, one_more)
        check_indexes_and_counts(engine, items)
        check_stream(engine, found)
    return found


def check_stream(engine: Engine, items: Model) -> None:
    """A record is there exactly if its change is: replayed, the stream gives the items, each from
    what it was before.
    """
    arn = engine.call("DescribeTable", {"TableName": TABLE})["Table"]["LatestStreamArn"]
    replayed: Model = {}
    for record in read_all(engine, arn):
        body = record["dynamodb"]
        key = (body["Keys"]["pk"]["S"], body["Keys"]["sk"]["N"])
        assert body.get("OldImage") == replayed.get(key)
        replayed.pop(key, None)
        if "NewImage" in body:
            replayed[key] = body["NewImage"]
    assert replayed == items


def check_indexes_and_counts(engine: Engine, items: list[dict[str, Any]]) -> None:
    described = engine.call("DescribeTable", {"TableName": TABLE})["Table"]
    assert described["ItemCount"] == len(items)
    assert described["TableSizeBytes"] == sum(map(item_size, items))
    keyed = [item for item in items if "g" in item]
    keys_only = [{name: item[name] for name in ("pk", "sk", "g")} for item in keyed]
    assert _sorted(contents(engine, "by-pk-g")) == _sorted(keyed)
    assert _sorted(contents(engine, "by-g")) == _sorted(keys_only)
    [local] = described["LocalSecondaryIndexes"]
    [by_g] = described["GlobalSecondaryIndexes"]
    assert (local["ItemCount"], local["IndexSizeBytes"]) == (len(keyed), sum(map(item_size, keyed)))
    assert (by_g["ItemCount"], by_g["IndexSizeBytes"]) == (
        len(keyed),
        sum(map(item_size, keys_only)),
    )


def _sorted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["N"]))


def kill_many_times(path: Path, times: int) -> None:
    chance = random.Random(7)
    model: Model = {}
    acknowledged = 0
    for seed in range(times):
        done = run_and_kill(str(path / "data"), seed, chance)
        acknowledged += done
        model = check(str(path / "data"), model, seed, done)
    assert acknowledged > times  # the writers did get to write


def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    kill_many_times(tmp_path, 60)


@pytest.mark.slow
def test_acknowledged_writes_survive_kill_9_hundreds_of_times(tmp_path: Path) -> None:
    kill_many_times(tmp_path, 400)

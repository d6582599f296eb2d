"""``stator work`` and ``stator parked`` as processes on a served engine, killed with -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stator import Db, TableSettings, connect
from tests import warm_python

from .shop import Order, shop
from .test_workers import eventually

ROOT = Path(__file__).parent.parent.parent
APP = "tests.pipeline.work_app:app"


class Commands:
    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.notes = folder / "notes"
        self.cured = folder / "cured"
        self.environment = os.environ | {
            "NOTES": str(self.notes),
            "CURED": str(self.cured),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "stator", *words, "--at", self.url]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *words: str) -> tuple[int, str, str]:
        command = ("-m", "stator", *words, "--at", self.url)
        ran = warm_python.run(*command, cwd=ROOT, env=self.environment, timeout=50)
        return ran.returncode, ran.stdout, ran.stderr

    def noted(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        if self.notes.exists():
            for line in self.notes.read_text().splitlines():
                key, total = line.split()
                found.setdefault(key, []).append(int(total))
        return found


def served(folder: Path, *words: str) -> Iterator[Commands]:
    command = [sys.executable, "-m", "stator", "serve", "--port", "0", "--json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None
            yield Commands(json.loads(server.stdout.readline())["url"], folder)
        finally:
            server.terminate()


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    yield from served(tmp_path)


@pytest.fixture
def db(commands: Commands) -> Iterator[Db]:
    with connect(shop, commands.url) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def test_nothing_is_missing_or_out_of_order_when_workers_are_killed(
    commands: Commands, db: Db
) -> None:
    parent = commands.start(
        "work", APP, "--workers", "2", "--from", "oldest", "--lease", "2", "--json"
    )
    try:
        killed: set[int] = set()
        for total in range(1, 16):
            db.write_many([Order(order_id=f"o{number}", total=total) for number in range(40)])
            if total % 5 == 0:
                eventually(lambda: len(children_of(parent.pid) - killed) >= 1)
                victim = min(children_of(parent.pid) - killed)
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
            time.sleep(0.1)
        eventually(
            lambda: all(15 in commands.noted().get(f"o{number}", []) for number in range(40))
        )
    finally:
        parent.terminate()
        _, err = parent.communicate(timeout=60)
    assert parent.returncode == 0, err
    assert "was killed by signal 9" in err
    for number in range(40):
        seen = commands.noted()[f"o{number}"]
        assert list(dict.fromkeys(seen)) == list(range(1, 16)), f"o{number}: {seen}"


def test_every_killed_worker_is_replaced_while_the_others_run(commands: Commands, db: Db) -> None:
    parent = commands.start("work", APP, "--workers", "3", "--from", "oldest", "--lease", "2")
    try:
        eventually(lambda: len(children_of(parent.pid)) == 3)
        first = children_of(parent.pid)
        for at, victim in enumerate(sorted(first, reverse=True), 1):  # the last one first
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: len(running_children_of(parent.pid) - first) == at)  # noqa: B023
    finally:
        parent.terminate()
        _, err = parent.communicate(timeout=60)
    assert err.count("was killed by signal 9") == 3, err


def test_workers_end_when_the_command_that_started_them_is_killed(
    commands: Commands, db: Db
) -> None:
    parent = commands.start("work", APP, "--workers", "2", "--from", "oldest", "--lease", "60")
    try:
        eventually(lambda: len(state_of(commands)["workers"]) == 2)
        workers = children_of(parent.pid)
        assert len(workers) == 2
    finally:
        parent.kill()
    _, err = parent.communicate(timeout=60)  # the workers have the other end of the pipe, too
    assert err.count("audit: stopped; 0 changes handled") == 2, err  # both have drained
    eventually(lambda: not any(map(is_running, workers)))


def test_progress_goes_to_a_log_file_as_lines(commands: Commands, db: Db) -> None:
    process = commands.start("work", APP, "--from", "oldest", "--every", "0.2")
    try:
        assert process.stderr is not None
        lines = [process.stderr.readline() for _ in range(2)]
    finally:
        process.terminate()
    _, rest = process.communicate(timeout=60)
    assert all(line.startswith("audit: 0 changes handled (0/s), ") for line in lines), lines
    last = rest.splitlines()[-1]
    assert last.startswith("audit: stopped; 0 changes handled") and "0 shards" not in last, last


def running_children_of(pid: int) -> set[int]:
    return {child for child in children_of(pid) if is_running(child)}


def state_of(commands: Commands) -> dict[str, Any]:
    code, out, _ = commands.run("top", APP, "--json")
    found: dict[str, Any] = json.loads(out) if code in (0, 1) and out else {"workers": []}
    return found


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie: nobody may collect those of a killed parent."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(state.strip()) and not state.startswith("Z")


def children_of(pid: int) -> set[int]:
    listed = subprocess.run(
        ["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return {int(line) for line in listed.split()}


def test_catching_up_and_parked_items(commands: Commands, db: Db) -> None:
    db.put(Order(order_id="good", total=1))
    db.put(Order(order_id="bad", total=1, status="poison"))
    work = ("work", APP, "--from", "oldest", "--catch-up", "--attempts", "2")
    code, _, err = commands.run(*work)
    assert code == 0, err
    assert "1 change handled" in err and "1 parked" in err
    assert commands.noted() == {"good": [1]}

    code, out, _ = commands.run("parked", "list", APP, "--json")
    [parked] = json.loads(out)
    assert code == 0 and parked["error"] == "ValueError: poison" and "bad" in parked["key"]
    code, out, _ = commands.run("parked", "list", APP)
    assert "poison" in out and "note" in out

    code, out, _ = commands.run("parked", "retry", APP, "--all")
    assert code == 1 and "still parked: ValueError: poison" in out
    commands.cured.touch()
    code, out, _ = commands.run("parked", "retry", APP, parked["mark"].partition("#")[2][:12])
    assert code == 0 and "1 change handled" in out
    assert commands.noted() == {"good": [1], "bad": [1]}
    code, out, _ = commands.run("parked", "list", APP)
    assert (code, out) == (0, "no items are parked\n")


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="looks at /proc to see when signals are handled"
)
def test_catching_up_can_be_stopped(commands: Commands, db: Db) -> None:
    """It waits for the leases of one that has died; whoever starts it need not."""
    dead = commands.start(
        "work", APP, "--from", "oldest", "--lease", "300", "--json", "--every", "0.1"
    )
    assert dead.stdout is not None
    while not json.loads(dead.stdout.readline())["shards"]:
        pass
    dead.kill()
    dead.communicate()
    db.put(Order(order_id="late", total=1))
    waiting = commands.start("work", APP, "--from", "oldest", "--catch-up")
    eventually(lambda: waiting.pid in handling_signals(signal.SIGTERM))
    waiting.terminate()
    _, err = waiting.communicate(timeout=50)
    assert waiting.returncode == 1
    assert "the worker was stopped before it caught up" in err
    assert commands.noted() == {}


def handling_signals(number: signal.Signals) -> set[int]:
    """The processes that have a handler of their own for it."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            caught = next(
                (line for line in status.read_text().splitlines() if line.startswith("SigCgt")),
                "SigCgt: 0",
            )
            if int(caught.split()[1], 16) >> (number.value - 1) & 1:
                found.add(int(status.parent.name))
    return found


def test_top_shows_who_reads_what_and_how_far_behind(commands: Commands, db: Db) -> None:
    work = ("work", APP, "--from", "oldest", "--catch-up")
    db.put(Order(order_id="o1", total=1))
    assert commands.run(*work)[0] == 0
    code, out, _ = commands.run("top", APP, "--json")
    state = json.loads(out)
    assert (
        code == 0
        and state["lag_seconds"] == 0.0
        and len(state["shards"]) == 4
        and state["workers"] == []
    )
    db.put(Order(order_id="o1", total=2))
    time.sleep(1.1)
    code, out, _ = commands.run("top", APP, "--json")
    state = json.loads(out)
    assert code == 1 and state["lag_seconds"] > 1.0
    [behind] = [shard for shard in state["shards"] if shard["lag_seconds"]]
    assert behind["owner"] is None and 0 < behind["trim_seconds"] < 24 * 3600
    code, out, _ = commands.run("top", APP, "--once")
    assert "none" in out and "until trimmed" in out
    process = commands.start("work", APP, "--from", "oldest")
    try:
        eventually(lambda: json.loads(commands.run("top", APP, "--json")[1])["lag_seconds"] == 0.0)
        state = json.loads(commands.run("top", APP, "--json")[1])
        assert len(state["workers"]) == 1 and all(shard["owner"] for shard in state["shards"])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_metrics_for_prometheus(commands: Commands, db: Db) -> None:
    db.put(Order(order_id="o1", total=1))
    process = commands.start("work", APP, "--from", "oldest", "--metrics-port", "0")
    try:
        assert process.stderr is not None
        url = process.stderr.readline().rpartition(" ")[2].strip()
        eventually(lambda: 'stator_stream_handled_total{group="audit"} 1.0' in asked(url))
        assert 'stator_stream_shards{group="audit"} 4.0' in asked(url)
        eventually(lambda: "stator_stream_trim_seconds" in asked(url))
        assert "stator_requests_total{" in asked(url), "the worker's own calls are counted, too"
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


def asked(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["work", "nowhere.py"], "there is no file nowhere.py"),
        (["work", "tests.pipeline.work_app:shop"], "shop is not a StreamApp"),
        (
            ["work", "tests.pipeline.work_app", "--from", "yesterday"],
            "--from yesterday is not supported",
        ),
        (["parked", "retry", APP], "no item was named"),
        (["parked", "retry", APP, "ghost"], "no parked item matches ghost"),
    ],
)
def test_what_is_typed_wrongly_is_explained(
    commands: Commands, db: Db, words: list[str], message: str
) -> None:
    code, _, err = commands.run(*words)
    assert code == 1
    assert message in err and "hint: " in err and "Traceback" not in err


def test_a_table_without_a_stream_is_explained(commands: Commands) -> None:
    with connect(shop, commands.url) as db:
        db.ensure()
    code, _, err = commands.run("work", APP, "--catch-up")
    assert code == 1
    assert "has no stream" in err and "Traceback" not in err
    code, _, err = commands.run("work", APP, "--catch-up", "--ensure")
    assert code == 0 and "has a stream of NEW_AND_OLD_IMAGES" in err


@pytest.mark.parametrize("catch_up", [(), ("--catch-up",)])
def test_a_table_that_does_not_exist_ends_the_command(
    commands: Commands, catch_up: tuple[str, ...]
) -> None:
    code, _, err = commands.run("work", APP, "--every", "0.2", *catch_up)
    assert code == 1
    assert "there is no table shop" in err and "hint: " in err and "Traceback" not in err


@pytest.mark.parametrize("words", [(), ("--workers", "2")])
def test_wrong_credentials_end_the_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    known = tmp_path / "credentials"
    known.write_text("[default]\naws_access_key_id = right\naws_secret_access_key = right\n")
    for started in served(tmp_path, "--credentials", str(known)):
        started.environment |= {
            "AWS_ACCESS_KEY_ID": "right",
            "AWS_SECRET_ACCESS_KEY": "wrong",
            "AWS_REGION": "us-east-1",
        }
        code, _, err = started.run("work", APP, "--every", "0.2", *words)
        assert code == 1
        assert "DynamoDB refuses the requests of audit" in err and "Traceback" not in err

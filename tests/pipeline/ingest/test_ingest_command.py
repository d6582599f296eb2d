"""``stator ingest`` as a process: what it says at once if something is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.targets import stator_server

ROOT = Path(__file__).parents[3]
APP = "tests.pipeline.ingest.counting_app:app"


def run(*words: str) -> tuple[int, str, str]:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "TOPIC": "readings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "stator", "ingest", *words],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_explain_shows_the_routes_and_needs_neither_kafka_nor_tables() -> None:
    code, out, err = run(APP, "--at", "nowhere", "--kafka", "127.0.0.1:1", "--explain")
    assert (code, err) == (0, "")
    assert "readings -> put Reading, table " in out and "readings -> fold Total" in out
    assert "guard position" in out and "replay 2 write units and 1 read unit" in out


def test_what_is_missing_is_said_within_seconds() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with stator_server() as url:
        code, _, err = run(APP, "--at", url, "--kafka", nobody)
        assert code == 1 and "there is no table" in err and "--ensure" in err
        code, _, err = run(APP, "--at", url, "--kafka", nobody, "--ensure")
        assert code == 1 and f"no Kafka broker answers at {nobody}" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "yesterday"], "--from yesterday is not supported"),
        (["--group-protocol", "raft"], "protocol='raft' is unknown"),
        (["--kafka-config", "missing"], "missing cannot be read"),
        (["--workers", "2"], "--workers 2 needs a server"),
    ],
)
def test_wrong_options_are_refused(words: list[str], message: str, tmp_path: Path) -> None:
    code, _, err = run(APP, "--at", str(tmp_path), "--kafka", "127.0.0.1:1", *words)
    assert code == 1 and message in err


def test_an_app_of_another_kind_is_refused() -> None:
    code, _, err = run("tests.pipeline.work_app:app", "--at", "x", "--kafka", "127.0.0.1:1")
    assert code == 1 and "is not an Ingest" in err

"""``stator plan --verify``: the table, what is wrong, the exit code, JSON, and progress."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stator.cli.main import main
from stator.cli.progress_bar import ProgressBar
from stator.verification import verify

from .design_project import SHOP, Project
from .serving import ENVIRONMENT, TIMEOUT_SECONDS

ENOUGH = "--most-items", "3000"
CORRECT = SHOP.replace("User: 2_000_000", "User: 2_000").replace(
    "volumes=", "sizes={User: 300, Order: 900},\n    volumes="
)
CONTRADICTORY = CORRECT.replace("returns=12", "returns=240")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("shop.py", CORRECT)
    return made


@pytest.mark.parametrize("columns", [80, 120])
def test_every_pattern_has_a_row(project: Project, columns: int) -> None:
    done = project.run("plan", "--verify", *ENOUGH, columns=columns)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("Reads", "Writes", "est. RCU", "est. WCU", "user_by_email", "engine ms"):
        assert words in done.stdout
    assert "no estimate is off by more than a quarter" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())
    assert done.stderr == ""


def test_declarations_that_contradict_each_other_are_named(project: Project) -> None:
    project.write("shop.py", CONTRADICTORY)
    done = project.run("plan", "--verify", *ENOUGH, columns=120)
    assert done.returncode == 0
    assert "note  orders_of_user: returns=240, but the declared volumes and facts give 12" in (
        done.stdout
    )


def test_a_wrong_estimate_fails_and_says_why(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verify_wrong_plan(design: Any, plan: Any, **options: Any) -> Any:
        wrong = [
            dataclasses.replace(each, units_per_call=99.0) if each.name == "user_page" else each
            for each in plan.patterns
        ]
        return verify(design, dataclasses.replace(plan, patterns=tuple(wrong)), **options)

    monkeypatch.setattr("stator.verification.verify", verify_wrong_plan)
    monkeypatch.chdir(project.folder)
    with pytest.raises(SystemExit) as ended:
        main(["plan", "--verify", *ENOUGH])
    assert ended.value.code == 1
    shown = capsys.readouterr().out
    assert "wrong  user_page" in shown and "off by more than a quarter" in shown


def test_json_for_scripts(project: Project) -> None:
    done = project.run("plan", "--verify", "--json", *ENOUGH)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["ok"] is True and data["design"] == "shop" and data["most_items"] == 3000
    names = [each["pattern"] for each in data["patterns"]]
    assert names == ["user_by_email", "orders_of_user", "user_page", "place_order"]
    assert data["patterns"][1]["items_returned"] == 12


def test_the_plan_of_the_lock_file_is_measured(project: Project) -> None:
    assert project.run("plan", "--write").returncode == 0
    done = project.run("plan", "--verify", *ENOUGH)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--verify", "--write"), "leave out --write, --table and"),
        (("--most-items", "500"), "--most-items needs --verify"),
    ],
)
def test_options_that_do_not_go_together(
    project: Project, options: tuple[str, ...], words: str
) -> None:
    done = project.run("plan", *options)
    assert done.returncode == 2
    assert words in done.stderr


def test_too_few_items_are_refused(project: Project) -> None:
    done = project.run("plan", "--verify", "--most-items", "7")
    assert done.returncode == 1
    assert "most_items=7 is too few" in done.stderr


def test_the_default_in_the_help_is_the_default(project: Project) -> None:
    from stator.verification.verifier import MOST_ITEMS

    assert f"By default {MOST_ITEMS:,}." in " ".join(project.run("plan", "--help").stdout.split())


def test_ctrl_c_ends_it_without_a_trace(project: Project, tmp_path: Path) -> None:
    project.write("shop.py", CORRECT.replace("per(User, 12)", "per(User, 60_000)"))
    running = subprocess.Popen(
        [sys.executable, "-m", "stator", "plan", "--verify"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "STATOR_TEST": "1"},
    )
    time.sleep(2.5)  # well inside of a run of many seconds
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=TIMEOUT_SECONDS)
    assert running.returncode == 130, out + err
    assert err.strip() == "Stopped. Nothing was stored."


def test_a_progress_bar_appears_only_if_the_work_takes_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with ProgressBar("measuring", after_seconds=60) as late:
            late.show(0.5, "orders_of_user")
            assert late._progress is None
        with ProgressBar("measuring") as now:
            now.show(0.5, "orders_of_user")
            assert now._progress is not None
    os.close(leader)

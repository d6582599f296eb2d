"""Views of processes that are killed with -9, and ``stator views``, on a served engine."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stator import Db, TableSettings, connect
from stator.cli.main import main
from stator.pipeline.views.rebuild.rebuild import Rebuild

from ..test_work_command import Commands, children_of, commands  # noqa: F401 - a fixture
from ..test_workers import eventually
from .fleet import Test, a_test, fleet
from .view_app import by_isp, hours

APP = "tests.pipeline.views.view_app:app"


@pytest.fixture
def db(commands: Commands) -> Iterator[Db]:  # noqa: F811 - it is that fixture
    with connect(fleet, commands.url) as opened:
        opened.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        yield opened


def told(db: Db) -> dict[str, tuple[int, int, float, int, float]]:
    """What the view says of every ISP."""
    rows = {isp: hours.on(db).all(isp=isp) for isp in ("acme", "bell", "cell")}
    return {
        isp: (
            sum(row.tests for row in found),
            sum(row.total for row in found),
            max(row.worst for row in found),
            sum(row.spread.count for row in found),
            max(row.slowest[0].latency_ms for row in found),
        )
        for isp, found in rows.items()
        if found
    }


def counted(tests: dict[str, Test]) -> dict[str, tuple[int, int, float, int, float]]:
    found = {}
    for isp in ("acme", "bell", "cell"):
        inside = [each for each in tests.values() if each.isp == isp and each.ok]
        if inside:
            worst = max(each.latency_ms or 0 for each in inside)
            found[isp] = (len(inside), sum(each.size for each in inside), worst, len(inside), worst)
    return found


def change(db: Db, tests: dict[str, Test], chance: random.Random) -> None:
    number = chance.randrange(60)
    if chance.random() < 0.2 and f"t{number}" in tests:
        del tests[f"t{number}"]
        db.delete(Test, test_id=f"t{number}")
        return
    made = a_test(
        number, isp=chance.choice(["acme", "bell", "cell"]), minutes=chance.randrange(180),
        latency=chance.randrange(1, 1000) / 2, size=chance.randrange(100), ok=chance.random() < 0.9,
    )  # fmt: skip
    tests[made.test_id] = made
    db.put(made)


def test_a_view_is_exact_when_workers_are_killed_and_it_is_built_anew(
    commands: Commands,  # noqa: F811
    db: Db,
) -> None:
    chance, tests = random.Random(7), dict[str, Test]()
    for _ in range(50):
        change(db, tests, chance)
    parent = commands.start(
        "work", APP, "--workers", "2", "--lease", "2", "--json"
    )  # from now on: what was before is missing
    try:
        eventually(lambda: db.run(hours.in_database(db.context).heads.load()) is not None)
        building = commands.start("views", "rebuild", APP, "--all", "--json", "--grace", "1")
        killed: set[int] = set()
        for round_ in range(4):
            for _ in range(60):
                change(db, tests, chance)
            if round_ < 2:
                eventually(lambda: len(children_of(parent.pid) - killed) >= 1)
                victim = min(children_of(parent.pid) - killed)
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
        out, err = building.communicate(timeout=50)
        assert building.returncode == 0, err
        assert {name: each["generation"] for name, each in json.loads(out).items()} == {
            "isp_hours": 2,
            "by_isp": 2,
        }
        eventually(lambda: told(db) == counted(tests))
        there = sorted(each.test_id for each in tests.values() if each.isp == "bell")
        eventually(lambda: sorted(row.test_id for row in by_isp.on(db).find(isp="bell")) == there)
    finally:
        parent.terminate()
        parent.communicate(timeout=60)


def test_listing_and_typos(commands: Commands, db: Db, tmp_path: Path) -> None:  # noqa: F811
    db.put(a_test(1))
    code, out, _ = commands.run("views", "list", APP)
    assert code == 0 and "isp_hours" in out and "none yet" in out
    code, _, err = commands.run("views", "rebuild", APP)
    assert code == 1 and "name one: isp_hours" in err and "hint: " in err
    code, _, err = commands.run("views", "rebuild", APP, "ghost")
    assert code == 1 and "has no view ghost" in err and "isp_hours" in err
    code, _, err = commands.run("views", "rebuild", APP, "isp_hours")
    assert (
        code == 1
        and "no worker has started the view isp_hours yet" in err
        and "Traceback" not in err
    )
    code, _, err = commands.run("work", APP, "--catch-up")
    assert code == 0, err
    code, _, err = commands.run("views", "rebuild", APP, "isp_hours", "--work", "--grace", "0")
    assert code == 0 and "isp_hours: generation 2 has 1 group; 1 item of the table read" in err
    for awaited in (
        "until the workers write to",
        "reading the table",
        "late changes",
        "is deleted",
    ):
        assert awaited in err
    assert told(db)["acme"][0] == 1
    code, out, _ = commands.run("views", "list", APP, "--json")
    assert code == 0 and json.loads(out)[0]["generation"] == 2


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A data folder with one item, which no worker has seen."""
    path = str(tmp_path / "data.db")
    with connect(fleet, path) as db:
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        db.put(a_test(1))
    return path


def test_on_a_folder_a_rebuild_needs_a_worker_of_its_own_and_no_other(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also the first rebuild of a view that no worker has seen."""
    rebuild = [
        "views",
        "rebuild",
        APP,
        "isp_hours",
        "--at",
        folder,
        "--grace",
        "0",
        "--settle",
        "0",
    ]
    with pytest.raises(SystemExit):
        main(rebuild)
    refused = capsys.readouterr().err
    assert "only one process can open the folder" in refused and "hint: add --work" in refused
    with pytest.raises(SystemExit) as ended:
        main([*rebuild, "--work"])
    assert ended.value.code == 0
    said = capsys.readouterr().err
    assert "isp_hours: generation 2 has 1 group; 1 item of the table read" in said
    with connect(fleet, folder) as db:
        assert told(db)["acme"][0] == 1


def test_an_interrupted_rebuild_frees_the_view(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Rebuild, "start", interrupt)
    with pytest.raises(SystemExit) as ended:
        main(["views", "rebuild", APP, "isp_hours", "--work", "--at", folder, "--grace", "0"])
    assert ended.value.code == 130
    with connect(fleet, folder) as db:
        head = db.run(hours.in_database(db.context).heads.load())
        assert head is not None and head.building is None and head.numbered == 2

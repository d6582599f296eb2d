"""Lock files that version 0.1 wrote (format 2) are read, written in today's format, and kept to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stator import connect
from stator.cli.main import main as stator
from stator.design.plan.lock_file import (
    LockChange,
    compare,
    lock_path,
    read_lock,
    requests_of,
    write_lock,
)
from stator.design.plan.plan import FORMAT, Plan

from .designs import (
    EXAMPLE_NAMES,
    SMALLER,
    STARTERS,
    known_designs,
    model_design,
)
from .packing import unpack

DESIGNS = dict(known_designs())
PROJECTS = [*EXAMPLE_NAMES, *(f"my-{name}" for name in STARTERS)]

IMPORTS = re.compile(r"from stator import (\([^)]*\)|.*)")
"""Stored projects import pattern objects from ``stator``; they are in ``stator.patterns`` since."""


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("locks", tmp_path_factory.mktemp("stored"))


def locked(locks: Path, name: str) -> Plan:
    found = read_lock(lock_path(name, locks))
    assert found is not None
    return found


def keys_of(plan: Plan) -> dict[str, list[tuple[str, str | None, str]]]:
    """The template of every key attribute, by entity."""
    return {
        entity.name: [(key.name, key.index, str(key.template)) for key in entity.keys]
        for entity in plan.entities
    }


@pytest.mark.parametrize("name", [*DESIGNS, *(f"{name}-smaller" for name in SMALLER)])
def test_a_lock_is_written_again_in_todays_format(name: str, locks: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.design.json"
    assert write_lock(path, locked(locks, name))
    before, after = json.loads(lock_path(name, locks).read_bytes()), json.loads(path.read_bytes())
    assert (before.pop("format"), after.pop("format")) == (2, FORMAT)
    assert before == after


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_planned_from_its_lock_keeps_everything(name: str, locks: Path) -> None:
    lock = locked(locks, name)
    plan = DESIGNS[name].plan(lock)
    assert keys_of(plan) == keys_of(lock)
    assert changes(lock, plan) == []


def changes(before: Plan, after: Plan) -> list[LockChange]:
    """What differs, apart from what has become better since.

    These are the estimates, and a filter on a field with a default, which sees the default now.
    """
    return [
        each
        for each in compare(before, after)
        if not (
            each.risk == "safe"
            and (
                each.what.startswith("the estimates changed")
                or (each.subject == "pattern slow_probes" and "attribute_not_exists" in each.what)
            )
        )
    ]


@pytest.mark.parametrize("name", SMALLER)
def test_a_design_that_has_grown_keeps_the_keys_of_its_lock(name: str, locks: Path) -> None:
    lock = locked(locks, f"{name}-smaller")
    plan = model_design(name).plan(lock)
    assert plan.pattern(SMALLER[name]).steps
    assert not [change for change in compare(lock, plan) if change.risk == "orphans"]
    before, after = keys_of(lock), keys_of(plan)
    assert {entity: [key for key in keys if key[1] is None] for entity, keys in before.items()} == {
        entity: [key for key in keys if key[1] is None] for entity, keys in after.items()
    }


@pytest.mark.parametrize("project", PROJECTS)
def test_the_plan_command_finds_nothing_new_in_a_stored_project(
    project: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = unpack("projects", tmp_path) / project
    for file in folder.glob("*.py"):
        moved = "from stator import *\nfrom stator.patterns import *"
        file.write_text(IMPORTS.sub(moved, file.read_text()))
    [lock] = folder.glob("*.design.json")
    before = read_lock(lock)
    assert before is not None
    assert json.loads(lock.read_bytes())["format"] == 2
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        stator(["plan", "--write"])
    captured = capsys.readouterr()
    assert ended.value.code == 0, captured.err
    assert json.loads(lock.read_bytes())["format"] == FORMAT
    after = read_lock(lock)
    assert after is not None
    assert all(entity.fields for entity in after.entities)  # format 3 adds them
    assert keys_of(after) == keys_of(before)
    assert changes(before, after) == []
    assert {each.name: requests_of(each) for each in after.patterns} == {
        each.name: requests_of(each) for each in before.patterns
    }


def test_a_database_is_opened_by_a_stored_lock(locks: Path) -> None:
    with connect(DESIGNS["fleet"], plan=lock_path("fleet", locks)) as db:
        assert db.context.schema.plan.tables == locked(locks, "fleet").tables

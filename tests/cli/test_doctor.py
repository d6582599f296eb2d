"""``stator doctor``: what it finds, what it advises, its exit code."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path

import pytest

import stator
from stator.cli import diagnosis
from stator.cli.diagnosis import Check, diagnose

from .serving import Serving, run


def check(subject: str, checks: list[Check]) -> Check:
    return next(each for each in checks if each.subject == subject)


def test_a_sound_installation_exits_with_0() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stdout
    assert "stator 0" in done.stdout and "extra arrow" in done.stdout


def test_it_prints_json() -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert {"subject", "state", "found"} <= set(found[0])
    assert {each["state"] for each in found} <= {"ok", "absent"}


def test_a_missing_extra_names_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = diagnosis._installed
    monkeypatch.setattr(
        diagnosis, "_installed", lambda name: None if name == "pyarrow" else real(name)
    )
    found = check("extra arrow", diagnose())
    assert (found.state, found.do) == ("absent", "pip install 'stator[arrow]'")


def test_every_extra_says_what_it_is_for() -> None:
    extras = [each for each in diagnose() if each.subject.startswith("extra ")]
    assert {each.subject.removeprefix("extra ") for each in extras} == set(diagnosis._FEATURES)


def test_a_source_newer_than_its_compiled_module_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "stator"
    package.mkdir(parents=True)
    (tmp_path / "Makefile").touch()
    for name in ("__init__.py", "hot.py"):
        (package / name).touch()
    monkeypatch.setattr(stator, "__file__", str(package / "__init__.py"))
    assert check("build", diagnose()).state == "absent"
    built = package / f"hot{sysconfig.get_config_var('EXT_SUFFIX')}"
    built.touch()
    assert check("build", diagnose()).found == "compiled: 1 module"
    os.utime(built, (1, 1))
    found = check("build", diagnose())
    assert found.state == "wrong" and "make interpreted" in found.do


def test_credentials_are_found_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    found = check("AWS", diagnose())
    assert found == Check("AWS", "ok", "credentials found (env), region eu-west-1")


def test_an_unknown_profile_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    found = check("AWS", diagnose())
    assert found.state == "wrong" and "nobody" in found.found


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_too_few_open_files_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 256))
    found = check("open files", diagnose())
    assert found.state == "wrong" and found.do == "ulimit -n 4096"


def test_an_address_is_asked_for_its_tables() -> None:
    with Serving() as server:
        done = run("doctor", "--at", server.facts["url"])
        assert done.returncode == 0 and "answers, 0 tables" in done.stdout
    done = run("doctor", "--at", server.facts["url"])
    assert done.returncode == 1 and "!!" in done.stdout and "no connection" in done.stdout


def test_a_folder_is_opened_and_never_made(tmp_path: Path) -> None:
    done = run("doctor", "--at", str(tmp_path / "nothing"))
    assert done.returncode == 1 and "no such folder" in done.stdout
    assert not (tmp_path / "nothing").exists()
    assert check("memory", diagnose("memory")).state == "ok"


def test_nonsense_is_no_address() -> None:
    done = run("doctor", "--at", "ftp://x")
    assert done.returncode == 1 and "do: use memory" in done.stdout

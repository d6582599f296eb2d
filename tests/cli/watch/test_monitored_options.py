"""``stator dashboards`` and ``stator alarms`` as people run them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..design_folder import stator_in, with_email

WRITTEN = [
    ("dashboards", "grafana"),
    ("dashboards", "cloudwatch"),
    ("alarms", "prometheus"),
    ("alarms", "cloudformation"),
    ("alarms", "terraform"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(with_email())
    return tmp_path


@pytest.mark.parametrize(("command", "tool"), WRITTEN)
def test_the_text_goes_to_stdout_or_into_a_file(folder: Path, command: str, tool: str) -> None:
    printed = stator_in(folder, command, tool, "--prefix", "prod-")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "prod-shop" in printed.stdout
    written = stator_in(folder, command, tool, "shop.py", "--prefix", "prod-", "--out", "made")
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "wrote made\n")
    assert (folder / "made").read_text(encoding="utf-8") == printed.stdout


def test_json_has_panels_and_alarms(folder: Path) -> None:
    panels = json.loads(stator_in(folder, "dashboards", "grafana", "--json").stdout)
    assert panels["name"] == "shop" and panels["rows"][0]["title"] == "Overview"
    alarms = json.loads(stator_in(folder, "alarms", "prometheus", "--json").stdout)
    assert {"StatorHotKey", "StatorTrafficAbovePlan"} <= {each["kind"] for each in alarms}


def test_limits_are_options(folder: Path) -> None:
    options = ("--slow", "0.25", "--budget", "1234", "--runbooks", "https://wiki/rb")
    text = stator_in(folder, "alarms", "prometheus", *options).stdout
    assert "> 0.25" in text and "> 1234.0000" in text and "https://wiki/rb/hot-key" in text


def test_the_table_of_pattern_objects_is_included_if_asked(folder: Path) -> None:
    assert "shop-stator" in stator_in(folder, "alarms", "terraform", "--with-patterns").stdout


def test_an_unknown_tool_is_named(folder: Path) -> None:
    ran = stator_in(folder, "alarms", "nagios")
    assert ran.returncode == 2 and "nagios" in ran.stderr

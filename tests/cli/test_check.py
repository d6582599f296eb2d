"""``stator check``: its lines, its exit codes, its annotations, and the lock."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .design_folder import git
from .design_project import SHOP, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("shop.py", SHOP)
    return made


def hot(project: Project) -> None:
    """Something to warn of: a counter that one item may not be able to take."""
    project.edit(
        "shop.py", "    email: str = unique()\n", "    email: str = unique()\n    views: int = 0\n"
    )
    project.edit(
        "shop.py", "import Bundle2, Query, creates,", "import Bundle2, Query, creates, updates,"
    )
    project.edit(
        "shop.py",
        "shop = Design(",
        "@write(rps=5000)\ndef view() -> object:\n"
        "    return updates(User.views)\n\n\nshop = Design(",
    )
    project.edit("shop.py", "user_page, place_order]", "user_page, place_order, view]")


def test_a_good_design_passes_quietly(project: Project) -> None:
    done = project.run("check")
    assert done.returncode == 0
    assert done.stdout == ""
    assert done.stderr == (
        "ok: shop: no findings; there is no shop.design.json yet; stator plan --write creates it\n"
    )


def test_a_finding_is_one_line_with_file_line_and_code(project: Project) -> None:
    hot(project)
    done = project.run("check", "shop.py")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert all(re.match(r"shop\.py:\d+: ST\d{3} \S", line) for line in lines)
    [counter] = [line for line in lines if " ST502 " in line]
    assert counter.startswith(
        f"shop.py:{project.line_of('shop.py', 'views: int = 0')}: ST502 User.views is updated 5,000"
    )
    assert done.stderr.startswith("failed: shop: 1 warning")


def test_fixes_stand_below_when_asked_for(project: Project) -> None:
    hot(project)
    done = project.run("check", "--fixes")
    assert (
        "\n    fix: spread the number over 8 items with `Counter(db, name, shards=8)`"
        in done.stdout
    )


def test_notes_do_not_fail(project: Project) -> None:
    project.edit("shop.py", "volumes=", "sizes={Order: 2_000},\n    volumes=")
    done = project.run("check")
    assert done.returncode == 0
    assert " ST201 " in done.stdout
    assert "1 note" in done.stderr


def test_a_finding_can_be_ignored_in_the_design(project: Project) -> None:
    hot(project)
    project.edit("shop.py", "volumes=", 'ignore=["ST502:User.views"],\n    volumes=')
    done = project.run("check")
    assert done.returncode == 0
    assert "(1 ignored)" in done.stderr


def test_a_scan_fails_with_the_line_of_its_pattern(project: Project) -> None:
    project.edit("shop.py", "Order.user_id == user_id)", "Order.user_id >= user_id)")
    done = project.run("check")
    assert done.returncode == 1
    line = project.line_of("shop.py", "def orders_of_user")
    assert f"shop.py:{line}: ST002 orders_of_user compares no field of Order" in done.stdout


def test_json_has_findings_and_changes(project: Project) -> None:
    hot(project)
    done = project.run("check", "--json")
    assert done.returncode == 1
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert report["design"] == "shop"
    [found] = [each for each in report["findings"] if each["code"] == "ST502"]
    assert found["field"] == "User.views"
    assert found["file"] == "shop.py"
    assert found["severity"] == "warning"


def test_github_gets_annotations(project: Project) -> None:
    hot(project)
    done = project.run("check", "--github")
    assert done.returncode == 1
    line = project.line_of("shop.py", "views: int = 0")
    assert (
        f"::warning file=shop.py,line={line},title=ST502 User.views::User.views is updated"
        in done.stdout
    )


def test_github_and_json_exclude_each_other(project: Project) -> None:
    assert project.run("check", "--github", "--json").returncode == 2


# --- files that cannot be checked


def test_a_file_that_breaks_cannot_be_checked(project: Project) -> None:
    project.edit("shop.py", "find(Order)", "find(Ordr)")
    line = project.line_of("shop.py", "find(Ordr)")
    done = project.run("check")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: shop.py:{line}: NameError")
    assert "hint: did you mean Order?" in done.stderr
    annotated = project.run("check", "--github")
    assert annotated.returncode == 2
    assert annotated.stdout.startswith(
        f"::error file=shop.py,line={line},title=No design to check::NameError"
    )
    assert json.loads(project.run("check", "--json").stderr)["error"]["type"] == "DesignFileWrong"


def test_no_design_cannot_be_checked(tmp_path: Path) -> None:
    assert Project(tmp_path).run("check").returncode == 2


# --- the lock


def test_a_lock_that_agrees_passes(project: Project) -> None:
    project.run("plan", "--write")
    done = project.run("check")
    assert done.returncode == 0
    assert "shop.design.json agrees" in done.stderr


def test_a_lock_that_disagrees_fails_and_says_what_is_safe(project: Project) -> None:
    project.run("plan", "--write")
    project.edit("shop.py", "@write(rps=30)", RECENT + "@write(rps=30)")
    project.edit("shop.py", "user_page, place_order]", "user_page, place_order, order_by_id]")
    done = project.run("check")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(
        line.startswith("shop.design.json:1: LOCK safe: pattern order_by_id: is new")
        for line in lines
    )
    assert "differs" in done.stderr


RECENT = """\
@read(rps=1)
def order_by_id(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


"""


def test_a_change_that_orphans_data_is_named(project: Project) -> None:
    project.run("plan", "--write")
    project.edit(
        "shop.py", "class User(Entity)", 'class User(Entity, key=("PERSON#{user_id}", "USER"))'
    )
    done = project.run("check")
    assert done.returncode == 1
    assert "LOCK orphans: entity User: its key was PK = USER#{user_id}" in done.stdout
    assert 'key=("USER#{user_id}", "USER")' in done.stdout
    annotated = project.run("check", "--github")
    assert "::error file=shop.design.json,line=1,title=orphans%3A entity User::" in annotated.stdout
    report = json.loads(project.run("check", "--json").stdout)
    assert report["changes"][0]["risk"] == "orphans"


def test_a_lock_may_be_elsewhere(project: Project) -> None:
    project.run("plan", "--write")
    (project.folder / "shop.design.json").rename(project.folder / "frozen.json")
    assert project.run("check", "--lock", "frozen.json").returncode == 0
    missing = project.run("check", "--lock", "nothing.json")
    assert missing.returncode == 2
    assert "there is no lock file nothing.json" in missing.stderr


def test_a_broken_lock_cannot_be_checked_against(project: Project) -> None:
    project.write("shop.design.json", "<<<<<<< HEAD\n")
    done = project.run("check")
    assert done.returncode == 2
    assert "shop.design.json is not a plan" in done.stderr
    assert "hint:" in done.stderr


def test_one_comment_has_the_findings_the_cost_and_the_changes(project: Project) -> None:
    assert project.run("plan", "--write").returncode == 0
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "one")):
        git(project.folder, *words)
    hot(project)
    done = project.run("check", "--format", "markdown", "--diff", "main", "--fixes")
    assert done.returncode == 1
    assert done.stdout.startswith("### shop needs work: 1 warning")
    assert "This change adds $" in done.stdout and "view is new" in done.stdout
    [finding] = [line for line in done.stdout.splitlines() if line.startswith("| **ST502**")]
    assert "`shop.py:" in finding
    assert "| safe | pattern view | is new | deploy it |" in done.stdout
    cells = [line.count(" | ") for line in done.stdout.splitlines() if line.startswith("| **ST")]
    assert set(cells) == {3}

    data = json.loads(project.run("check", "--json", "--diff", "main").stdout)
    assert data["cost"]["sentence"] in done.stdout.replace("\\_", "_")
    text = project.run("check", "--diff", "main")
    assert data["cost"]["sentence"] in text.stderr and "This change" not in text.stdout


def test_a_comment_on_a_design_without_problems_is_short(project: Project) -> None:
    done = project.run("check", "--format", "markdown")
    assert done.returncode == 0
    assert done.stdout == "### shop passes: no findings\n\nThere is no lock file yet.\n"


@pytest.mark.parametrize("other", ["--github", "--json"])
def test_a_comment_is_no_other_format(project: Project, other: str) -> None:
    done = project.run("check", "--format", "markdown", other)
    assert done.returncode == 2 and "--format markdown" in done.stderr

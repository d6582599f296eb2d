"""``stator export-design`` as people run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .design_folder import DESIGN, stator_in, with_email
from .serving import ENVIRONMENT, Serving

TOOLS = ["cloudformation", "terraform", "cdk", "nosql-workbench", "boto3", "iam"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(with_email())
    return tmp_path


@pytest.mark.parametrize("tool", TOOLS)
def test_the_export_goes_to_stdout_or_into_a_file(folder: Path, tool: str) -> None:
    printed = stator_in(folder, "export-design", tool)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert "shop" in printed.stdout
    written = stator_in(folder, "export-design", tool, "shop.py", "--out", "export")
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "wrote export\n")
    assert (folder / "export").read_text(encoding="utf-8") == printed.stdout


@pytest.mark.parametrize(
    ("options", "made"),
    [([], ["shop"]), (["--with-patterns"], ["shop", "shop-stator"])],
    ids=["plain", "with-patterns"],
)
def test_the_boto3_script_creates_the_tables_on_a_server(
    folder: Path, options: list[str], made: list[str]
) -> None:
    stator_in(folder, "export-design", "boto3", "--out", "create_tables.py", *options)
    with Serving() as server:
        environment = ENVIRONMENT | {
            "AWS_ENDPOINT_URL_DYNAMODB": str(server.facts["url"]),
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        ran = subprocess.run(
            [sys.executable, "create_tables.py"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        "".join(f"created {name}\n" for name in made),
        "",
    )


def test_a_policy_can_be_of_some_patterns_in_one_account(folder: Path) -> None:
    done = stator_in(
        folder,
        "export-design",
        "iam",
        "--pattern",
        "user_by_id",
        "--region",
        "eu-west-1",
        "--account",
        "111122223333",
    )
    [statement] = json.loads(done.stdout)["Statement"]
    assert statement["Sid"] == "UserById"
    assert statement["Resource"] == "arn:aws:dynamodb:eu-west-1:111122223333:table/shop"


def test_json_says_what_was_written(folder: Path) -> None:
    done = stator_in(folder, "export-design", "terraform", "--out", "shop.tf", "--json")
    assert json.loads(done.stdout) == {"file": "shop.tf", "tool": "terraform", "notes": []}


def test_an_unknown_pattern_is_explained(folder: Path) -> None:
    done = stator_in(folder, "export-design", "iam", "--pattern", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: design shop has no pattern nobody\nhint: name one of ")


def test_no_design_in_the_folder_is_explained(tmp_path: Path) -> None:
    done = stator_in(tmp_path, "export-design", "cdk")
    assert done.returncode == 1
    assert "there is no design in this folder" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["pulumi"],
        ["terraform", "--pattern", "x"],
        ["cdk", "--region", "eu-west-1"],
        ["cdk", "--json"],
    ],
)
def test_wrong_usage_exits_with_2(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "shop.py").write_text(DESIGN)
    done = stator_in(tmp_path, "export-design", *arguments)
    assert done.returncode == 2
    assert "Usage: stator export-design" in done.stderr


def test_updates_are_written_one_after_the_other(folder: Path) -> None:
    assert stator_in(folder, "plan", "--write").returncode == 0
    lock = next(folder.glob("*.design.json"))
    (folder / "deployed.json").write_text(lock.read_text())
    before = ["export-design", "cloudformation", "--since", "deployed.json", "--out", "shop.json"]
    done = stator_in(folder, *before)
    assert (done.returncode, done.stderr) == (0, "wrote shop.json\n")
    assert stator_in(folder, *before[:-2]).returncode == 2
    missing = stator_in(folder, *before[:3], "nothing.json", "--out", "shop.json")
    assert missing.returncode == 1 and "no lock file nothing.json" in missing.stderr

"""Workflows, templates and hooks do what they say, as far as that shows without GitHub."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    path
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    if path.name != "config.yml"
)
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands(workflow: Path) -> list[str]:
    jobs = read(workflow)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_nothing_but_targets_of_the_makefile(workflow: Path) -> None:
    expression = re.compile(r"\$\{\{.*?\}\}")
    called = [shlex.split(expression.sub("X", command)) for command in commands(workflow)]
    assert called
    for program, target, *variables in called:
        assert program == "make" and target in make_targets()
        assert all(variable.startswith("PYTHON=") for variable in variables)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_unless_a_job_says_more(workflow: Path) -> None:
    assert read(workflow)["permissions"] == {"contents": "read"}


def test_ci_tests_each_python_that_the_package_names() -> None:
    tested = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]
    named = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    assert tested["strategy"]["matrix"]["python"] == named


def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    done = subprocess.run([actionlint(), *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def actionlint() -> str:
    """The one on PATH, or one built by Go once and kept with the servers of the tests."""
    folder = ROOT / ".servers" / "actionlint"
    found = shutil.which("actionlint") or shutil.which("actionlint", path=str(folder))
    if found is not None:
        return found
    if shutil.which("go") is None:
        pytest.skip("neither actionlint nor go is installed")
    environment = {**os.environ, "GOBIN": str(folder)}
    done = subprocess.run(
        ["go", "install", ACTIONLINT], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"actionlint cannot be installed: {done.stderr.strip()[-200:]}")
    return str(folder / "actionlint")


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_github_accepts(form: Path) -> None:
    content = read(form)
    assert {"name", "description", "labels", "body"} == set(content)
    ids = [each["id"] for each in content["body"] if each["type"] != "markdown"]
    assert ids and len(set(ids)) == len(ids)
    for each in content["body"]:
        assert each["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        assert ("value" if each["type"] == "markdown" else "label") in each["attributes"]


def test_templates_name_pages_and_commands_that_exist() -> None:
    templates = [*FORMS, ROOT / ".github" / "pull_request_template.md"]
    text = "\n".join(path.read_text() for path in templates)
    pages = re.findall(r"[\w/]+\.md", text)
    assert pages and [page for page in pages if not (ROOT / page).exists()] == []
    targets = set(re.findall(r"make ([a-z]+)", text))
    assert targets and targets <= make_targets()


def test_hooks_of_this_repository_use_tools_of_its_environment() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    packages = {"ruff": "ruff", "lint-imports": "import-linter"}
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        for hook in repository["hooks"]:
            program = hook["entry"].split()[0].removeprefix(".venv/bin/")
            assert f"\n{packages[program]}==" in f"\n{lock}"


def test_the_hook_for_designs_checks_a_design(tmp_path: Path) -> None:
    (hook,) = read(ROOT / ".pre-commit-hooks.yaml")
    program, *arguments = shlex.split(hook["entry"])
    command = [str(Path(sys.executable).with_name(program))]
    new = [*command, "new", "shop", "--example", "shop"]
    subprocess.run(new, cwd=tmp_path, capture_output=True, check=True)
    design = tmp_path / "shop" / "design.py"

    def run() -> int:
        check = [*command, *arguments]
        done = subprocess.run(check, cwd=design.parent, capture_output=True, check=False)
        return done.returncode

    assert not hook["pass_filenames"]
    assert run() == 0
    design.write_text("nothing = 1\n")
    assert run() == 2

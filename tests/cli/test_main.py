"""The entry point: finding commands, showing errors, exit codes, help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

from stator.cli import main as main_module
from stator.cli.main import build_app, main
from stator.cli.register import COMMANDS, GROUPS, CommandEntry
from stator.errors import ConfigurationError, StatorError

from .serving import ENVIRONMENT, run


def end_of(
    failure: BaseException | None, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> str | int | None:
    """The exit code of a command that ends in ``failure``."""

    def command() -> None:
        if failure is not None:
            raise failure

    module = ModuleType("a_command_for_the_test")
    module.command = command  # type: ignore[attr-defined]  # a module made for the test
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        main_module, "COMMANDS", (CommandEntry("try", module.__name__, "design", "Try."), *COMMANDS)
    )
    with pytest.raises(SystemExit) as ended:
        main(["try", *arguments])
    return ended.value.code


def test_a_command_that_is_done_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    assert end_of(None, monkeypatch) == 0


def test_an_error_is_shown_with_its_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(ConfigurationError("it is wrong", hint="put it right"), monkeypatch) == 1
    assert capsys.readouterr().err == "error: it is wrong\nhint: put it right\n"


def test_an_error_without_a_hint_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(StatorError("it is wrong"), monkeypatch) == 1
    assert capsys.readouterr().err == "error: it is wrong\n"


def test_a_file_that_cannot_be_used_is_an_error_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(PermissionError(13, "Permission denied", "/x/y"), monkeypatch) == 1
    assert capsys.readouterr().err == (
        "error: /x/y: Permission denied\nhint: check the path and its permissions\n"
    )


def test_an_interrupt_exits_quietly_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr() == ("", "")


# Ctrl-C while a module is imported. The finder is asked for each module that is not loaded yet.
INTERRUPTED_START = """
import runpy, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            raise KeyboardInterrupt

wanted, sys.argv = sys.argv[1], ["stator", *sys.argv[2:]]
sys.meta_path.insert(0, Interrupt())
runpy.run_module("stator", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("command", "module"),
    [
        *(("new", name) for name in ("stator.cli", "stator.cli.main", "typer", "stator.errors")),
        *((entry.name, entry.module) for entry in COMMANDS),
    ],
)
def test_an_interrupt_during_the_start_exits_quietly_with_130(command: str, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_START, module, command, "--help"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        end_of(ZeroDivisionError(), monkeypatch)


def test_help_lists_every_command_and_imports_none() -> None:
    done = run(
        script="import sys\nfrom stator.cli.main import main\n"
        "try:\n    main(['--help'])\nfinally:\n"
        "    names = [name for name in sys.modules if name.startswith('stator.cli.')]\n"
        "    print(names, file=sys.stderr)"
    )
    assert done.returncode == 0
    for entry in COMMANDS:
        assert entry.name in done.stdout
        assert entry.module not in done.stderr


def test_an_unknown_command_is_wrong_usage() -> None:
    done = run("serv")
    assert done.returncode == 2
    assert "serv" in done.stderr


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_its_summary_as_first_line_of_its_help(entry: CommandEntry) -> None:
    done = run(entry.name, "--help")
    assert done.returncode == 0
    assert entry.summary.split()[0] in done.stdout


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_an_example_and_complete_sentences_in_its_help(
    entry: CommandEntry,
) -> None:
    done = run(entry.name, "--help")
    group: Any = get_command(build_app([entry.name]))
    command = group.commands[entry.name]
    assert "Example" not in command.help
    assert f"\n  stator {entry.name}" in command.epilog
    guide = Path(__file__).parents[2] / command.epilog.splitlines()[-1].removeprefix("Guide: ")
    assert guide.exists(), guide
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert done.stdout.endswith(f"\n\n  {command.epilog.splitlines()[-1]}\n")
    for parameter in command.params:
        assert parameter.help and parameter.help.endswith((".", "s3://...")), parameter.name


def test_help_lists_each_command_in_its_group_on_one_whole_line() -> None:
    lines = run("--help").stdout.splitlines()
    for group, entries in GROUPS.items():
        at = lines.index(f"{group}:")
        found = [line.split(maxsplit=1) for line in lines[at + 1 : at + 1 + len(entries)]]
        assert found == [[entry.name, entry.summary] for entry in entries]
    assert [entry.name for entry in COMMANDS][:2] == ["new", "serve"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("stator pl", "plan"),
        ("stator plan --layo", "--layouts"),
        ("stator cost --mode res", "reserved"),
    ],
)
def test_a_shell_completes_commands_options_and_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, found: str
) -> None:
    monkeypatch.setenv("_STATOR_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == [found]

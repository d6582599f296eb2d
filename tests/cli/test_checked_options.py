"""No option of a command takes NaN, infinity, or a number that nothing can wait for."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from stator.cli.main import build_app, main
from stator.cli.register import COMMANDS


def _float_options() -> list[tuple[str, str]]:
    found = []
    for entry in COMMANDS:
        group: Any = get_command(build_app([entry.name]))
        command = group.commands[entry.name]
        found += [
            (entry.name, parameter.opts[0])
            for parameter in command.params
            if "float" in type(parameter.type).__name__.lower()
        ]
    return found


FLOATS = _float_options()


def test_the_options_are_found() -> None:
    assert {("work", "--lease"), ("load", "--rate"), ("top", "--every")} <= set(FLOATS)
    assert len(FLOATS) >= 12


def _required(name: str) -> list[str]:
    """Return something for every required argument and option of a command."""
    group: Any = get_command(build_app([name]))
    words: list[str] = []
    for parameter in group.commands[name].params:
        if not parameter.required:
            continue
        given = next(iter(getattr(parameter.type, "choices", None) or ["x"]))
        is_option = parameter.param_type_name == "option"
        words += [parameter.opts[0], str(given)] if is_option else [str(given)]
    return words


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "NaN", "1e308", "1e999"])
@pytest.mark.parametrize(("name", "option"), FLOATS)
def test_a_number_that_is_none_is_wrong_usage(
    name: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, *_required(name), f"{option}={value}"])
    assert ended.value.code == 2
    assert option in capsys.readouterr().err


# --- the address


def _options_of(name: str) -> set[str]:
    group: Any = get_command(build_app([name]))
    return {option for each in group.commands[name].params for option in each.opts}


TWO_ADDRESSES = {"copy"}
NO_ADDRESS = {
    "alarms",
    "check",
    "cost",
    "dashboards",
    "demo",
    "docs",
    "export-design",
    "new",
    "plan",
    "serve",
    "simulate",
    "verify",
}
FILE_OR_ADDRESS = {"infer"}


@pytest.mark.parametrize(
    "name",
    sorted({entry.name for entry in COMMANDS} - TWO_ADDRESSES - NO_ADDRESS - FILE_OR_ADDRESS),
)
def test_every_command_that_works_at_an_address_takes_at(name: str) -> None:
    assert "--at" in _options_of(name)


@pytest.mark.parametrize("other", ["--to", "--live", "--endpoint-url", "--url"])
def test_another_name_of_the_address_leads_to_at(
    other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["top", "work.py", other, "http://localhost:8000"])
    assert ended.value.code == 2
    assert f"No such option: {other} (Possible options: --at)" in capsys.readouterr().err


def test_an_address_that_is_given_twice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", "here", "--at", "there", "--out", "x"])
    assert ended.value.code == 2
    assert "here and --at there; keep one" in capsys.readouterr().err

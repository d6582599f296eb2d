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

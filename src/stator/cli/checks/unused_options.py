"""Refuses options that would have no effect together with the others."""

from __future__ import annotations

from typing import Any

import typer


def refuse_unused(context: typer.Context, why: str, *names: str) -> None:
    """Raise BadParameter if one of these parameters of the command was given.

    ``names`` are the names of the command's Python parameters. ``why`` ends the sentence "--prefix
    has no effect ...".
    """
    # Any: Typer has its own copy of click's classes.
    parameters: list[Any] = list(context.command.params)
    for parameter in parameters:
        source = context.get_parameter_source(parameter.name)
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            is_option = parameter.param_type_name == "option"
            shown = parameter.opts[0] if is_option else str(context.params[parameter.name][0])
            raise typer.BadParameter(f"{shown} has no effect {why}; leave it out")

"""Refuses NaN, infinity and absurd numbers in the options of every command.

Ranges of options do not: ``nan`` is neither below the least value nor above the greatest.
"""

from __future__ import annotations

import math
from typing import Any, Final

import typer
from typer.core import TyperCommand

from stator.model.seconds import LONGEST_SECONDS

_LARGEST: Final = 1e15


class CheckedCommand(TyperCommand):
    """A command whose numbers are checked before it runs."""

    # Any: Typer has its own copy of click's classes.
    def invoke(self, ctx: Any) -> Any:
        for parameter in self.params:
            value = ctx.params.get(parameter.name)
            if isinstance(value, float):
                _check(value, parameter)
        return super().invoke(ctx)


def _check(value: float, parameter: Any) -> None:
    most = LONGEST_SECONDS if parameter.metavar == "SECONDS" else _LARGEST
    if not math.isfinite(value) or abs(value) > most:
        raise typer.BadParameter(
            f"{parameter.opts[0]} {value:g} is not a number up to {most:,.0f}"
            + (" seconds (a hundred years)" if parameter.metavar == "SECONDS" else "")
        )

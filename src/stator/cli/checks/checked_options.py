"""The checks of every command's options, before the command runs.

NaN, infinity and absurdly large numbers are refused. The ``min=`` and ``max=`` of an option do not
refuse ``nan``, because it is neither below nor above any number. If a user writes another tool's
option for the address, such as ``--endpoint-url``, the error suggests ``--at``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import typer
from typer.core import TyperCommand

from stator.model.seconds import LONGEST_SECONDS

_LARGEST: Final = 1e15
_ADDRESS_OPTION: Final = "--at"
_OTHER_NAMES: Final = frozenset(
    {"--to", "--live", "--address", "--endpoint", "--endpoint-url", "--host", "--server", "--url"}
)
"""Names under which people look for the address, from other commands and other tools."""


class CheckedCommand(TyperCommand):
    """A command whose options are checked before it runs."""

    # Any: Typer has its own copy of click's classes.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            known = {name for parameter in self.params for name in parameter.opts}
            if getattr(error, "option_name", None) in _OTHER_NAMES and _ADDRESS_OPTION in known:
                error.possibilities = [_ADDRESS_OPTION]  # type: ignore[attr-defined]
            raise

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
            f"{parameter.opts[0]} {value:g} is too large or not a number; use at most {most:,.0f}"
            + (" seconds (a hundred years)" if parameter.metavar == "SECONDS" else "")
        )

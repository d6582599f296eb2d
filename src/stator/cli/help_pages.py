"""How ``stator --help`` and the help of a command look.

Commands are listed in groups, one whole line each. The help of a command ends with its examples and
the address of its guide.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from typer.core import TyperGroup

from stator.cli.output import wrapped
from stator.cli.register import GROUPS, CommandEntry

_WIDTH = 76
"""The longest line of an example, so that it fits 80 columns with its indentation."""


class GroupedCommands(TyperGroup):
    """The ``stator`` command: its help lists the commands by group, and usage errors wrap."""

    # Any: Typer has its own copy of click's classes since 0.28, and uses click's before.
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        grouped = {entry.name for entries in GROUPS.values() for entry in entries}
        others = [name for name in self.list_commands(ctx) if name not in grouped]
        width = max(map(len, (*grouped, *others)))
        for title, entries in GROUPS.items():
            rows = [(entry.name.ljust(width), entry.summary) for entry in entries]
            with formatter.section(title):
                formatter.write_dl(rows)
        if others:
            with formatter.section("Others"):
                formatter.write_dl([(name, self.commands[name].help or "") for name in others])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            usage: Any = error
            if hasattr(usage, "format_message"):  # click prints it after "Error: "
                text = wrapped(f"Error: {usage.format_message()}", sys.stderr, indent=7)
                usage.format_message = lambda: text.removeprefix("Error: ")
            raise


def help_text(command: Callable[..., Any]) -> str:
    """Return the docstring of a command without its examples."""
    return "\n\n".join(each for each in _paragraphs(command) if not each.startswith("Example: "))


def help_ending(command: Callable[..., Any], entry: CommandEntry) -> str:
    """Return the examples in the docstring of a command, and where its guide is."""
    examples = [
        line
        for each in _paragraphs(command)
        if each.startswith("Example: ")
        for line in _lines(each.removeprefix("Example: "))
    ]
    title = "Example:" if len(examples) == 1 else "Examples:"
    shown = "\n".join(["\b", title, *(f"  {line}" for line in examples)])
    return f"{shown}\n\nGuide: docs/guides/{entry.guide}.md"


def _paragraphs(command: Callable[..., Any]) -> list[str]:
    return (inspect.getdoc(command) or "").split("\n\n")


def _lines(example: str) -> Iterator[str]:
    """Split an example command into lines of at most ``_WIDTH`` characters.

    Lines break only before an option, so a very long option still makes a longer line. Every line
    but the last ends with a backslash, which tells the shell to continue.
    """
    line = ""
    for word in example.split():
        starts_option = word.startswith("--")
        if line and starts_option and len(line) + _next_length(example, word) > _WIDTH:
            yield f"{line} \\"
            line = "   "
        line = f"{line} {word}" if line else word
    yield line


def _next_length(example: str, option: str) -> int:
    """Return how many characters ``option`` adds to a line of ``example``.

    They include its value, the space before it, and the space and backslash after it.
    """
    rest = example[example.index(option) :].split(" --")[0]
    return len(rest) + 3

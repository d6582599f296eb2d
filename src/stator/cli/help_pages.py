"""How ``stator --help`` and the help of a command look.

Commands are listed in groups, one whole line each. The help of a command ends with its examples and
the address of its guide.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from typer.core import TyperGroup

from stator.cli.register import GROUPS, CommandEntry

_WIDTH = 76
"""The longest line of an example, so that it fits 80 columns with its indentation."""


class GroupedCommands(TyperGroup):
    """The ``stator`` command: its help lists the commands by group."""

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
    """Yield a command line in lines that fit, which a shell reads as one."""
    line = ""
    for word in example.split():
        starts_option = word.startswith("--")
        if line and starts_option and len(line) + _next_length(example, word) > _WIDTH:
            yield f"{line} \\"
            line = "   "
        line = f"{line} {word}" if line else word
    yield line


def _next_length(example: str, option: str) -> int:
    """Return the length of an option with its value."""
    rest = example[example.index(option) :].split(" --")[0]
    return len(rest) + 3

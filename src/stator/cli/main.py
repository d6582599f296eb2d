"""The entry point of ``stator``: finds the command, runs it, and reports errors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from stator.child_process import end_with_parent
from stator.cli.checks.checked_options import CheckedCommand
from stator.cli.help_pages import GroupedCommands, help_ending, help_text
from stator.cli.output import show_error
from stator.cli.register import COMMANDS, CommandEntry
from stator.errors import ConfigurationError, StatorError


def main(arguments: Sequence[str] | None = None) -> None:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:  # this process runs nothing else
        # A page of items is thousands of small objects without cycles. By default the collector
        # would scan them at every 700 allocations.
        gc.set_threshold(50_000, 20, 20)
        # Threads wait for each other's answers. A computing thread lets others send theirs after
        # one millisecond instead of five.
        sys.setswitchinterval(0.001)
        end_with_parent()
    try:
        build_app(words)(args=words, prog_name="stator")
    except StatorError as error:
        show_error(error, as_json="--json" in words)
        sys.exit(1)
    except OSError as error:  # a file that cannot be read or written
        if error.filename is None:
            raise
        problem = ConfigurationError(
            f"{error.filename}: {error.strerror}", hint="check the path and its permissions"
        )
        show_error(problem, as_json="--json" in words)
        sys.exit(1)


def build_app(arguments: Sequence[str]) -> typer.Typer:
    """Build the Typer application, with only the called command imported.

    Other commands have only the summary that ``--help`` shows.
    """
    # Help is plain text: drawing it in boxes would take longer than the rest of the start.
    app = typer.Typer(
        cls=GroupedCommands,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    words = _completed_words() or arguments
    called = next((word for word in words if not word.startswith("-")), None)
    for entry in COMMANDS:
        if entry.name == called:
            command = _load(entry)
            text, ending = help_text(command), help_ending(command, entry)
            app.command(entry.name, cls=CheckedCommand, help=text, epilog=ending)(command)
        else:
            app.command(entry.name, help=entry.summary)(_not_loaded)
    return app


def _completed_words() -> list[str]:
    """Return the words of the line that a shell asks to complete, without the program's name."""
    if "_STATOR_COMPLETE" not in os.environ:
        return []
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return line.split()[1:]


def _load(entry: CommandEntry) -> Callable[..., Any]:
    command: Callable[..., Any] = import_module(entry.module).command
    return command


def _not_loaded() -> None:
    """Do nothing. Takes the place of the commands whose modules are not imported."""


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(version("stator"))
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Build data systems on DynamoDB, and run them on your own machine.

    Start with: stator new shop && cd shop && stator plan
    """

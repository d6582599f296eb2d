"""Output of commands: errors on stderr as text or JSON, and generated text in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from stator.errors import ConfigurationError, StatorError

if TYPE_CHECKING:  # see plain_console
    from rich.console import Console

RISK_COLOURS: Final[dict[str, str]] = {
    "orphans": "red",
    "upcast": "red",
    "default": "red",
    "backfill": "yellow",
    "safe": "green",
}


def plain_console() -> Console:
    """Return a console that prints text as it is: ``:end:`` and ``[x]`` are no markup."""
    from rich.console import Console  # heavy, and most commands do without

    return Console(highlight=False, markup=False, emoji=False)


def show_error(error: StatorError, *, as_json: bool) -> None:
    """Print an error and its hint on stderr."""
    if as_json:
        typer.echo(json.dumps({"error": error_facts(error)}), err=True)
        return
    typer.echo(typer.style("error: ", fg="red", bold=True) + error.message, err=True)
    if error.hint:
        typer.echo(typer.style("hint: ", fg="cyan", bold=True) + error.hint, err=True)


def error_facts(error: StatorError) -> dict[str, str]:
    """Return the JSON form of an error, which is the same for every command."""
    facts = {"type": type(error).__name__, "message": error.message}
    return facts | {"hint": error.hint} if error.hint else facts


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ConfigurationError with the reason if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        hint = (
            "choose another file with --out"
            if path.parent.is_dir()
            else f"create the folder {path.parent} first"
        )
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or error}", hint=hint
        ) from None

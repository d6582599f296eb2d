"""How commands speak: errors with a hint, as text or as JSON, on stderr."""

from __future__ import annotations

import json

import typer

from stator.errors import StatorError


def show_error(error: StatorError, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"error": error_facts(error)}), err=True)
        return
    typer.echo(typer.style("error: ", fg="red", bold=True) + error.message, err=True)
    if error.hint:
        typer.echo(typer.style("hint: ", fg="cyan", bold=True) + error.hint, err=True)


def error_facts(error: StatorError) -> dict[str, str]:
    """One shape for every error of every command."""
    facts = {"type": type(error).__name__, "message": error.message}
    return facts | {"hint": error.hint} if error.hint else facts

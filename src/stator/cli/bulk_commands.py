"""Code that the commands load, export and copy share.

It finds the target of ``--entity``, reports when ``--between`` makes a job
wait, says where failed rows are, and handles Ctrl-C.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import typer

from stator.addresses import TransportOptions
from stator.cli.design_file import load_design_file
from stator.cli.stop_signal import INTERRUPTED
from stator.design.design import Design
from stator.design.entities.entity import info
from stator.errors import ConfigurationError
from stator.pipeline.bulk.targets import BulkTarget

# --- targets --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesignEntity:
    """A design and one of its entities."""

    design: Design
    entity: type[Any]


def find_entity(text: str) -> DesignEntity:
    """Find the entity that the option names.

    The forms are ``design.py:Entity``, ``design.py:design:Entity`` and ``module:Entity``.
    """
    head, _, name = text.rpartition(":")
    if not head or not name:
        raise ConfigurationError(
            f"--entity {text} names no entity",
            hint="write the design and the entity, for example --entity design.py:Order",
        )
    design = load_design_file(head).design
    entities = {info(cls).name: cls for cls in design.entities}
    if name not in entities:
        raise ConfigurationError(
            f"design {design.name} has no entity {name}", hint=f"name one of {', '.join(entities)}"
        )
    return DesignEntity(design, entities[name])


def connection_options(region: str | None, profile: str | None) -> TransportOptions:
    options: TransportOptions = {}
    if region is not None:
        options["region"] = region
    if profile is not None:
        options["profile"] = profile
    return options


def open_target(
    address: str,
    table: str | None,
    entity: str | None,
    *,
    prefix: str = "",
    blobs: str | None = None,
    region: str | None = None,
    profile: str | None = None,
) -> BulkTarget:
    """Open the table that ``table`` names, or the table of ``entity``. Pass exactly one of them."""
    if (table is None) == (entity is None):
        raise typer.BadParameter(
            "give either --table NAME or --entity design.py:Entity"
            + (", not both" if table is not None else "")
        )
    options = connection_options(region, profile)
    if entity is None:
        return BulkTarget.open(address, table, options=options)
    found = find_entity(entity)
    return BulkTarget.open(
        address,
        design=found.design,
        entity=found.entity,
        prefix=prefix,
        blobs=blobs,
        options=options,
    )


# --- waits and stops ------------------------------------------------------------------------------


class WaitNotice:
    """Says on stderr that a job waits for the hours of ``--between``, once for each wait."""

    def __init__(self, between: str | None) -> None:
        self._between = between
        self._said: float | None = None

    def facts(self, waits_until: float | None, facts: str) -> str:
        """Return the text of the progress bar. Prints the notice when a wait begins.

        The text is ``facts``; during a wait, "waiting until ..." is put before it.
        ``waits_until`` is None if the job does not wait.
        """
        if waits_until is None:
            self._said = None
            return facts
        shown = f"{datetime.fromtimestamp(waits_until):%H:%M}"
        if self._said is None:
            self._said = waits_until
            typer.echo(f"outside of {self._between}: waiting until {shown}", err=True)
        return f"waiting until {shown}  {facts}"


def show_failed(what: str, dead_letters: str | None) -> None:
    """Print how many rows or items failed, and where they are or could be kept."""
    where = (
        f"the reasons are in {dead_letters}"
        if dead_letters
        else "--dead-letters FILE keeps them with the reasons"
    )
    typer.echo(typer.style(f"{what} failed; {where}", fg="red"), err=True)


@contextmanager
def resumable() -> Iterator[None]:
    """Turn Ctrl-C in a ``with`` block into exit code 130 and a message on how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Stopped. Nothing is lost. To continue: {_resume_command()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _resume_command() -> str:
    """Return the current command line with --resume, and without --restart."""
    words = [word for word in sys.argv[1:] if word not in ("--restart", "--resume")]
    return shlex.join(["stator", *words, "--resume"])

"""What bulk commands share: finding the design behind ``--entity``, a progress bar on a terminal, sizes and times as people read them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from stator.addresses import TransportOptions
from stator.cli.design_file import load_design_file
from stator.design.design import Design
from stator.design.entities.entity import info
from stator.errors import ConfigurationError
from stator.pipeline.bulk.targets import Target

INTERRUPTED = 130
"""What a shell expects of a program that ended by Ctrl-C: 128 and the signal's number."""


@dataclass(frozen=True, slots=True)
class DesignEntity:
    """A design, and one of its entities where one was named."""

    design: Design
    entity: type[Any] | None


def chosen_entity(given: str) -> DesignEntity:
    """``design.py:Entity``, ``design.py:design:Entity`` or ``module:Entity``."""
    head, _, name = given.rpartition(":")
    if not head or not name:
        raise ConfigurationError(f"{given} names no entity", hint="--entity design.py:Order")
    design = load_design_file(head).design
    found = {info(cls).name: cls for cls in design.entities}
    if name not in found:
        raise ConfigurationError(
            f"the design {design.name} has no entity {name}", hint=f"it has {', '.join(found)}"
        )
    return DesignEntity(design, found[name])


def opened_target(
    address: str,
    table: str | None,
    entity: str | None,
    *,
    prefix: str = "",
    blobs: str | None = None,
    region: str | None = None,
    profile: str | None = None,
) -> Target:
    if (table is None) == (entity is None):
        raise typer.BadParameter(
            "name the table with --table NAME, or the entity with --entity design.py:Entity"
        )
    options: TransportOptions = {}
    if region is not None:
        options["region"] = region
    if profile is not None:
        options["profile"] = profile
    if entity is None:
        return Target.open(address, table, options=options)
    chosen = chosen_entity(entity)
    return Target.open(
        address,
        design=chosen.design,
        entity=chosen.entity,
        prefix=prefix,
        blobs=blobs,
        options=options,
    )


# --- progress -----------------------------------------------------------------------------------------------


class Bar:
    """A line that says how far it is; nothing where stderr is no terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                SpinnerColumn,
                TextColumn,
                TimeRemainingColumn,
            )

            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[facts]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
            self._task = self._progress.add_task(self._label, total=1.0, facts="")
        return self

    def show(self, share: float, facts: str) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=share, facts=facts)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def resumable(how: str) -> Iterator[None]:
    """Ctrl-C ends a job cleanly, with a word about how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"stopped; nothing is lost. Go on with: {how}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def again() -> str:
    """The command that was given, as one that takes it up."""
    given = [word for word in sys.argv[1:] if word not in ("--restart", "--resume")]
    return shlex.join(["stator", *given, "--resume"])

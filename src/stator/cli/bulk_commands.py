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
from stator.cli.design_file import DesignFile, load_design_file, plan_of
from stator.cli.output import say, styled
from stator.cli.stop_signal import INTERRUPTED
from stator.design.design import Design
from stator.design.entities.entity import info
from stator.design.plan.lock_file import compare
from stator.errors import ConfigurationError
from stator.pipeline.bulk.targets import BulkTarget

FAILED_ROWS = 3
"""The exit code of a load that is done, except for rows that failed. A restart cannot help."""

# --- targets --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesignEntity:
    """A design file and one of its entities."""

    file: DesignFile
    entity: type[Any]

    @property
    def design(self) -> Design:
        return self.file.design


def find_entity(text: str) -> DesignEntity:
    """Find the entity that ``text``, the value of ``--entity``, names.

    The forms are ``design.py:Entity``, ``design.py:design:Entity`` and ``module:Entity``.
    """
    head, _, name = text.rpartition(":")
    if not head or not name:
        raise ConfigurationError(
            f"--entity {text} names no entity",
            hint="write the design and the entity, for example --entity design.py:Order",
        )
    file = load_design_file(head)
    design = file.design
    entities = {info(cls).name: cls for cls in design.entities}
    if name not in entities:
        raise ConfigurationError(
            f"design {design.name} has no entity {name}", hint=f"name one of {', '.join(entities)}"
        )
    return DesignEntity(file, entities[name])


def check_locked_keys(entity: str, option: str) -> None:
    """Raise ConfigurationError if the design has another key for an entity than its lock file.

    Items would be written under keys that deployed programs do not read, and would be orphans once
    the design is corrected. ``entity`` is the value of ``--entity``. ``option`` is the command's
    option that skips this check (``--new-keys`` of a load); the hint names it.
    """
    found = find_entity(entity)
    locked = found.file.frozen
    if locked is None:
        return
    name, plan = info(found.entity).name, plan_of(found.design)
    tables = {each.table for each in (*locked.entities, *plan.entities) if each.name == name}
    subjects = {f"entity {name}", *(f"table {table}" for table in tables)}
    change = next(
        (
            each
            for each in compare(locked, plan)
            if each.risk == "orphans" and each.subject in subjects
        ),
        None,
    )
    if change is not None:
        raise ConfigurationError(
            f"{change.subject} differs from the lock file {found.file.lock.name}: {change.what}",
            hint=f"{change.do}; `stator check` shows every difference, and {option} writes under"
            " the new keys",
        )


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
    """Open the table that ``table`` names, or the table of ``entity``. Pass one, not both."""
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
            say(f"outside of {self._between}: waiting until {shown}", err=True)
        return f"waiting until {shown}  {facts}"


def show_failed(what: str, dead_letters: str | None) -> None:
    """Print how many rows or items failed, and the file that holds them with the reasons.

    Without such a file, the message recommends ``--dead-letters``.

    ``what`` is the number as text, such as "3 rows".
    """
    where = (
        f"the reasons are in {dead_letters}"
        if dead_letters
        else "--dead-letters FILE keeps them with the reasons"
    )
    say(styled(f"{what} failed; {where}", "red"), err=True)


class Progress:
    """How far a job is, as text such as "120,000 rows". ``done`` is empty at the start."""

    def __init__(self) -> None:
        self.done = ""


@contextmanager
def resumable() -> Iterator[Progress]:
    """Turn Ctrl-C in a ``with`` block into exit code 130 and a message on how to continue."""
    progress = Progress()
    try:
        yield progress
    except KeyboardInterrupt:
        done = f" after {progress.done}" if progress.done else ""
        say(f"Stopped{done}. Nothing is lost. To continue:", err=True)
        say(f"  {_resume_command()}", err=True, whole=True)
        raise typer.Exit(INTERRUPTED) from None


def _resume_command() -> str:
    """Return the current command line with --resume, and without --restart."""
    words = [word for word in sys.argv[1:] if word not in ("--restart", "--resume")]
    return shlex.join(["stator", *words, "--resume"])

"""The journal of a job: a small file that says how far the job has got, so that it can resume.

The journal is replaced as a whole: written under a temporary name, then renamed. A reader sees the
old journal or the new one, never half of either. It opens with a description of the job: its inputs
with their fingerprints, its target, and every option that decides what is written. A resumed job
must have the same description; otherwise it is refused, and the error names the difference.

Everything before the journal's position is done. Everything after it may have been done, and is
done again: a put of the same item changes nothing. A load also records, as ``ahead``, which rows
after the position are done, and does not repeat these rows (see the module ``rows_ahead``). The
counts and the length of the dead-letter file are the values at that position. Every row is
therefore counted once, and every failed row becomes one dead letter.

The layout has a version, ``stator_journal``. A journal without one is version 1. A journal with a
higher version than this code knows is refused: a newer Stator wrote it and must finish it. Version
2 added ``ahead``.

The journal of a job that is complete is deleted. A load in which rows failed keeps it, with its
result as ``done``: the same command, started again by a supervisor, then loads nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from stator.errors import BulkError, JournalDamaged, JournalDiffers

VERSION = 2
_OTHER = "name another journal with --journal"


@dataclass(slots=True)
class JournalState:
    """How far a job has got.

    ``place`` is the progress to resume from, in a form that depends on the kind of job.
    ``dead_bytes`` is the length of the valid part of the dead-letter file. ``ahead`` says which
    rows after ``place`` are done already (``rows_ahead``).
    """

    place: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    dead_bytes: int = 0
    ahead: dict[str, Any] = field(default_factory=dict)


class Journal:
    """The journal of one job: the file that says how far the job has got.

    If ``path`` is None, nothing is written.
    """

    def __init__(self, path: Path | None, job: dict[str, Any]) -> None:
        self.path = path
        self.job = json.loads(json.dumps(job))

    def begin(self, *, resume: bool, restart: bool) -> JournalState | None:
        """Return the state to resume from, or None to start from the beginning.

        ``restart`` deletes an existing journal, or moves it aside if it cannot be read: it may be
        another file, named by mistake. Without ``resume`` or ``restart``, an existing
        journal raises BulkError. ``resume`` without a journal starts from the beginning, so a
        supervisor can start and restart a job with the same command.
        """
        if self.path is None:
            return None
        if restart:
            self._discard()
            return None
        earlier = self._read()
        if earlier is None:
            return None
        self._check_version(earlier)
        if "done" in earlier:
            return None
        if not resume:
            raise BulkError(
                f"the journal {self.path} belongs to an earlier run that did not finish",
                hint="continue that run with --resume, or start over with --restart",
            )
        self._check(earlier["job"])
        with self.reading_state():
            state = JournalState(**earlier["state"])
        parts = (state.place, state.counts, state.ahead)
        if not all(isinstance(each, dict) for each in parts) or type(state.dead_bytes) is not int:
            raise self.damaged()
        return state

    def done(self) -> dict[str, Any] | None:
        """Return the result of an earlier run that completed this job, or None.

        A run with another description, for example of an older input, does not count.
        """
        earlier = None if self.path is None else self._read()
        if earlier is None or "done" not in earlier or self.difference(earlier["job"]) is not None:
            return None
        if not isinstance(earlier["done"], dict):
            raise self.damaged()
        return dict(earlier["done"])

    def _discard(self) -> None:
        assert self.path is not None
        try:
            self._read()
        except JournalDamaged:
            self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
        else:
            self.path.unlink(missing_ok=True)

    def damaged(self, reason: str = "its state cannot be read") -> JournalDamaged:
        return JournalDamaged(
            f"the journal {self.path} is damaged: {reason}",
            hint=f"start over with --restart, or {_OTHER}",
        )

    def earlier_job(self) -> dict[str, Any] | None:
        """Return the description of the job that the existing journal belongs to.

        Returns None if there is no journal.
        """
        earlier = None if self.path is None else self._read()
        return None if earlier is None else dict(earlier["job"])

    @contextmanager
    def reading_state(self) -> Iterator[None]:
        """Return a context manager for the code that reads a stored state.

        Raises JournalDamaged if the code fails because the state does not have the expected form.
        """
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self.damaged() from None

    def _read(self) -> dict[str, Any] | None:
        assert self.path is not None
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise self.damaged(f"it cannot be read: {error}") from None
        except OSError as error:
            raise BulkError(
                f"the journal {self.path} cannot be read: {error.strerror or error}",
                hint=f"check its permissions, or {_OTHER}",
            ) from None
        if not isinstance(found, dict) or not {"job", "state"} <= found.keys():
            raise BulkError(f"{self.path} is not a journal of Stator", hint=_OTHER)
        if not isinstance(found["job"], dict) or not isinstance(found["state"], dict):
            raise self.damaged()
        return found

    def _check_version(self, earlier: dict[str, Any]) -> None:
        version = earlier.get("stator_journal", 1)
        if not isinstance(version, int) or version > VERSION:
            raise BulkError(
                f"the journal {self.path} has version {version}, but this Stator reads versions"
                f" up to {VERSION}",
                hint="resume with the newer Stator that wrote it, or start over with --restart",
            )

    def _check(self, before: dict[str, Any]) -> None:
        differs = self.difference(before)
        if differs is not None:
            raise JournalDiffers(
                str(self.path),
                differs,
                hint="repeat the earlier options to resume, or start over with --restart",
            )

    def difference(self, before: dict[str, Any]) -> str | None:
        """Describe the first difference between this job and an earlier one, for error messages.

        ``before`` is the earlier job's description. Returns None if the two are the same.
        """
        for name in sorted({*before, *self.job}):
            was, now = before.get(name), self.job.get(name)
            if was != now and name == "inputs":
                return _changed_inputs(was or [], now or [])
            if was != now:
                return f"{name} was {_short(was)} and is now {_short(now)}"
        return None

    def write(self, state: JournalState) -> None:
        if self.path is not None:
            self._write({"state": asdict(state)})

    def _write(self, content: dict[str, Any]) -> None:
        assert self.path is not None
        text = json.dumps({"stator_journal": VERSION, "job": self.job, **content})
        write_whole(self.path, text.encode())

    def finish(self) -> None:
        """Delete the journal: the job is complete, and there is nothing to resume."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def finish_with(self, state: JournalState, done: dict[str, Any]) -> None:
        """Keep the journal of a job that is complete although some rows failed, with its result.

        The command exits with an error. If a supervisor starts it again, it finds the result and
        does not repeat the job.
        """
        if self.path is not None:
            self._write({"state": asdict(state), "done": done})


def _changed_inputs(was: list[Any], now: list[Any]) -> str:
    """Describe the first input that changed since the earlier run, for error messages.

    Each input is a list of its name, its format and its fingerprint.
    """
    before, after = ({str(each[0]): each for each in inputs} for inputs in (was, now))
    for name in after:
        if name not in before:
            return f"inputs: {name} is new"
        if before[name] != after[name]:
            return f"inputs: {name} has changed{_changes(before[name], after[name])}"
    for name in before:
        if name not in after:
            return f"inputs: {name} is gone"
    return "inputs: the files have another order"


def _changes(was: list[Any], now: list[Any]) -> str:
    if was[1] != now[1]:
        return f": its format was {was[1]} and is now {now[1]}"
    return f": it had {_version(was[2])}, and now has {_version(now[2])}"


def _version(fingerprint: Any) -> str:
    """Describe a fingerprint: ``1,204 bytes, modified 2026-03-01 10:00:00`` or ``... ETag ...``."""
    size, _, mark = str(fingerprint).partition(":")
    if not size.isdigit():
        return f"the fingerprint {fingerprint}"
    if not mark.isdigit() or len(mark) < 15:  # an ETag
        return f"{int(size):,} bytes with ETag {mark}"
    modified = datetime.fromtimestamp(int(mark) / 1e9).astimezone()
    return f"{int(size):,} bytes, modified {modified:%Y-%m-%d %H:%M:%S}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "..."


def write_whole(path: Path, content: bytes) -> None:
    """Write or replace a file in one step: a crash leaves the old content or the new one.

    The temporary name is always the same, so the next attempt replaces what a crash left behind.
    """
    beside = path.with_name(f".{path.name}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> BulkError:
    return BulkError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="free some space, check the permissions, or name another place",
    )


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that new names of files in it survive a crash of the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

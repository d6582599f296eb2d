"""The journal of a job: a small file that says how far everything is through, so that a job can be taken up where it stopped.

It is replaced as a whole, written beside and moved into its place, so that a reader sees the old one or the new one and never half of either. It
opens with what the job is: its inputs with their fingerprints, where they go, and every option that decides what is written. A job that is
taken up again must be the same; anything else is refused with what differs.

What is behind the journal's position is done for good. What is after it may have been done, and is done again: puts of the same item. The counts and the
length of the dead-letter file are those at the position, so that a row is counted, and buried, once.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stator.errors import BulkError, JournalDiffers

VERSION = 1


@dataclass(slots=True)
class State:
    """What is remembered. ``place`` belongs to the kind of job; ``dead_bytes`` is how much of the dead-letter file counts."""

    place: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    dead_bytes: int = 0


class Journal:
    """``path`` None is a journal that is not kept."""

    def __init__(self, path: Path | None, job: dict[str, Any]) -> None:
        self.path = path
        self.job = json.loads(json.dumps(job))

    def begin(self, *, resume: bool, restart: bool) -> State | None:
        """What an earlier run left, when it is to be taken up; None for a start from nothing."""
        if self.path is None:
            return None
        earlier = self._read()
        if earlier is None:
            if resume:
                raise BulkError(
                    f"there is no journal {self.path}",
                    hint="leave --resume out to start from the beginning",
                )
            return None
        if restart:
            self.path.unlink()
            return None
        if not resume:
            raise BulkError(
                f"{self.path} says that an earlier run of this was not finished",
                hint="--resume takes it up where it stopped, --restart begins anew",
            )
        self._check(earlier["job"])
        return State(**earlier["state"])

    def _read(self) -> dict[str, Any] | None:
        assert self.path is not None
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise BulkError(
                f"the journal {self.path} cannot be read: {error}", hint="--journal names another"
            ) from None
        if not isinstance(found, dict) or found.get("stator_journal") != VERSION:
            raise BulkError(
                f"{self.path} is not a journal of this Stator's", hint="--journal names another"
            )
        return found

    def _check(self, before: dict[str, Any]) -> None:
        for name in sorted({*before, *self.job}):
            was, now = before.get(name), self.job.get(name)
            if was != now:
                raise JournalDiffers(
                    str(self.path),
                    f"{name} was {_short(was)} and is {_short(now)}",
                    hint="call it as before to resume, or --restart to begin anew",
                )

    def write(self, state: State) -> None:
        if self.path is not None:
            text = json.dumps({"stator_journal": VERSION, "job": self.job, "state": asdict(state)})
            write_whole(self.path, text.encode())

    def finish(self) -> None:
        """The job is done: nothing to take up any more."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else text[:117] + "..."


def write_whole(path: Path, content: bytes) -> None:
    """A file that is there whole or not at all, whatever happens."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise BulkError(
            f"{path} cannot be written: {error.strerror or error}",
            hint="name another place, for a journal with --journal",
        ) from None
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """A name that was given in a folder survives a crash of the machine only once the folder is written."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Tasks: long work done in small steps that survive a crash.

A task is a list of remaining stages and a cursor, which says how far the current stage has got. A
step does a little of this stage and writes its result together with the new cursor, as one batch.
When a stage ends, the next one begins without a cursor. After the last stage, the task is removed.
Tasks are stored as JSON under ``m w <number>``, so opening a folder resumes interrupted tasks.

A step takes the engine's lock itself, and only for as long as needed. A step that uses S3 does not
hold the lock during the transfer. Other requests run between steps. Small tasks finish before the
request that started them is answered.

If a step raises an unexpected error, its task ends, because the step would fail again at every
opening. ``on_failure`` releases what the task holds. After a storage error, such as a full disk,
the task stays, and resumes when the folder is opened again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from stator.engine import keyspace
from stator.engine.database import Database
from stator.errors import StorageClosed, StorageCorrupt, StorageError
from stator.storage import Changes
from stator.storage.protocol import after_prefix

_TASKS = keyspace.META + b"w"
# Steps that run before the request is answered; a background thread runs the rest.
STEPS_AT_ONCE = 8

# The FailureCode and FailureMessage of jobs that failed for reasons inside the engine. The errors
# themselves hold the folder's path, so they are only logged.
INTERNAL_FAILURE = (
    "InternalServerError",
    "The job failed because of an internal error. The log of the engine has the details.",
)
DAMAGED = (
    "InternalServerError",
    "The table's data is damaged. The log of the engine has the details.",
)

_log = logging.getLogger("stator.recovery")


@dataclass(slots=True)
class Task:
    """A task as it is stored: its number, its remaining stages, and their inputs (``facts``).

    The task's area (its copy of a table's items in storage) has the same number.
    """

    number: int
    stages: list[str]
    facts: dict[str, Any] = field(default_factory=dict)
    cursor: Any = None

    @property
    def stage(self) -> str | None:
        return self.stages[0] if self.stages else None


# Does a step and writes it; ``Tasks.save`` or ``Tasks.advance`` adds the task to the batch.
Stage = Callable[[Task], None]


class Tasks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._stages: dict[str, Stage] = {}
        self._tasks: dict[int, Task] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._stopping = threading.Event()
        # Called when damaged data stops a background task. Returns whether the task's job (its
        # export) has been marked as failed.
        self.on_damage: Callable[[Task, StorageCorrupt], bool] = lambda task, error: False
        # Ends a task after an unexpected error of one of its steps. Called with the lock held.
        self.on_failure: Callable[[Task], None] = self.forget
        for _, value in database.storage.scan(_TASKS, after_prefix(_TASKS)):
            task = Task(**orjson.loads(value))
            self._tasks[task.number] = task

    def register(self, name: str, stage: Stage) -> None:
        self._stages[name] = stage

    def __iter__(self) -> Iterator[Task]:
        return iter(list(self._tasks.values()))

    def find(self, number: int) -> Task | None:
        return self._tasks.get(number)

    # -- what a step writes

    def save(self, task: Task, changes: Changes) -> None:
        self._tasks[task.number] = task
        changes[_key(task)] = orjson.dumps(asdict(task))

    def advance(self, task: Task, changes: Changes) -> None:
        """End the current stage and move on to the next."""
        del task.stages[0]
        task.cursor = None
        if task.stages:
            self.save(task, changes)
        else:
            self._remove(task, changes)

    def _remove(self, task: Task, changes: Changes) -> None:
        self._tasks.pop(task.number, None)
        changes[_key(task)] = None

    def forget(self, task: Task) -> None:
        """Remove a task without running its remaining stages."""
        task.stages.clear()
        changes: Changes = {}
        self._remove(task, changes)
        self._database.storage.write(changes)

    # -- running

    def start(self, task: Task, *, at_once: bool) -> None:
        """Start a task, which runs in the background.

        With ``at_once``, its first steps run now, before this method returns.
        """
        if at_once:
            for _ in range(STEPS_AT_ONCE):
                self._step_or_end(task)
        if task.stage is not None:
            self._spawn(task)

    def step(self, task: Task) -> None:
        """Run one step of the task's current stage, if a stage is left."""
        if task.stage is not None:
            self._stages[task.stage](task)

    def _step_or_end(self, task: Task) -> None:
        """Run one step. A StorageError is raised; any other error ends the task."""
        try:
            self.step(task)
        except StorageError:
            raise
        except Exception:
            _log.exception("task %d failed in stage %s", task.number, task.stage)
            with self._database.lock:
                self._end_failed(task)

    def _end_failed(self, task: Task) -> None:
        stored = self._database.storage.get(_key(task))
        if stored is not None:  # the step may have changed the task halfway
            found = orjson.loads(stored)
            task.stages, task.facts, task.cursor = found["stages"], found["facts"], found["cursor"]
        try:
            self.on_failure(task)
        except StorageError:
            raise
        except Exception:
            _log.exception("task %d is dropped", task.number)
            self.forget(task)

    def resume(self) -> None:
        for task in list(self._tasks.values()):
            self._spawn(task)

    def _spawn(self, task: Task) -> None:
        thread = threading.Thread(
            target=self._run, args=(task,), name=f"stator-task-{task.number}", daemon=True
        )
        self._threads[task.number] = thread
        thread.start()

    def _run(self, task: Task) -> None:
        try:
            while task.stage is not None and not self._stopping.is_set():
                self._step_or_end(task)
                # Let waiting requests have the lock.
                self._stopping.wait(0.0005)
        except StorageClosed:
            return
        except StorageCorrupt as error:
            _log.error("task %d stopped in stage %s: %s", task.number, task.stage, error)
            if self.on_damage(task, error):
                self._spawn(task)
        except StorageError:  # the task stays, and resumes at the next opening
            _log.exception("task %d stopped in stage %s", task.number, task.stage)
        finally:
            if self._threads.get(task.number) is threading.current_thread():
                del self._threads[task.number]

    def wait(self) -> None:
        """Return once no task is running. For tests and shutdown."""
        while threads := list(self._threads.values()):
            for thread in threads:
                thread.join()

    def stop(self) -> None:
        self._stopping.set()
        self.wait()


def _key(task: Task) -> bytes:
    return _TASKS + task.number.to_bytes(4, "big")

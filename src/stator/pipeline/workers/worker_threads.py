"""Runs a worker in threads of this process.

One thread coordinates, one renews leases, and one retries the items that are set aside. Each shard
that the worker reads has a thread of its own.

with app.start(db) as running:
    ...
    running.catch_up()
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from stator.clock import SystemClock
from stator.errors import StatorError, StreamError
from stator.model.seconds import check_seconds
from stator.pipeline.workers.group_state import GroupWatch
from stator.pipeline.workers.handlers.subscribers import ClosingSubscriber
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.lease_holder import ShardProgress
from stator.pipeline.workers.worker import Worker
from stator.tables.db import Db
from stator.tables.runner import Runner
from stator.tables.work import Pause

if TYPE_CHECKING:
    from stator.pipeline.workers.app import StreamApp

log = logging.getLogger("stator.workers")

_POLL_SECONDS = 0.02


class _WakefulRunner(Runner):
    """Runs work in a thread. A call of ``wake`` ends the pauses of the work early."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(
            runner.transport,
            runner.clock,
            observers=runner.observers,
            threads=runner.threads,
            deadline_seconds=runner.deadline_seconds,
        )
        self._pool = runner._pool
        self._called = threading.Event()

    def wake(self) -> None:
        self._called.set()

    def _do(self, effect: Any) -> Any:
        if type(effect) is not Pause or not isinstance(self.clock, SystemClock):
            return super()._do(effect)
        if self._called.wait(effect.seconds):
            self._called.clear()
        return None


class RunningWorker:
    """A worker that runs in threads of this process, with methods to watch and stop it."""

    def __init__(
        self, app: StreamApp, db: Db, options: WorkerOptions | None = None, name: str | None = None
    ) -> None:
        self._app = app
        self._db = db
        self._options = options or WorkerOptions()
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.worker = Worker(db.context, app, self.name, self._options, self._spawn)
        self._watching = GroupWatch(db.context, app.name)
        self._threads: list[threading.Thread] = []
        self._runners = {name: _WakefulRunner(db.runner) for name in ("coordinate", "renew")}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.error: BaseException | None = None
        self._spawn(self.worker.coordinate(), "coordinate", essential=True)
        self._spawn(self.worker.renew(), "renew", essential=True)

    def __enter__(self) -> RunningWorker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # -- threads

    def _spawn(self, work: Generator[Any, Any, Any], name: str, *, essential: bool = False) -> None:
        runner = self._runners.get(name, self._db.runner)
        thread = threading.Thread(
            target=self._carry_out,
            args=(work, runner, essential),
            name=f"stator-{name}",
            daemon=True,
        )
        with self._lock:
            self._threads = [
                each for each in self._threads if each.is_alive() or each.ident is None
            ]
            self._threads.append(thread)
        thread.start()

    def _carry_out(self, work: Generator[Any, Any, Any], runner: Runner, essential: bool) -> None:
        try:
            runner.run(work)
        except Exception as error:  # a thread has no caller to raise to
            if essential:
                self.error = error
                self._over.set()
                self.worker.stop()
            else:
                log.exception("the consumer of a shard failed unexpectedly and is restarted")
        finally:
            work.close()
            self._wake()

    # -- from outside

    def progress(self) -> ShardProgress:
        """Return how many changes were handled, parked and lost, and the lag."""
        return self.worker.progress()

    def tell_to_stop(self) -> None:
        """Tell the worker to start no further batch, and wake all callers of ``wait``.

        Returns at once. ``stop`` does the same, and then waits until the worker has ended.
        """
        self.worker.stop()
        self._over.set()

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """Finish the batches in flight, release the leases, and close the subscribers.

        Waits for up to ``timeout_seconds``. Raises the error that ended the worker, if there was
        one. Raises StreamError if threads are still running at the end. They may still be handling
        changes, so the subscribers are then left open.
        """
        check_seconds("stop", or_zero=True, timeout_seconds=timeout_seconds)
        self.tell_to_stop()
        left = timeout_seconds
        while left > 0 and (alive := self._alive()):
            self._wake()
            alive[0].join(_POLL_SECONDS)
            left -= _POLL_SECONDS
        if alive := self._alive():
            names = ", ".join(sorted(thread.name for thread in alive))
            unfinished = f"worker {self.name} did not stop within {timeout_seconds:g} seconds"
            log.error("%s; still running: %s", unfinished, names)
            self._raise()
            raise StreamError(
                f"{unfinished}; still running: {names}",
                hint="a handler or a request hangs: call stop again to wait longer, or end the "
                "process; its leases expire by themselves",
            )
        for subscriber in self._app.subscribers:
            if isinstance(subscriber, ClosingSubscriber):
                subscriber.close()
        self._raise()

    def _alive(self) -> list[threading.Thread]:
        with self._lock:
            return [
                thread
                for thread in self._threads
                if thread.is_alive() and thread is not threading.current_thread()
            ]

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the worker is told to stop or fails. Returns False if the time runs out first.

        Raises the error that ended the worker, if there was one.
        """
        if timeout_seconds is not None:
            check_seconds("wait", or_zero=True, timeout_seconds=timeout_seconds)
        over = self._over.wait(timeout_seconds)
        self._raise()
        return over

    def catch_up(self, timeout_seconds: float | None = 120.0) -> None:
        """Wait until the group has handled or parked every change made before this call.

        A change that keeps failing is parked after about a minute. If a worker died, its changes
        are handled once its leases have expired. ``timeout_seconds=None`` waits without a limit.
        """
        if timeout_seconds is not None:
            check_seconds("catch_up", or_zero=True, timeout_seconds=timeout_seconds)
        since = self._db.context.now()
        self.worker.look_again()
        self._wake()
        waited = 0.0
        while not (self.worker.has_caught_up(since) and self._group_has_caught_up(since)):
            if self._over.wait(_POLL_SECONDS):
                self._raise()
                raise StreamError(
                    "the worker was stopped before it caught up",
                    hint="start it again; it continues from its checkpoints",
                )
            waited += _POLL_SECONDS
            if timeout_seconds is not None and waited > timeout_seconds:
                lag = self.progress().lag_seconds
                behind = "its lag is unknown" if lag is None else f"it is {lag:.0f} seconds behind"
                raise StreamError(
                    f"the worker did not catch up within {timeout_seconds:g} seconds",
                    hint=f"{behind}: wait longer, or add workers",
                )

    def _group_has_caught_up(self, since: float) -> bool:
        """Whether the group has read every change made before ``since``, and none is set aside."""
        now = self._db.context.now()
        state = self._db.run(self._watching.look())
        if state.oldest_set_aside is not None and state.oldest_set_aside <= since:
            return False
        return all(
            shard.lag_seconds is not None
            and (not shard.lag_seconds or now - shard.lag_seconds > since)
            for shard in state.shards
        )

    def _wake(self) -> None:
        for runner in self._runners.values():
            runner.wake()

    def _raise(self) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            if isinstance(error, StatorError):
                raise error
            raise StreamError(
                f"an unexpected error ended the worker {self.name}: {type(error).__name__}: {error}"
            ) from error

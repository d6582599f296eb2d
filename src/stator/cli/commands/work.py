"""``stator work``: runs an app's handlers for every change in its tables."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from typing import Annotated, Any

import typer

from stator.cli.app_file import load_app
from stator.cli.checks.data_folder import check_exists
from stator.cli.options import AppArgument, MetricsPortOption, PrefixOption
from stator.cli.output import say
from stator.cli.stop_signal import StopSignal
from stator.cli.worker_processes import WorkerProcesses
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.lease_holder import ShardProgress
from stator.pipeline.workers.worker_threads import RunningWorker
from stator.tables.connection import connect
from stator.tables.observers import Observer

_START_POSITIONS = ("latest", "oldest", "snapshot")


def command(
    target: AppArgument,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="Where the tables are: http://host:port, aws://region, or a folder that no other "
            "process has open.",
        ),
    ],
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of processes that share the shards.")
    ] = 1,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="|".join(_START_POSITIONS),
            help="Where a new app starts: at the latest change, at the oldest, or with a snapshot "
            "of all items.",
        ),
    ] = "latest",
    prefix: PrefixOption = "",
    ensure: Annotated[
        bool,
        typer.Option("--ensure", help="Create missing tables and enable their streams."),
    ] = False,
    catch_up: Annotated[
        bool,
        typer.Option("--catch-up", help="Exit when everything written so far is handled."),
    ] = False,
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum changes in a batch.")
    ] = 1000,
    window: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Longest time a batch waits to fill.")
    ] = 0.0,
    attempts: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Attempts to handle a change before its item is parked."
        ),
    ] = 8,
    lease: Annotated[
        float,
        typer.Option(
            min=1.0,
            metavar="SECONDS",
            help="Time after which the shards of a dead worker are taken over.",
        ),
    ] = 10.0,
    metrics_port: MetricsPortOption = None,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time between progress lines.")
    ] = 5.0,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print progress as lines of JSON.")
    ] = False,
) -> None:
    """Run an app's handlers for every change in its tables.

    Runs until Ctrl-C or SIGTERM. Workers of one app share the shards through leases: start any
    number, on any number of machines. When a worker dies, the others take over its shards once
    its leases have expired (--lease).

    Example: stator work billing.py:app --at http://localhost:8000 --workers 2
    """
    if workers > 1 and metrics_port:
        raise typer.BadParameter(
            f"{workers} workers cannot share --metrics-port {metrics_port}; "
            "--metrics-port 0 assigns each a free port"
        )
    if start not in _START_POSITIONS:
        raise ConfigurationError(
            f"--from {start} is not supported",
            hint=f"choose one of {', '.join(_START_POSITIONS)}",
        )
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    app = load_app(target)
    if workers > 1:
        if not at.startswith(("http://", "https://", "aws://")):
            raise ConfigurationError(
                f"--workers {workers} needs a server: only one process can open the folder {at}",
                hint=f"run `stator serve --data {at}`, and pass its URL to --at",
            )
        sys.exit(WorkerProcesses(workers, sys.argv[1:]).run())
    if not ensure:
        check_exists(at, "check the path, or create the tables there with --ensure")
    options = WorkerOptions(
        start=start,
        batch_records=batch,
        window_seconds=window,
        max_attempts=attempts,
        lease_seconds=lease,
    )
    registry, observers = _metrics(app, prefix) if metrics_port is not None else (None, [])
    with connect(app.design, at, prefix=prefix, observers=observers) as db:
        if ensure:
            for done in app.ensure(db):
                say(done, err=True)
        running = app.start(db, options)
        if metrics_port is not None:
            _serve_metrics(running, metrics_port, app.name, registry)
        _run(running, app.name, catch_up=catch_up, every=every, as_json=json_output)


def _run(running: RunningWorker, name: str, *, catch_up: bool, every: float, as_json: bool) -> None:
    """Let the worker run until a signal arrives, and show its progress. Then stop it.

    With ``catch_up``, the worker also stops once all changes made so far are handled or parked.
    Only the final progress is shown then.
    """
    stop_signal = StopSignal()
    display = _ProgressDisplay(running, name, as_json=as_json)
    try:
        if catch_up:
            threading.Thread(
                target=_stop_on_signal, args=(running, stop_signal), daemon=True
            ).start()
            running.catch_up(timeout_seconds=None)
        else:
            while not stop_signal.wait(every) and not running.wait(0.0):
                display.show()
    finally:
        display.note_shards()  # a stopped worker has none
        running.stop()
        display.show(is_last=True)


def _stop_on_signal(running: RunningWorker, stop_signal: StopSignal) -> None:
    stop_signal.wait()
    running.tell_to_stop()


class _ProgressDisplay:
    """Prints progress lines on stderr, which may be a log file, or JSON lines on stdout."""

    def __init__(self, running: RunningWorker, name: str, *, as_json: bool) -> None:
        self._running = running
        self._name = name
        self._as_json = as_json
        self._before = (time.monotonic(), 0)
        self._shards = 0

    def note_shards(self) -> None:
        """Remember the number of shards that the worker reads."""
        self._shards = len(self._running.worker.consumers)

    def show(self, *, is_last: bool = False) -> None:
        progress = self._running.progress()
        now, handled = time.monotonic(), progress.handled
        since, before = self._before
        rate = (handled - before) / max(now - since, 0.001)
        self._before = (now, handled)
        if not is_last:
            self.note_shards()
        shards = self._shards
        if self._as_json:
            typer.echo(json.dumps(_facts(self._name, self._running.name, shards, rate, progress)))
        else:
            line = (
                f"{self._name}: {'stopped; ' if is_last else ''}"
                f"{plural(handled, 'change')} handled ({rate:,.0f}/s), "
                f"{plural(shards, 'shard')}"
            )
            if progress.lag_seconds is not None:
                line += f", {progress.lag_seconds:.1f} s behind"
            elif not is_last:
                line += ", lag unknown"
            if progress.set_aside:
                line += f", {progress.set_aside:,} set aside so far"
            if progress.parked:
                line += f", {progress.parked:,} parked (see `stator parked list`)"
            if progress.lost:
                line += f", {plural(progress.lost, 'shard')} lost changes: trimmed unread"
            say(line, err=True)


def _facts(
    name: str, worker: str, shards: int, rate: float, progress: ShardProgress
) -> dict[str, object]:
    return {
        "app": name,
        "worker": worker,
        "shards": shards,
        "handled": progress.handled,
        "handled_per_second": round(rate, 1),
        "set_aside": progress.set_aside,
        "parked": progress.parked,
        "retried": progress.retried,
        "lost": progress.lost,
        "lag_seconds": _rounded(progress.lag_seconds),
        "trim_seconds": _rounded(progress.trim_seconds),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _metrics(app: StreamApp, prefix: str) -> tuple[Any, list[Observer]]:
    """Return a registry, and the observer that counts the calls of the workers in it."""
    from stator.metrics.endpoint import new_registry
    from stator.tables.metrics.metrics_observer import metrics_observer

    registry = new_registry()
    return registry, [metrics_observer(app.design, registry=registry, prefix=prefix)]


def _serve_metrics(running: RunningWorker, port: int, group: str, registry: Any) -> None:
    from stator.pipeline.workers.metrics import serve_metrics

    served = serve_metrics(running, port, group, registry)
    say(f"serving metrics on http://localhost:{served}/metrics", err=True)

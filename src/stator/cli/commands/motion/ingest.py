"""``stator ingest``: writes the records of Kafka topics into tables, each once."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from stator.cli.app_file import load_ingest
from stator.cli.checks.data_folder import check_exists
from stator.cli.options import MetricsPortOption, PrefixOption
from stator.cli.output import say
from stator.cli.stop_signal import StopSignal
from stator.cli.worker_processes import WORKER_NUMBER, WorkerProcesses
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.pipeline.ingest.app import Ingest
from stator.pipeline.ingest.dead_records import DeadRecordFile, DeadRecords, DeadRecordTopic
from stator.pipeline.ingest.kafka_source import GroupProtocol, KafkaOptions
from stator.pipeline.ingest.options import IngestOptions
from stator.pipeline.ingest.running_ingest import RunningIngest
from stator.tables.connection import connect
from stator.tables.db import Db
from stator.tables.observers import Observer

_START_POSITIONS = ("earliest", "latest")


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="APP", help="The ingest: tests.py, tests.py:app or package.module:app."
        ),
    ],
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="Where the tables are: http://host:port, aws://region, or a folder that no other "
            "process has open.",
        ),
    ],
    kafka: Annotated[
        str,
        typer.Option("--kafka", metavar="SERVERS", help="Kafka's bootstrap servers: host:9092,..."),
    ],
    group: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The consumer group; by default the name of the ingest."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of processes that share the partitions.")
    ] = 1,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="|".join(_START_POSITIONS),
            help="Where a group begins that has committed nothing.",
        ),
    ] = "earliest",
    prefix: PrefixOption = "",
    ensure: Annotated[bool, typer.Option("--ensure", help="Create missing tables.")] = False,
    catch_up: Annotated[
        bool,
        typer.Option("--catch-up", help="Exit when everything produced so far is written."),
    ] = False,
    kafka_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Further settings of the Kafka client, such as TLS and SASL: a JSON object, or"
            " lines name=value.",
        ),
    ] = None,
    group_protocol: Annotated[
        str,
        typer.Option(
            metavar="|".join(get_args(GroupProtocol)),
            help="Kafka's protocol for groups; auto takes the newest that the broker has.",
        ),
    ] = "auto",
    instance: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Static membership: a worker that comes back under this name within the session"
            " timeout gets its partitions back without a rebalance.",
        ),
    ] = None,
    session: Annotated[
        float,
        typer.Option(
            min=1.0,
            metavar="SECONDS",
            help="Time after which the partitions of a dead worker go to others, with the classic"
            " protocol. With the consumer protocol, the broker decides.",
        ),
    ] = 10.0,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|kafka:TOPIC",
            help="Where records go that cannot be written; by default the design's own table.",
        ),
    ] = None,
    max_errors: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Stop after more dead letters than this."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            metavar="UNITS",
            help="Write units a second; by default the rate adapts to the table.",
        ),
    ] = None,
    writers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Requests in flight in each process.")
    ] = 8,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the routes with their costs, and exit.")
    ] = False,
    metrics_port: MetricsPortOption = None,
    every: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Time between progress lines.")
    ] = 5.0,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print progress as lines of JSON.")
    ] = False,
) -> None:
    """Write the records of Kafka topics into tables, each once.

    Runs until Ctrl-C or SIGTERM, and then writes and commits what it has read. Workers of one group
    share the partitions. A record that arrives again changes nothing.

    Example: stator ingest tests.py:app --kafka localhost:9092 --at http://localhost:8000
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
    app = load_ingest(target)
    if explain:
        typer.echo(app.explain())
        return
    number = os.environ.get(WORKER_NUMBER)
    source = KafkaOptions(
        kafka,
        group=group,
        instance=f"{instance}-{number}" if instance and number is not None else instance,
        protocol=cast(GroupProtocol, group_protocol),
        session_seconds=session,
        config=_config(kafka_config),
    )
    if workers > 1:
        if not at.startswith(("http://", "https://", "aws://")):
            raise ConfigurationError(
                f"--workers {workers} needs a server: only one process can open the folder {at}",
                hint=f"run `stator serve --data {at}`, and pass its URL to --at",
            )
        sys.exit(WorkerProcesses(workers, sys.argv[1:]).run())
    if not ensure:
        check_exists(at, "check the path, or create the tables there with --ensure")
    options = IngestOptions(
        start=start, writers=writers, max_errors=max_errors, units_per_second=rate
    )
    registry, observers = _metrics(app, prefix) if metrics_port is not None else (None, [])
    with connect(app.design, at, prefix=prefix, observers=observers) as db:
        if ensure:
            for done in db.ensure():
                say(done, err=True)
        running = app.start(db, source, options, dead_letters=_letters(dead_letters, source, db))
        if metrics_port is not None:
            from stator.pipeline.ingest.metrics import serve_metrics

            served = serve_metrics(running, metrics_port, registry)
            say(f"serving metrics on http://localhost:{served}/metrics", err=True)
        _run(running, app.name, catch_up=catch_up, every=every, as_json=json_output)


def _config(path: Path | None) -> dict[str, Any]:
    """Read settings of the Kafka client from a file."""
    if path is None:
        return {}
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}", hint="check --kafka-config"
        ) from None
    if text.lstrip().startswith("{"):
        try:
            found: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise ConfigurationError(f"{path} is not JSON: {error}", hint="correct it") from None
        return found
    lines = [line.strip() for line in text.splitlines()]
    wanted = [line for line in lines if line and not line.startswith("#")]
    wrong = next((line for line in wanted if "=" not in line), None)
    if wrong is not None:
        raise ConfigurationError(
            f"{path}: the line {wrong!r} is not a setting", hint="write name=value"
        )
    pairs = (line.split("=", 1) for line in wanted)
    return {name.strip(): value.strip() for name, value in pairs}


def _letters(given: str | None, source: KafkaOptions, db: Db) -> DeadRecords | None:
    if given is None:
        return None
    if given.startswith("kafka:"):
        return DeadRecordTopic(source, given.removeprefix("kafka:"))
    return DeadRecordFile(Path(given))


def _run(running: RunningIngest, name: str, *, catch_up: bool, every: float, as_json: bool) -> None:
    """Let the ingest run until a signal arrives, and show its progress. Then stop it."""
    stop_signal = StopSignal()
    display = _ProgressDisplay(running, name, as_json=as_json)
    try:
        if catch_up:
            import threading

            threading.Thread(
                target=_stop_on_signal, args=(running, stop_signal), daemon=True
            ).start()
            running.catch_up(timeout_seconds=None)
        else:
            while not stop_signal.wait(every) and not running.wait(0.0):
                display.show()
    finally:
        display.note_partitions()  # a stopped ingest has none
        try:
            running.stop()
        finally:
            display.show(is_last=True)


def _stop_on_signal(running: RunningIngest, stop_signal: StopSignal) -> None:
    stop_signal.wait()
    running.tell_to_stop()


class _ProgressDisplay:
    """Prints progress lines on stderr, which may be a log file, or JSON lines on stdout."""

    def __init__(self, running: RunningIngest, name: str, *, as_json: bool) -> None:
        self._running = running
        self._name = name
        self._as_json = as_json
        self._before = (time.monotonic(), 0)
        self._partitions = 0

    def note_partitions(self) -> None:
        """Remember the number of partitions that the ingest reads."""
        self._partitions = self._running.progress().partitions

    def show(self, *, is_last: bool = False) -> None:
        progress = self._running.progress()
        if not is_last:
            self.note_partitions()
        progress.partitions = self._partitions
        now = time.monotonic()
        since, before = self._before
        rate = (progress.records - before) / max(now - since, 0.001)
        self._before = (now, progress.records)
        if self._as_json:
            facts = {"app": self._name, "group": self._running.group, **asdict(progress)}
            typer.echo(json.dumps({**facts, "records_per_second": round(rate, 1)}))
            return
        line = (
            f"{self._name}: {'stopped; ' if is_last else ''}"
            f"{plural(progress.records, 'record')} read ({rate:,.0f}/s), "
            f"{plural(progress.written, 'write')}, {progress.folded:,} folded, "
            f"{progress.stale:,} stale, {plural(self._partitions, 'partition')}"
        )
        if progress.lag_seconds is not None:
            line += f", {progress.lag_seconds:.1f} s behind"
        if progress.lag_records:
            line += f", {progress.lag_records:,} to read"
        if progress.dead:
            line += f", {progress.dead:,} dead letters"
        if progress.unrouted:
            line += f", {progress.unrouted:,} without a route"
        if progress.lost:
            line += f", {progress.lost:,} lost: deleted from the topic unread"
        if progress.trouble:
            line += f"; writes wait: {progress.trouble}"
        say(line, err=True)


def _metrics(app: Ingest, prefix: str) -> tuple[Any, list[Observer]]:
    """Return a registry, and the observer that counts the calls of the ingest in it."""
    from stator.metrics.endpoint import new_registry
    from stator.tables.metrics.metrics_observer import metrics_observer

    registry = new_registry()
    return registry, [metrics_observer(app.design, registry=registry, prefix=prefix)]

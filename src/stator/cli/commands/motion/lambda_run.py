"""``stator lambda run``: runs a Lambda function for the changes of a table's stream."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from stator.addresses import Address, open_transport
from stator.cli.checks.data_folder import check_exists
from stator.cli.design_file import parse_target, run_target
from stator.cli.output import say
from stator.cli.stop_signal import StopSignal
from stator.clock import SystemClock
from stator.errors import ConfigurationError
from stator.model.quantities import plural
from stator.pipeline.workers.lambda_batch import BatchRules
from stator.pipeline.workers.mapped_function import Function, FunctionMapping, MappingOptions
from stator.tables.runner import Runner

_HINT = "name a function as handler.py:lambda_handler or package.module:lambda_handler"


class LambdaAction(StrEnum):
    run = "run"


class StartingPosition(StrEnum):
    latest = "latest"
    oldest = "oldest"


def command(
    action: Annotated[LambdaAction, typer.Argument(help="What to do.")],
    target: Annotated[
        str,
        typer.Argument(metavar="FUNCTION", help="The function: module:handler or file.py:handler."),
    ],
    stream: Annotated[
        str, typer.Option("--stream", metavar="TABLE", help="The table whose changes it gets.")
    ],
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="ADDRESS",
            help="Where the table is: http://host:port, aws://region, or a folder that no other "
            "process has open.",
        ),
    ],
    start: Annotated[
        StartingPosition, typer.Option("--from", help="The starting position in the stream.")
    ] = StartingPosition.latest,
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="BatchSize: most records at once.")
    ] = 100,
    window: Annotated[
        float,
        typer.Option(min=0.0, max=300.0, metavar="SECONDS", help="MaximumBatchingWindowInSeconds."),
    ] = 0.0,
    retries: Annotated[
        int,
        typer.Option(
            min=-1, max=10_000, metavar="N", help="MaximumRetryAttempts; -1 for no limit."
        ),
    ] = -1,
    age: Annotated[
        int,
        typer.Option(
            min=-1,
            max=604_800,
            metavar="SECONDS",
            help="MaximumRecordAgeInSeconds; -1 for no limit.",
        ),
    ] = -1,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="BisectBatchOnFunctionError: split what fails.")
    ] = False,
    report_failures: Annotated[
        bool,
        typer.Option("--report-failures", help="ReportBatchItemFailures: read the answers."),
    ] = False,
    on_failure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to add a line about what is given up."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=900.0, metavar="SECONDS", help="The function's timeout."),
    ] = 3.0,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Exit when everything written so far is handled.")
    ] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the counts at the end as JSON.")
    ] = False,
) -> None:
    """Run a Lambda function for the changes of a table, as an event source mapping does.

    The function is a plain lambda_handler(event, context). Runs until Ctrl-C or SIGTERM, then
    finishes the batches in flight. Nothing is stored: each run begins at --from.

    Example: stator lambda run orders.py:lambda_handler --stream orders --at http://localhost:8000
    """
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    function = _function(target)
    check_exists(at, "check the path; the table must exist")
    rules = BatchRules(retries, age, bisect, report_failures)
    options = MappingOptions(start.value, batch, window, timeout, rules)
    clock = SystemClock()
    transport = open_transport(Address.parse(at), clock, {})
    stop_signal = StopSignal()
    try:
        mapping = FunctionMapping(
            Runner(transport, clock), stream, function, options, _destination(on_failure)
        )
        say(f"{target} gets the changes of {stream}", err=True)
        mapping.run(stop_signal.wait, catch_up=catch_up)
    finally:
        transport.close()
    counts = mapping.counts
    if json_output:
        typer.echo(json.dumps(asdict(counts)))
        return
    say(
        f"{plural(counts.read, 'record')} read, {plural(counts.invocations, 'invocation')}, "
        f"{counts.errors:,} failed, {plural(counts.given_up, 'record')} given up",
        err=True,
    )


def _function(text: str) -> Function:
    target = parse_target(text, _HINT)
    name = target.name or "lambda_handler"
    module = run_target(target)
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigurationError(f"{text} has no function {name}", hint=_HINT)
    found: Function = function
    return found


def _destination(file: Path | None) -> Any:
    def given_up(record: Mapping[str, Any]) -> None:
        if file is not None:
            with file.open("a", encoding="utf-8") as opened:
                opened.write(json.dumps(record) + "\n")

    return given_up

"""``stator serve``: the DynamoDB API on this machine.

The server answers within half a second of its start, so this module imports little: no boto3, and
no rich.
"""

from __future__ import annotations

import errno
import json
import logging
import shlex
import socket
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.options import MetricsPortOption
from stator.cli.output import say, styled
from stator.engine import Engine
from stator.engine.partitions.throughput_report import throughput_report
from stator.engine.recovery.objects import ObjectStore
from stator.errors import ConfigurationError
from stator.server import (
    HttpServer,
    ServerOptions,
    read_credentials,
    run_until_signal,
    server_context,
)
from stator.server.protocols import Backend

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Durability(StrEnum):
    disk = "disk"
    process = "process"


class Throughput(StrEnum):
    off = "off"
    observed = "observed"
    enforced = "enforced"


@dataclass(frozen=True, slots=True)
class ServePlan:
    """The validated options of the command."""

    options: ServerOptions
    data: Path | None
    durability: Durability
    status_delay_seconds: float
    buckets: Path | None
    s3_endpoint: str | None
    credentials_file: Path | None
    certificate: Path | None
    throughput: Throughput
    metrics: bool
    show_keys: bool = False
    metrics_port: int | None = None


def command(
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="The port to listen on; 0 takes a free one."
        ),
    ] = 8000,
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="The address to listen on; 0.0.0.0 listens on every network."
        ),
    ] = "127.0.0.1",
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Store the data in this folder.", file_okay=False),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep the data in memory, which is the default.")
    ] = False,
    durability: Annotated[
        Durability,
        typer.Option(
            help="When a write is acknowledged: once it is on disk, or once this process has it "
            "(faster, but a crash of the machine loses the last writes)."
        ),
    ] = Durability.disk,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The key of the certificate (PEM), if it is in another file."
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Verify signatures against this AWS credentials file. By default, any key is "
            "accepted.",
        ),
    ] = None,
    status_delay: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar="SECONDS",
            help="How long tables stay in the status CREATING or DELETING.",
        ),
    ] = 0.0,
    throughput: Annotated[
        Throughput,
        typer.Option(
            help="Limits of throughput as on AWS: off applies none, observed counts the requests "
            "that AWS would refuse, enforced refuses them."
        ),
    ] = Throughput.off,
    show_keys: Annotated[
        bool,
        typer.Option(
            "--show-keys",
            help="Name hot keys in the report of --throughput; by default it shows their hashes.",
        ),
    ] = False,
    buckets: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Export to and import from this folder; its subfolders are the buckets.",
            file_okay=False,
        ),
    ] = None,
    s3_endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Export to and import from S3 at this address, with the credentials boto3 finds.",
        ),
    ] = None,
    metrics: Annotated[
        bool,
        typer.Option(
            "--metrics/--no-metrics",
            help="Record the metrics of tables, which CloudWatch's API answers on the same port.",
        ),
    ] = True,
    metrics_port: MetricsPortOption = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the address and settings as one line of JSON.")
    ] = False,
) -> None:
    """Serve the DynamoDB API on this machine, in memory or from a folder.

    With --throughput observed or enforced, a report goes to stderr at the end, and on SIGUSR1: what
    was refused and why, the hottest keys, and splits of partitions.

    Example: stator serve --data ./stator-data --port 8000
    """
    if memory and data is not None:
        raise typer.BadParameter("use either --memory or --data, not both")
    if buckets is not None and s3_endpoint is not None:
        raise typer.BadParameter("use either --buckets or --s3-endpoint, not both")
    if tls_key is not None and tls_cert is None:
        raise typer.BadParameter("--tls-key needs --tls-cert")
    options = ServerOptions(
        host=host,
        port=port,
        tls=None if tls_cert is None else server_context(tls_cert, tls_key),
        credentials=None if credentials is None else read_credentials(credentials),
    )
    plan = ServePlan(
        options,
        data,
        durability,
        status_delay,
        buckets,
        s3_endpoint,
        credentials,
        tls_cert,
        throughput,
        metrics,
        show_keys,
        metrics_port,
    )
    _log_to_stderr()
    serve(plan, as_json=json_output)


def serve(plan: ServePlan, *, as_json: bool) -> None:
    """Serve until a signal arrives, then close the engine."""
    engine = Engine.open(
        None if plan.data is None else str(plan.data),
        durability=plan.durability.value,
        status_delay_seconds=plan.status_delay_seconds,
        buckets=_buckets(plan),
        throughput=plan.throughput.value,
        metrics=plan.metrics,
    )
    is_limited = plan.throughput is not Throughput.off
    try:
        backend, metrics_url = _metered(engine, plan)
        run_until_signal(
            backend,
            plan.options,
            lambda server: _announce(server, plan, metrics_url, as_json=as_json),
            on_report=partial(_report, engine, plan) if is_limited else None,
        )
        if is_limited:
            _report(engine, plan)
    except OSError as error:
        raise _address_error(error, plan.options) from error
    finally:
        engine.close()


def _report(engine: Engine, plan: ServePlan) -> None:
    """Print on stderr which requests the engine has refused, and why."""
    with engine.lock:
        lines = throughput_report(engine.database.meter, show_keys=plan.show_keys)
    typer.echo("\n".join((f"throughput ({plan.throughput.value}):", *lines)), err=True)


def _metered(engine: Engine, plan: ServePlan) -> tuple[Backend, str | None]:
    """Return the backend to serve, and the address of its metrics or None."""
    if plan.metrics_port is None:
        return engine, None
    from stator.metrics.endpoint import new_registry, serve_registry
    from stator.server.metered_backend import MeteredBackend

    registry = new_registry()
    backend = MeteredBackend(engine, registry)
    port = serve_registry(registry, plan.metrics_port, plan.options.host)
    return backend, f"http://{plan.options.host}:{port}/metrics"


def _buckets(plan: ServePlan) -> ObjectStore | str | None:
    if plan.s3_endpoint is not None:
        from stator.buckets import S3Buckets  # loads botocore, which most servers do not need

        return S3Buckets(endpoint=plan.s3_endpoint)
    return None if plan.buckets is None else str(plan.buckets)


def _where(plan: ServePlan) -> str | None:
    """Return the folder or S3 endpoint for exports and imports, or None if none is set."""
    return plan.s3_endpoint if plan.buckets is None else str(plan.buckets.resolve())


def _announce(
    server: HttpServer, plan: ServePlan, metrics_url: str | None, *, as_json: bool
) -> None:
    facts = {
        "url": server.url,
        "host": plan.options.host,
        "port": server.port,
        "data": None if plan.data is None else str(plan.data.resolve()),
        "buckets": _where(plan),
        "durability": None if plan.data is None else plan.durability.value,
        "throughput": plan.throughput.value,
        "metrics": plan.metrics,
        "metrics_url": metrics_url,
        "verifies_signatures": plan.options.credentials is not None,
        "try": _example_call(server.url, plan),
    }
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        _show_banner(server.url, plan, metrics_url)
    if plan.options.host not in _LOOPBACK and plan.options.credentials is None:
        say(
            f"note: everyone who can reach {plan.options.host} can read and write; "
            "--credentials FILE accepts only signed requests",
            err=True,
        )


def _show_banner(url: str, plan: ServePlan, metrics_url: str | None) -> None:
    if plan.data is None:
        data = "in memory, lost when this process ends; keep it with --data DIR"
    else:
        data = f"{plan.data.resolve()} (writes are acknowledged {_acknowledged(plan.durability)})"
    lines = {
        "serving": styled(url, bold=True),
        "data": data,
        **({} if _where(plan) is None else {"buckets": _where(plan)}),
        **(
            {}
            if plan.throughput is Throughput.off
            else {"limits": f"{plan.throughput.value}, as on AWS"}
        ),
        **({} if metrics_url is None else {"metrics": metrics_url}),
        "try": _example_call(url, plan),
        "stop": "Ctrl-C",
    }
    for label, text in lines.items():
        say(f"{styled(f'{label:8}', 'cyan')} {text}", indent=9, whole=label == "try")


def _acknowledged(durability: Durability) -> str:
    return "on disk" if durability is Durability.disk else "in this process"


def _example_call(url: str, plan: ServePlan) -> str:
    """Return an AWS CLI call that works unchanged in a shell on this machine."""
    if plan.credentials_file is not None and plan.options.credentials:
        profile = next(iter(plan.options.credentials.values())).profile
        identity = (
            f"AWS_SHARED_CREDENTIALS_FILE={shlex.quote(str(plan.credentials_file.resolve()))} "
            f"AWS_PROFILE={shlex.quote(profile)}"
        )
    else:
        identity = "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"
    call = f"{identity} aws dynamodb list-tables --region us-east-1 --endpoint-url {url}"
    if plan.certificate is not None:
        call += f" --ca-bundle {shlex.quote(str(plan.certificate.resolve()))}"
    return call


def _address_error(error: OSError, options: ServerOptions) -> ConfigurationError:
    where = f"port {options.port} on {options.host}"
    if error.errno == errno.EADDRINUSE:
        return ConfigurationError(
            f"{where} is already in use",
            hint="stop the program that listens there, or use another --port (0 takes a free one)",
        )
    if error.errno == errno.EACCES:
        return ConfigurationError(
            f"this user may not use {where}", hint="choose a port above 1023 with --port"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return ConfigurationError(
            f"{options.host} is not an address of this machine",
            hint="use --host 127.0.0.1, or --host 0.0.0.0 for every network",
        )
    return ConfigurationError(f"cannot listen on {where}: {error.strerror or error}")


def _log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

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
from pathlib import Path
from typing import Annotated

import typer

from stator.engine import Engine
from stator.engine.recovery.objects import ObjectStore
from stator.errors import ConfigurationError
from stator.server import (
    HttpServer,
    ServerOptions,
    read_credentials,
    run_until_signal,
    server_context,
)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Durability(StrEnum):
    disk = "disk"
    process = "process"


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
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the address and settings as one line of JSON.")
    ] = False,
) -> None:
    """Serve the DynamoDB API on this machine, in memory or from a folder.

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
        options, data, durability, status_delay, buckets, s3_endpoint, credentials, tls_cert
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
    )
    try:
        run_until_signal(
            engine, plan.options, lambda server: _announce(server, plan, as_json=as_json)
        )
    except OSError as error:
        raise _address_error(error, plan.options) from error
    finally:
        engine.close()


def _buckets(plan: ServePlan) -> ObjectStore | str | None:
    if plan.s3_endpoint is not None:
        from stator.buckets import S3Buckets  # loads botocore, which most servers do not need

        return S3Buckets(endpoint=plan.s3_endpoint)
    return None if plan.buckets is None else str(plan.buckets)


def _where(plan: ServePlan) -> str | None:
    """Return the folder or S3 endpoint for exports and imports, or None if none is set."""
    return plan.s3_endpoint if plan.buckets is None else str(plan.buckets.resolve())


def _announce(server: HttpServer, plan: ServePlan, *, as_json: bool) -> None:
    facts = {
        "url": server.url,
        "host": plan.options.host,
        "port": server.port,
        "data": None if plan.data is None else str(plan.data.resolve()),
        "buckets": _where(plan),
        "durability": None if plan.data is None else plan.durability.value,
        "verifies_signatures": plan.options.credentials is not None,
        "try": _example_call(server.url, plan),
    }
    typer.echo(json.dumps(facts) if as_json else _banner(server.url, plan))
    if plan.options.host not in _LOOPBACK and plan.options.credentials is None:
        typer.echo(
            f"note: everyone who can reach {plan.options.host} can read and write; "
            "--credentials FILE accepts only signed requests",
            err=True,
        )


def _banner(url: str, plan: ServePlan) -> str:
    if plan.data is None:
        data = "in memory, lost when this process ends; keep it with --data DIR"
    else:
        data = f"{plan.data.resolve()} (writes are acknowledged {_acknowledged(plan.durability)})"
    lines = {
        "serving": typer.style(url, bold=True),
        "data": data,
        **({} if _where(plan) is None else {"buckets": _where(plan)}),
        "try": _example_call(url, plan),
        "stop": "Ctrl-C",
    }
    return "\n".join(
        f"{typer.style(f'{label:8}', fg='cyan')} {text}" for label, text in lines.items()
    )


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

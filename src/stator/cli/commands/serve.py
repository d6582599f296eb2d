"""``stator serve``: DynamoDB's API on this machine.

It answers within half a second of being started, so this path imports little: no boto3, and rich only
where something is drawn.
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
    """What was asked for, checked."""

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
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for every network.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the data in this folder.", file_okay=False),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Keep the data in memory (the default).")
    ] = False,
    durability: Annotated[
        Durability,
        typer.Option(
            help="When a write counts: once it is on disk, or once this process has it (faster; a crash "
            "of the machine loses the last writes)."
        ),
    ] = Durability.disk,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).")
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The certificate's key (PEM), if in a file of its own."),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Verify signatures against this AWS credentials file; else any key will do.",
        ),
    ] = None,
    status_delay: Annotated[
        float,
        typer.Option(min=0.0, metavar="SECONDS", help="How long tables stay CREATING or DELETING."),
    ] = 0.0,
    buckets: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Exports go to, and imports come from, this folder; its sub-folders are the buckets.",
            file_okay=False,
        ),
    ] = None,
    s3_endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Exports go to, and imports come from, S3 at this address, with credentials as boto3 finds them.",
        ),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print where it listens as one line of JSON.")
    ] = False,
) -> None:
    """Serve DynamoDB's API on this machine, in memory or from a folder.

    Example: stator serve --data ./stator-data --port 8000
    """
    if memory and data is not None:
        raise typer.BadParameter("--memory and --data exclude each other")
    if buckets is not None and s3_endpoint is not None:
        raise typer.BadParameter("--buckets and --s3-endpoint exclude each other")
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
    """Serve until a signal; the engine is closed in every case."""
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
        from stator.buckets import S3Buckets  # botocore, which most servers need not load

        return S3Buckets(endpoint=plan.s3_endpoint)
    return None if plan.buckets is None else str(plan.buckets)


def _where(plan: ServePlan) -> str | None:
    """Where the buckets are, in words."""
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
            f"note: everybody who can reach {plan.options.host} can read and write; "
            "--credentials FILE lets in only who can sign",
            err=True,
        )


def _banner(url: str, plan: ServePlan) -> str:
    if plan.data is None:
        data = "in memory, gone when this process ends; keep it with --data DIR"
    else:
        data = f"{plan.data.resolve()} (a write counts once {_counts_when(plan.durability)})"
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


def _counts_when(durability: Durability) -> str:
    return "it is on disk" if durability is Durability.disk else "this process has it"


def _example_call(url: str, plan: ServePlan) -> str:
    """A line that works as it stands, pasted into a shell on this machine."""
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
            hint="stop what listens there, or choose another with --port (0: any)",
        )
    if error.errno == errno.EACCES:
        return ConfigurationError(
            f"{where} may not be used by this user", hint="choose a port above 1023 with --port"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return ConfigurationError(
            f"{options.host} is not an address of this machine",
            hint="use --host 127.0.0.1, or 0.0.0.0 for all",
        )
    return ConfigurationError(f"cannot listen on {where}: {error.strerror or error}")


def _log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

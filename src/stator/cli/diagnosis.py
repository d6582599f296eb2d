"""Checks what is installed, compiled and reachable here, and says how to add what is missing.

Nothing leaves the machine unless an address is given: credentials are looked for in the
environment and in files, and never printed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final, Literal

import stator
from stator.model.quantities import plural

State = Literal["ok", "absent", "wrong"]

_FEATURES: Final = {
    "arrow": "Parquet and Arrow files",
    "avro": "Avro records of topics",
    "blobs": "LZ4 and zstd",
    "boto3": "boto3 in tests, S3 and SQS, SNS, Kinesis sinks",
    "ion": "Amazon Ion files",
    "kafka": "the Kafka sink, and records of Kafka topics",
    "msgspec": "msgspec models",
    "opentelemetry": "traces",
    "prometheus": "metrics for Prometheus",
    "protobuf": "Protobuf records of topics",
    "pydantic": "pydantic models",
}
_SERVER: Final = ("127.0.0.1", 8000)
_PROBE_SECONDS: Final = 0.2
_OPEN_FILES: Final = 1024
"""A data folder and the connections of a busy server need about this many."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one subject: ``ok``, ``absent`` or ``wrong``, with what to do about it.

    An absent subject is a problem only for programs that need it.
    """

    subject: str
    state: State
    found: str
    do: str = ""

    def to_data(self) -> dict[str, str]:
        return {name: text for name, text in asdict(self).items() if text}


def diagnose(address: str | None = None, region: str | None = None) -> list[Check]:
    """Return the results of all checks.

    If ``address`` is given, one check lists its tables, with the usual credentials.
    """
    found = [_python(), _build(), *_extras(), _open_files(), _credentials(), _local_server()]
    return found if address is None else [*found, _address(address, region)]


def _python() -> Check:
    names = ("botocore", "rocksdict", "orjson")
    parts = ", ".join(f"{name} {_installed(name) or 'missing'}" for name in names)
    system = f"{platform.system()} {platform.machine()}"
    return Check(
        f"stator {_installed('stator') or 'from a source folder'}",
        "ok",
        f"Python {platform.python_version()}, {system}, {parts}",
    )


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


# --- the build ------------------------------------------------------------------------------------


def _build() -> Check:
    package = Path(str(stator.__file__)).parent
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    compiled = [
        path for path in package.rglob(f"*{suffix}") if (path.parent / _source(path)).exists()
    ]
    if not compiled:
        return Check(
            "build", "absent", "interpreted: about half the speed", _how_to_compile(package)
        )
    stale = [
        str((path.parent / _source(path)).relative_to(package))
        for path in compiled
        if (path.parent / _source(path)).stat().st_mtime > path.stat().st_mtime + 1
    ]
    if stale and _is_checkout(package):
        return Check(
            "build",
            "wrong",
            f"{stale[0]} is newer than its compiled module, so its changes have no effect",
            "run `make interpreted` while you edit, or `make compile`",
        )
    return Check("build", "ok", f"compiled: {plural(len(compiled), 'module')}")


def _source(path: Path) -> str:
    return f"{path.name.split('.')[0]}.py"


def _is_checkout(package: Path) -> bool:
    return (package.parents[1] / "Makefile").exists()


def _how_to_compile(package: Path) -> str:
    compiler = str(sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"install a C compiler ({compiler} is not on the PATH), then compile"
    if _is_checkout(package):
        return "run `make compile`"
    return "install from a checkout with `STATOR_COMPILE=1 pip install .`"


# --- extras ---------------------------------------------------------------------------------------


def _extras() -> Iterator[Check]:
    """Yield one check for each extra, as the metadata of the installed package lists them."""
    wanted: dict[str, list[str]] = {}
    for requirement in _requirements():
        found_name = re.match(r"[\w.-]+", requirement)
        found_extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        if found_name and found_extra:
            wanted.setdefault(found_extra[1], []).append(found_name[0])
    for extra, names in wanted.items():
        found = {name: _installed(name) for name in names}
        use = _FEATURES.get(extra, extra)
        if all(found.values()):
            shown = ", ".join(f"{name} {number}" for name, number in found.items())
            yield Check(f"extra {extra}", "ok", f"{shown}: {use}")
        else:
            yield Check(f"extra {extra}", "absent", use, f"pip install 'stator[{extra}]'")


def _requirements() -> list[str]:
    try:
        return requires("stator") or []
    except PackageNotFoundError:
        return []


# --- the machine ----------------------------------------------------------------------------------


def _open_files() -> Check:
    try:
        import resource
    except ImportError:
        return Check("open files", "ok", "no limit known on this system")
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= limit < _OPEN_FILES:
        return Check("open files", "wrong", f"at most {limit:,}", f"ulimit -n {4 * _OPEN_FILES}")
    return Check("open files", "ok", "no limit" if limit < 0 else f"at most {limit:,}")


def _credentials() -> Check:
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    # The metadata service of a cloud machine is not asked: that needs the network, and is slow
    # where there is no such service.
    before = os.environ.get("AWS_EC2_METADATA_DISABLED")
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    try:
        session = Session()
        found: Any = session.get_credentials()
        region = session.get_config_variable("region")
    except (BotoCoreError, OSError) as error:
        return Check("AWS", "wrong", str(error), "check AWS_PROFILE and ~/.aws/config")
    finally:
        if before is None:
            del os.environ["AWS_EC2_METADATA_DISABLED"]
        else:
            os.environ["AWS_EC2_METADATA_DISABLED"] = before
    if found is None:
        return Check(
            "AWS",
            "absent",
            "no credentials in the environment or in files; only aws:// addresses need them",
            "run `aws configure`, or set AWS_PROFILE",
        )
    where = f"credentials found ({found.method})"
    if region is None:
        return Check("AWS", "ok", f"{where}, no default region: name it, as in aws://eu-west-1")
    return Check("AWS", "ok", f"{where}, region {region}")


def _local_server() -> Check:
    host, port = _SERVER
    try:
        socket.create_connection(_SERVER, timeout=_PROBE_SECONDS).close()
    except OSError:
        return Check(
            "local server", "absent", f"nothing listens on {host}:{port}", "run `stator serve`"
        )
    return Check("local server", "ok", f"something listens on http://{host}:{port}")


def _address(address: str, region: str | None) -> Check:
    from stator.addresses import Address, TransportOptions, open_transport
    from stator.errors import StatorError

    options: TransportOptions = {} if region is None else {"region": region}
    try:
        where = Address.parse(address)
        if where.kind == "folder" and not Path(where.where).is_dir():
            return Check(address, "wrong", "there is no such folder", "check the path")
        if not where.is_embedded:
            options |= {"max_attempts": 2, "connect_timeout_seconds": 3.0}
        transport = open_transport(where, None, options)
        try:
            tables = transport.call("ListTables", {"Limit": 100})["TableNames"]
        finally:
            transport.close()
    except StatorError as error:
        return Check(address, "wrong", error.message, error.hint or "")
    more = "at least " if len(tables) == 100 else ""
    named = f": {', '.join(tables[:5])}{', ...' if len(tables) > 5 else ''}" if tables else ""
    return Check(address, "ok", f"answers, {more}{plural(len(tables), 'table')}{named}")

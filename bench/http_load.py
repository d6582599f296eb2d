"""Load over HTTP: wrk with prepared requests, and a plain connection for sequential requests."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.requests import CREATE, TABLE, Workload, batch_write, bodies

_SCRIPT = Path(__file__).parent / "replay.lua"
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=00",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """Responses per second and latency in microseconds; ``errors`` are those other than 200."""

    per_second: float
    p50_us: float
    p99_us: float
    errors: int


def drive(port: int, workload: Workload, items: int, connections: int, seconds: int) -> Rate:
    """Replay a workload with wrk, which runs in its own process, far below its limit."""
    if shutil.which("wrk") is None:
        raise SystemExit(
            "wrk is not installed: install the package `wrk` (Debian, Ubuntu, Homebrew)"
        )
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(f"{body}\n" for body in bodies(workload, items))
        file.flush()
        command = [
            "wrk",
            "-t",
            "1",
            "-c",
            str(connections),
            "-d",
            f"{seconds}s",
            "--timeout",
            "30s",
            "-s",
            str(_SCRIPT),
        ]
        printed = subprocess.run(
            [*command, f"http://127.0.0.1:{port}", "--", file.name, workload.operation],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    line = next(line for line in printed.splitlines() if line.startswith("RESULT"))
    requests, micros, errors, p50, p99 = map(int, line.split()[1:])
    return Rate((requests - errors) / (micros / 1e6), p50, p99, errors)


class Connection:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def send(self, operation: str, body: dict[str, Any] | bytes) -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**_HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self._connection.request("POST", "/", data, headers)
        reply = self._connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{operation}: {reply.status} {content[:300]!r}")
        return content


def create_table(port: int) -> None:
    connection = Connection(port)
    connection.send("CreateTable", CREATE)
    while (
        json.loads(connection.send("DescribeTable", {"TableName": TABLE}))["Table"]["TableStatus"]
        != "ACTIVE"
    ):
        time.sleep(0.05)


def bulk_load(port: int, items: int, connections: int = 8) -> float:
    """Fill the table with BatchWriteItem; returns items per second."""
    batches = iter(
        [json.dumps(batch_write(number, items)).encode() for number in range(items // 25)]
    )
    lock = threading.Lock()

    def work() -> None:
        connection = Connection(port)
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            connection.send("BatchWriteItem", batch)

    started = time.perf_counter()
    run_all([threading.Thread(target=work) for _ in range(connections)])
    return items / (time.perf_counter() - started)


def run_all(threads: Iterable[threading.Thread]) -> None:
    threads = list(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def full_scan(port: int) -> tuple[int, float]:
    """Scan the table page by page; returns items and items per second.

    Only the end of each page is decoded.
    """
    connection = Connection(port)
    request: dict[str, Any] = {"TableName": TABLE}
    count = 0
    started = time.perf_counter()
    while True:
        page = connection.send("Scan", request)
        count += _member(page, b'"Count":')
        start = _last_key(page)
        if start is None:
            return count, count / (time.perf_counter() - started)
        request["ExclusiveStartKey"] = start


def _member(page: bytes, name: bytes) -> int:
    at = page.rindex(name) + len(name)
    digits = page[at : at + 12].lstrip()
    return int(digits[: len(digits) - len(digits.lstrip(b"0123456789"))])


def _last_key(page: bytes) -> Any:
    at = page.rfind(b'"LastEvaluatedKey":')
    if at < 0:
        return None
    return json.JSONDecoder().raw_decode(
        page[at + len(b'"LastEvaluatedKey":') :].decode().lstrip()
    )[0]

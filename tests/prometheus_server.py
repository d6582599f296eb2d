"""A real Prometheus, and promtool, from ``make servers``."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from .dynamodb_local import SERVERS
from .ports import free_port

_FOLDER = SERVERS / "prometheus"
needs_prometheus = pytest.mark.skipif(
    not (_FOLDER / "installed").exists(),
    reason="Prometheus is not installed: scripts/install-prometheus.sh",
)


def promtool() -> str:
    return str(_FOLDER / "promtool")


class PrometheusServer:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def asked(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.url}{path}?{query}", timeout=10) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def values(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        answer = self.asked("/api/v1/query", query=expression)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def wait_for(self, expression: str, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not self.values(expression):
            assert time.monotonic() < end, f"Prometheus has no data for {expression}"
            time.sleep(0.3)


@contextmanager
def running_prometheus(
    folder: Path, targets: list[int], rules: Path | None = None
) -> Iterator[PrometheusServer]:
    """A server that reads the metrics on these ports every second."""
    port = free_port()
    settings: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [] if rules is None else [str(rules)],
        "scrape_configs": [
            {
                "job_name": "stator",
                "static_configs": [{"targets": [f"127.0.0.1:{each}" for each in targets]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))
    log = (folder / "prometheus.log").open("wb")
    process = subprocess.Popen(
        [
            str(_FOLDER / "prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=log,
        stderr=log,
    )
    server = PrometheusServer(port)
    try:
        end = time.monotonic() + 60
        while True:
            try:
                if server.values("up == 1"):
                    break
            except (OSError, AssertionError):
                pass
            assert time.monotonic() < end, (folder / "prometheus.log").read_text()[-2000:]
            time.sleep(0.2)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()

"""The page for Prometheus: names by its rules, and ports that cannot be used."""

from __future__ import annotations

import socket
import subprocess
import urllib.request

import pytest

from stator.errors import ConfigurationError
from stator.metrics.catalogue import EXPORTED_METRICS
from stator.metrics.endpoint import new_registry, registered, serve_registry

from ..prometheus_server import needs_prometheus, promtool


@needs_prometheus
def test_every_name_follows_prometheus_s_rules() -> None:
    """`promtool check metrics` knows units, suffixes and kinds."""
    registry = new_registry()
    for metric in EXPORTED_METRICS:
        made = registered(metric, registry)
        child = made.labels(*metric.labels)
        child.observe(1) if metric.kind == "histogram" else child.inc()
    port = serve_registry(registry, 0, "127.0.0.1")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read()
    lines = [line for line in text.splitlines() if b"_created" not in line]
    checked = subprocess.run(
        [promtool(), "check", "metrics"],
        input=b"\n".join(lines) + b"\n",
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, b"")


def test_a_name_stands_for_one_metric() -> None:
    names = [each.name for each in EXPORTED_METRICS]
    assert len(names) == len(set(names))


def test_a_port_in_use_is_an_error_that_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"port {port} cannot be used"):
            serve_registry(new_registry(), port, "127.0.0.1")

"""A real Apache Kafka node in KRaft mode, on a free port, that tests start and kill."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from .dynamodb_local import SERVERS
from .ports import free_port

_LIBRARIES = SERVERS / "kafka" / "libs"
_JAVA = [
    "java",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-cp",
    f"{_LIBRARIES}/*",
]
_CLUSTER = "c3RhdG9yLXRlc3RzLTAwMQ"


class KafkaServer:
    """``address`` stays the same when it is started again, and so does what it holds."""

    def __init__(self, folder: Path, more: Mapping[str, object]) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        self._port = port
        self._properties = folder / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / "logs",
            "num.partitions": 3,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "true",
            **more,
        }
        self._properties.write_text(
            "".join(f"{name}={value}\n" for name, value in settings.items())
        )
        self._run(
            "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(self._properties)
        ).wait(60)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with (self._folder / "kafka.log").open("ab") as log:
            return subprocess.Popen([*_JAVA, *command], stdout=log, stderr=log, cwd=self._folder)

    def start(self) -> None:
        self._process = self._run("kafka.Kafka", str(self._properties))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                pytest.fail(f"Kafka ended: {(self._folder / 'kafka.log').read_text()[-2000:]}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        pytest.fail("Kafka did not listen within a minute")

    def pause(self) -> None:
        """It keeps its connections, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def kafka_server(
    folder: Path, settings: Mapping[str, object] | None = None
) -> Iterator[KafkaServer]:
    """A fresh Kafka with more settings; skips the test where it cannot be had."""
    if not (SERVERS / "kafka" / "installed").exists() or shutil.which("java") is None:
        pytest.skip("Apache Kafka is not installed: it takes java, mvn and `make servers`")
    server = KafkaServer(folder, settings or {})
    try:
        server.start()
        yield server
    finally:
        server.kill()

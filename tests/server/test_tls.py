"""HTTPS, with a certificate made for the test."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import orjson
import pytest

from stator.errors import ConfigurationError
from stator.server import server_context

from .conftest import Serve
from .fake_engine import FakeEngine
from .wire import WireClient, request_bytes


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-out",
            str(cert),
            "-keyout",
            str(key),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


def connect(port: int, cert: Path) -> WireClient:
    context = ssl.create_default_context(cafile=cert)
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    return WireClient(port, context.wrap_socket(plain, server_hostname="localhost"))


def test_requests_and_large_replies_go_over_tls(
    serve: Serve, engine: FakeEngine, certificate: tuple[Path, Path]
) -> None:
    engine.page = orjson.dumps("x" * 1_000_000)
    server = serve(engine, tls=server_context(*certificate))
    assert server.url.startswith("https://")
    with connect(server.port, certificate[0]) as client:
        assert client.ask("1").json == {"echo": 1}
        assert client.ask(operation="Scan").body == engine.page
        client.send(request_bytes("2", operation="PutItem") + request_bytes("3"))
        engine.settle(*engine.await_commits(1))
        assert [client.read().json, client.read().json] == [{"echo": 2}, {"echo": 3}]


def test_bad_http_is_refused_over_tls(
    serve: Serve, engine: FakeEngine, certificate: tuple[Path, Path]
) -> None:
    server = serve(engine, tls=server_context(*certificate))
    with connect(server.port, certificate[0]) as client:
        client.send(b"rubbish\r\n\r\n")
        assert client.read().status == 400


def test_plain_http_to_a_tls_port_does_not_hurt(
    serve: Serve, engine: FakeEngine, certificate: tuple[Path, Path]
) -> None:
    server = serve(engine, tls=server_context(*certificate))
    with WireClient(server.port) as plain:
        plain.send(request_bytes())
        assert plain.is_closed()
    with connect(server.port, certificate[0]) as client:
        assert client.ask().status == 200


def test_a_certificate_that_cannot_be_used_is_explained(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        server_context(tmp_path / "missing.pem", certificate[1])
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        server_context(nonsense, certificate[1])
    with pytest.raises(ConfigurationError, match="cannot be used"):
        server_context(certificate[0])  # its key is elsewhere

"""Connections of both clients: TLS, proxies, credentials, endpoints, limits, cancelled calls."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from stator.addresses import Address, open_transport
from stator.client.factory import open_async_client, open_client
from stator.client.service_router import ServiceRouter
from stator.errors import ConfigurationError, CredentialsMissing, DeadlineExceeded, Unreachable

from .conftest import KEYS, Asking
from .scripted import ok, scripted, stall

pytestmark = pytest.mark.usefixtures("clean_environment")


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that nobody but its holder trusts."""
    folder = tmp_path_factory.mktemp("tls")
    key, made = str(folder / "key.pem"), str(folder / "cert.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        made,
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    return made, key


@contextmanager
def secure(certificate: tuple[str, str]) -> Iterator[str]:
    command = [
        str(Path(sys.executable).with_name("stator")),
        "serve",
        "--port",
        "0",
        "--memory",
        "--json",
        "--host",
        "localhost",
    ]
    command += ["--tls-cert", certificate[0], "--tls-key", certificate[1]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


def test_tls_is_checked(
    ask: Asking, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with secure(certificate) as url:
        assert url.startswith("https://localhost:")
        assert ask(url, ca_bundle=certificate[0]).call("ListTables", {}) == {"TableNames": []}
        with pytest.raises(Unreachable, match="not trusted") as caught:
            ask(url, max_attempts=1).call("ListTables", {})
        assert "ca_bundle" in str(caught.value.hint)
        assert ask(url, ca_bundle=False).call("ListTables", {}) == {"TableNames": []}
        monkeypatch.setenv("AWS_CA_BUNDLE", certificate[0])
        assert ask(url).call("ListTables", {}) == {"TableNames": []}
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ask("https://localhost:1", ca_bundle="/nowhere.pem")


# --- proxies --------------------------------------------------------------------------------------


class Proxy:
    """Forwards plain requests and makes tunnels; keeps the first line of each."""

    def __init__(self, refuse: bool = False) -> None:
        self.asked: list[str] = []
        self._refuse = refuse
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:pass%20word@127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._handle, args=(here,), daemon=True).start()

    def _handle(self, here: socket.socket) -> None:
        with here:
            data = here.recv(65536)
            head = data.partition(b"\r\n\r\n")[0].decode()
            self.asked.append(head)
            if self._refuse:
                here.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                )
                return
            method, url, _ = head.split("\r\n")[0].split(" ")
            place = url if method == "CONNECT" else url.removeprefix("http://").partition("/")[0]
            host, _, port = place.rpartition(":")
            with socket.create_connection((host, int(port))) as there:
                if method == "CONNECT":
                    here.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                else:
                    there.sendall(data.replace(f"http://{place}".encode(), b"", 1))
                back = threading.Thread(target=self._pump, args=(there, here), daemon=True)
                back.start()
                self._pump(here, there)
                back.join(1)

    def _pump(self, source: socket.socket, to: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            return


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    yield made
    made.close()


def test_plain_requests_go_through_a_proxy(ask: Asking, proxy: Proxy) -> None:
    with scripted(ok({"n": 1})) as server:
        client = ask(server.url, proxy=proxy.url)
        assert client.call("Query", {}) == {"n": 1}
        client.close()
    [head] = proxy.asked
    assert head.startswith(f"POST {server.url}/ HTTP/1.1")
    assert "Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=" in head


def test_tls_goes_through_a_tunnel(ask: Asking, proxy: Proxy, certificate: tuple[str, str]) -> None:
    with secure(certificate) as url:
        client = ask(url, proxy=proxy.url, ca_bundle=certificate[0])
        assert client.call("ListTables", {}) == {"TableNames": []}
        assert client.call("ListTables", {}) == {"TableNames": []}
        client.close()
    [head] = proxy.asked
    assert head.startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.1")


def test_a_proxy_that_refuses_is_told(ask: Asking, certificate: tuple[str, str]) -> None:
    refusing = Proxy(refuse=True)
    with pytest.raises(Unreachable, match="407"):
        ask("https://localhost:1", proxy=refusing.url, max_attempts=1).call("ListTables", {})
    refusing.close()
    with pytest.raises(ConfigurationError, match="proxy"):
        ask("https://localhost:1", proxy="socks5://localhost:1")


def test_the_environments_proxy_is_used_unless_it_says_no(
    monkeypatch: pytest.MonkeyPatch, proxy: Proxy
) -> None:
    monkeypatch.setenv("http_proxy", proxy.url)
    with scripted(ok({"n": 1})) as server:
        client = open_client("http", server.url, None, dict(KEYS))
        assert client.call("Query", {}) == {"n": 1}
        client.close()
        assert len(proxy.asked) == 1
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        direct = open_client("http", server.url, None, dict(KEYS))
        assert direct.call("Query", {}) == {"n": 1}
        direct.close()
    assert len(proxy.asked) == 1


# --- credentials and endpoints --------------------------------------------------------------------


def credential(head: str) -> str:
    return head.partition("Credential=")[2].partition("/")[0]


def test_credentials_are_found_where_boto3_finds_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = FILE\naws_secret_access_key = s\n"
        "[other]\naws_access_key_id = OTHER\naws_secret_access_key = s\naws_session_token = token\n"
    )
    (tmp_path / "config").write_text("[profile other]\nregion = ap-south-1\n")
    with scripted(ok()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", server.url)

        def ask(where: str, **options: Any) -> str:
            client = open_client("aws", where, None, options)
            client.call("ListTables", {})
            client.close()
            return server.requests[-1][0]

        assert credential(ask("eu-west-1")) == "FILE"
        head = ask("", profile="other")
        assert credential(head) == "OTHER" and "/ap-south-1/dynamodb/" in head
        assert "X-Amz-Security-Token: token" in head
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVIRONMENT")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
        assert credential(ask("eu-west-1")) == "ENVIRONMENT"
        assert credential(ask("eu-west-1", access_key_id="GIVEN", secret_access_key="s")) == "GIVEN"
    with pytest.raises(ConfigurationError, match="nobody"):
        open_client("aws", "eu-west-1", None, {"profile": "nobody"})
    with pytest.raises(ConfigurationError, match="belong together"):
        open_client("aws", "eu-west-1", None, {"access_key_id": "x"})


def test_nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsMissing) as caught:
        open_client("aws", "eu-west-1", None, {})
    assert "AWS_PROFILE" in str(caught.value.hint)
    with pytest.raises(ConfigurationError, match="names no region"):
        open_client("aws", "", None, {"access_key_id": "x", "secret_access_key": "y"})
    with scripted(ok()) as server:  # an endpoint of one's own is content with any
        client = open_client("http", server.url, None, {"proxy": None})
        client.call("ListTables", {})
        client.close()
    assert credential(server.requests[0][0]) == "stator"


def test_aws_itself_is_addressed_by_region() -> None:
    client = open_client("aws", "eu-west-1", None, dict(KEYS))
    assert isinstance(client, ServiceRouter)
    assert client.tables.exchange.endpoint.authority.startswith("dynamodb.eu-west-1.")
    assert client.streams().exchange.endpoint.authority.startswith("streams.dynamodb.eu-west-1.")
    assert isinstance(client.tables.exchange.endpoint.tls, ssl.SSLContext)
    china = open_client("aws", "", None, KEYS | {"region": "cn-north-1"})
    assert isinstance(china, ServiceRouter)
    assert china.tables.exchange.endpoint.host.endswith(".cn")


def test_streams_are_asked_for_at_their_own_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(ok({"n": 1})) as tables, scripted(ok({"n": 2})) as streams:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", tables.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", streams.url)
        client = open_client("aws", "eu-west-1", None, dict(KEYS))
        assert client.call("ListTables", {}) == {"n": 1}
        assert client.call("ListStreams", {}) == {"n": 2}
        client.close()
        assert "X-Amz-Target: DynamoDBStreams_20120810.ListStreams" in streams.requests[-1][0]

        async def ask() -> list[dict[str, Any]]:
            both = open_async_client("aws", "eu-west-1", None, dict(KEYS))
            answers = [await both.call("ListTables", {}), await both.call("GetRecords", {})]
            await both.close()
            return answers

        assert asyncio.run(ask()) == [{"n": 1}, {"n": 2}]


def test_credentials_that_expire_are_refreshed(tmp_path: Path) -> None:
    """A process gives credentials that are good for a moment only, and others the next time."""
    calls = tmp_path / "calls"
    soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
    script = tmp_path / "give.py"
    script.write_text(
        "import json, pathlib\n"
        f"p = pathlib.Path({str(calls)!r})\n"
        "n = len(p.read_text()) if p.exists() else 0\n"
        "p.write_text('x' * (n + 1))\n"
        f"print(json.dumps({{'Version': 1, 'AccessKeyId': f'KEY{{n}}', "
        f"'SecretAccessKey': 's', 'Expiration': {soon!r}}}))\n"
    )
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {sys.executable} {script}\n")
    with scripted(ok()) as server:
        client = open_client("http", server.url, None, {"region": "eu-west-1", "proxy": None})
        for _ in range(2):
            client.call("ListTables", {})
        client.close()

        async def main() -> None:
            other = open_async_client(
                "http", server.url, None, {"region": "eu-west-1", "proxy": None}
            )
            await other.call("ListTables", {})
            await other.close()

        asyncio.run(main())
    used = [credential(head) for head, _ in server.requests]
    assert len(set(used)) == 3 and all(each.startswith("KEY") for each in used)


# --- limits and cancelling ------------------------------------------------------------------------


def test_no_more_connections_than_allowed() -> None:
    with scripted(ok({"n": 1})) as server:

        async def main() -> None:
            client = open_async_client(
                "http", server.url, None, KEYS | {"max_connections": 3, "proxy": None}
            )
            answers = await asyncio.gather(*(client.call("Query", {}) for _ in range(40)))
            assert answers == [{"n": 1}] * 40
            await client.close()

        asyncio.run(main())
        assert server.connections <= 3
        client = open_client("http", server.url, None, KEYS | {"max_connections": 2, "proxy": None})
        threads = [threading.Thread(target=client.call, args=("Query", {})) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
    assert server.connections <= 5
    assert len(server.requests) == 60


def test_who_waits_for_a_connection_waits_no_longer_than_told() -> None:
    with scripted(stall(1.0)) as server:

        async def main() -> None:
            options = KEYS | {"max_connections": 1, "max_attempts": 1, "proxy": None}
            client = open_async_client("http", server.url, None, options)
            first = asyncio.create_task(client.call("Query", {}))
            await asyncio.sleep(0.05)
            with pytest.raises(DeadlineExceeded):
                await client.call("Query", {}, deadline_seconds=0.1)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await client.close()

        asyncio.run(main())


def test_a_cancelled_call_leaves_no_answer_to_others() -> None:
    def late(to: Any) -> None:
        threading.Event().wait(0.1)
        ok({"for": "the cancelled"})(to)

    with scripted(late, ok({"for": "the next"})) as server:

        async def main() -> None:
            client = open_async_client(
                "http", server.url, None, KEYS | {"max_connections": 1, "proxy": None}
            )
            first = asyncio.create_task(client.call("Query", {}))
            await asyncio.sleep(0.03)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            for _ in range(3):
                assert await client.call("Query", {}) == {"for": "the next"}
            await client.close()

        asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"read_timeout_seconds": 0},
        {"max_connections": -1},
        {"durability": "disk"},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        open_client("http", "http://localhost:1", None, KEYS | options)
    with pytest.raises(ConfigurationError, match="not an http or https URL"):
        open_client("http", "localhost:8000", None, dict(KEYS))


def test_a_server_without_tls_is_recognised() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    options: Any = {"access_key_id": "x", "secret_access_key": "x", "max_attempts": 1}
    client = open_transport(Address.parse(f"https://127.0.0.1:{port}"), None, options)
    with pytest.raises(Unreachable, match="does not speak TLS") as refused:
        client.call("ListTables", {}, deadline_seconds=2.0)
    assert refused.value.hint == f"write http://127.0.0.1:{port}"
    client.close()
    listener.close()

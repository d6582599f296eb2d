"""Credentials of roles: fetched from each issuer, and accepted by a server that verifies them."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import json
import os
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stator import connect, connect_async
from stator.client.factory import open_async_client, open_client
from stator.engine import Engine
from stator.errors import CredentialsMissing, DeadlineExceeded, UnrecognizedClient
from stator.server import BackgroundServer, ServerOptions
from stator.server.auth.credentials import Credential
from tests.tables.shop import Product, shop

from . import issuers
from .issuers import ROLE, Issuer

pytestmark = pytest.mark.usefixtures("clean_environment")

Starting = Callable[..., Issuer]


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Credential]]:
    """The credentials a running server lets in; ``aws://`` leads to it."""
    letting_in: dict[str, Credential] = {}
    engine = Engine.open()
    with BackgroundServer(engine, ServerOptions(port=0, credentials=letting_in)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{server.port}")
        yield letting_in
    engine.close()


@pytest.fixture
def start(
    known: dict[str, Credential], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Starting]:
    with ExitStack() as stack:

        def begin(way: str, **how: Any) -> Issuer:
            answer = {
                "container": issuers.container,
                "instance": issuers.instance,
                "sso": issuers.sso,
            }
            kind = way.partition("-")[0]
            issuer = stack.enter_context(Issuer(answer.get(kind, issuers.sts), known, **how))
            WAYS[way](issuer, monkeypatch, tmp_path)
            _move_botocores_time(issuer, monkeypatch)
            return issuer

        yield begin


def _move_botocores_time(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    class AnyDate(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime.datetime)

    class Moved(datetime.datetime, metaclass=AnyDate):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return datetime.datetime.now(tz) + datetime.timedelta(seconds=issuer.ahead_seconds)

    module = types.SimpleNamespace(**{name: getattr(datetime, name) for name in datetime.__all__})
    module.datetime = Moved
    for where in ("botocore.credentials", "botocore.compat"):
        monkeypatch.setattr(f"{where}.datetime", module)


# --- the ways -------------------------------------------------------------------------------------


def container_full(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer.url}/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", issuer.secret)


def container_file(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As EKS Pod Identity does it: the token is in a file, and changes."""
    (folder / "token").write_text(issuer.secret)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer.url}/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(folder / "token"))


def container_relative(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As ECS does it, but for the address, which is one of the link."""
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.IP_ADDRESS", issuer.authority)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", issuer.secret)


def instance(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", issuer.url)
    monkeypatch.setenv("AWS_EC2_METADATA_V1_DISABLED", "true")


def web_identity(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "token").write_text(issuer.secret)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(folder / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", issuer.url)


def source_profile(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "credentials").write_text(
        "[me]\naws_access_key_id = AKIASOURCE\naws_secret_access_key = s\n"
    )
    (folder / "config").write_text(f"[profile reader]\nrole_arn = {ROLE}\nsource_profile = me\n")
    monkeypatch.setenv("AWS_PROFILE", "reader")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", issuer.url)


def _sso(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    for provider in ("botocore.credentials.SSOProvider", "botocore.tokens.SSOTokenProvider"):
        monkeypatch.setattr(f"{provider}._SSO_TOKEN_CACHE_DIR", str(folder))
    token = {
        "accessToken": issuer.secret,
        "startUrl": "https://corp.awsapps.com/start",
        "region": "eu-west-1",
    }
    token["expiresAt"] = (
        datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=8)
    ).isoformat()
    (folder / f"{hashlib.sha1(name.encode()).hexdigest()}.json").write_text(json.dumps(token))
    monkeypatch.setenv("AWS_PROFILE", "reader")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSO", issuer.url)


_PORTAL = "sso_start_url = https://corp.awsapps.com/start\nsso_region = eu-west-1\n"
_PROFILE = "[profile reader]\nsso_account_id = 123456789012\nsso_role_name = reader\n"


def sso_legacy(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "config").write_text(_PROFILE + _PORTAL)
    _sso(issuer, monkeypatch, folder, "https://corp.awsapps.com/start")


def sso_session(issuer: Issuer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "config").write_text(f"{_PROFILE}sso_session = corp\n[sso-session corp]\n{_PORTAL}")
    _sso(issuer, monkeypatch, folder, "corp")


WAYS = {
    "container-full": container_full,
    "container-file": container_file,
    "container-relative": container_relative,
    "instance": instance,
    "web-identity": web_identity,
    "source-profile": source_profile,
    "sso": sso_legacy,
    "sso-session": sso_session,
}
each_way = pytest.mark.parametrize("way", WAYS)
both = pytest.mark.parametrize("form", ["sync", "async"])


# --- calls ----------------------------------------------------------------------------------------


class Program:
    """Calls at ``aws://eu-west-1``, blocking or not; no region is configured elsewhere."""

    def __init__(self, form: str) -> None:
        self._loop = asyncio.new_event_loop() if form == "async" else None
        make: Any = open_client if self._loop is None else open_async_client
        self.client = make("aws", "eu-west-1", None, {})

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is None:
            self.client.close()
            return
        self._loop.run_until_complete(self.client.close())
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def call(self, times: int = 1) -> None:
        if self._loop is not None:
            self._loop.run_until_complete(self._all(times))
            return
        with ThreadPoolExecutor(times) as pool:
            for each in [pool.submit(self.client.call, "ListTables", {}) for _ in range(times)]:
                each.result()

    async def _all(self, times: int) -> None:
        await asyncio.gather(*(self.client.call("ListTables", {}) for _ in range(times)))


@each_way
def test_a_role_opens_the_tables(way: str, start: Starting) -> None:
    issuer = start(way)
    db = connect(shop(), "aws://eu-west-1")
    db.ensure()
    db.put(Product(sku="s1", stock=1))
    assert db.get(Product, sku="s1") == Product(sku="s1", stock=1)
    db.close()
    assert len(issuer.issued) == 1

    async def again() -> Product | None:
        async with connect_async(shop(), "aws://eu-west-1") as other:
            return await other.get(Product, sku="s1")

    assert asyncio.run(again()) == Product(sku="s1", stock=1)
    assert len(issuer.issued) == 2


def test_the_session_token_is_verified(start: Starting, known: dict[str, Credential]) -> None:
    issuer = start("instance")
    with Program("sync") as program:
        program.call()
        (held,) = known.values()
        known[held.access_key_id] = Credential(
            "x", held.access_key_id, held.account, held.secret_access_key, "other"
        )
        with pytest.raises(UnrecognizedClient, match="security token"):
            program.call()
    assert len(issuer.issued) == 1


@both
@each_way
def test_new_credentials_come_before_the_old_ones_expire(
    way: str, form: str, start: Starting
) -> None:
    issuer = start(way)
    with Program(form) as program:
        program.call(8)
        program.call(8)
        assert len(issuer.issued) == 1, "they are good for an hour"
        issuer.ahead_seconds = 3600 - 5 * 60
        issuer.revoke()
        program.call(16)
        assert len(issuer.issued) == 2, "asked for once, by whoever came first"
        program.call()
        assert len(issuer.issued) == 2


@both
def test_a_token_in_a_file_is_read_at_each_refresh(
    form: str, start: Starting, tmp_path: Path
) -> None:
    for way in ("container-file", "web-identity"):
        issuer = start(way)
        with Program(form) as program:
            program.call()
            issuer.secret = f"rotated-{way}"
            (tmp_path / "token").write_text(issuer.secret)
            issuer.ahead_seconds = 7200
            issuer.revoke()
            program.call()
            assert len(issuer.issued) == 2


@both
@pytest.mark.parametrize("way", ["container-full", "source-profile"])
def test_short_sessions_are_not_asked_for_at_each_call(
    way: str, form: str, start: Starting
) -> None:
    """A session of 14 minutes is due for a refresh from its beginning."""
    issuer = start(way, lifetime_seconds=14 * 60)
    with Program(form) as program:
        program.call()
        issued = len(issuer.issued)
        for _ in range(5):
            program.call()
        assert len(issuer.issued) == issued


def test_nobody_waits_while_the_old_ones_are_good(start: Starting) -> None:
    issuer = start("web-identity")

    async def main() -> None:
        client = open_async_client("aws", "eu-west-1", None, {})
        await client.call("ListTables", {})
        issuer.ahead_seconds = 3600 - 13 * 60
        issuer.release.clear()
        for _ in range(5):
            await client.call("ListTables", {})
        while not (issuer.entered.is_set() and sum(a.method == "POST" for a in issuer.asked) == 2):
            await asyncio.sleep(0.005)
        assert len(issuer.issued) == 1
        issuer.release.set()
        while len(issuer.issued) < 2:
            await asyncio.sleep(0.005)
        # Those that came are taken up without another being asked for.
        issuer.known.pop(issuer.issued[0])
        while True:
            try:
                await client.call("ListTables", {})
                break
            except UnrecognizedClient:
                await asyncio.sleep(0.005)
        assert len(issuer.issued) == 2
        await client.close()

    asyncio.run(main())
    assert not issuer.was_stuck


@pytest.mark.parametrize("way", ["container-full", "instance", "web-identity", "sso"])
@pytest.mark.parametrize("moment", ["first", "refresh"])
def test_the_loop_goes_on_while_somebody_is_asked(way: str, moment: str, start: Starting) -> None:
    issuer = start(way)

    async def main() -> None:
        if moment == "first":
            issuer.release.clear()
        client = open_async_client("aws", "eu-west-1", None, {})
        if moment == "refresh":
            await client.call("ListTables", {})
            issuer.ahead_seconds = 3600 - 60
            issuer.release.clear()
            issuer.entered.clear()
        calls = [asyncio.ensure_future(client.call("ListTables", {})) for _ in range(40)]
        while not issuer.entered.is_set():
            await asyncio.sleep(0.005)
        calls[0].cancel()  # one who gives up does not take it from the others
        with pytest.raises(DeadlineExceeded):
            await client.call("ListTables", {}, deadline_seconds=0.02)
        await asyncio.to_thread(lambda: None)  # the others do not sit in threads, either
        issuer.release.set()
        await asyncio.gather(*calls[1:])
        await client.close()

    asyncio.run(main())
    assert not issuer.was_stuck
    assert len(issuer.issued) == (1 if moment == "first" else 2)


# --- what goes wrong ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("way", "hint"),
    [
        ("container-full", "AWS_CONTAINER_CREDENTIALS"),
        ("instance", "AWS_EC2_METADATA"),
        ("web-identity", "trust policy"),
        ("source-profile", "trust policy"),
        ("sso", "trust policy"),
    ],
)
def test_a_refresh_that_fails_says_whom_to_ask(
    way: str, hint: str, form: str, start: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)
    issuer = start(way)
    with Program(form) as program:
        program.call()
        issuer.ahead_seconds = 3600 - 60
        issuer.refuses = True
        with pytest.raises(CredentialsMissing, match="could not be fetched") as caught:
            program.call()
        assert hint in str(caught.value.hint)
        issuer.refuses = False
        program.call()


@both
def test_a_refresh_that_fails_in_good_time_is_nobodys_trouble(form: str, start: Starting) -> None:
    issuer = start("web-identity")
    with Program(form) as program:
        program.call()
        issuer.ahead_seconds = 3600 - 13 * 60
        issuer.refuses = True
        for _ in range(5):
            program.call()
    assert sum(asked.method == "POST" for asked in issuer.asked) == 2, (
        "the one who refused is left alone for a while"
    )


@both
@pytest.mark.parametrize("way", ["sso", "sso-session"])
def test_an_sso_session_that_is_over(way: str, form: str, start: Starting, tmp_path: Path) -> None:
    start(way)
    (cache,) = tmp_path.glob("*.json")
    cache.write_text(
        json.dumps(json.loads(cache.read_text()) | {"expiresAt": "2020-01-01T00:00:00Z"})
    )
    with Program(form) as program, pytest.raises(CredentialsMissing) as caught:
        program.call()
    assert "aws sso login" in str(caught.value.hint)


@both
def test_no_file_where_the_token_should_be(form: str, start: Starting, tmp_path: Path) -> None:
    start("web-identity")
    (tmp_path / "token").unlink()
    with Program(form) as program, pytest.raises(CredentialsMissing, match="token") as caught:
        program.call()
    assert "AWS_WEB_IDENTITY_TOKEN_FILE" in str(caught.value.hint)


@both
def test_none_are_found(form: str, known: dict[str, Credential]) -> None:
    def ask() -> None:
        with Program(form) as program:
            program.call()

    with pytest.raises(CredentialsMissing, match="no AWS credentials were found") as caught:
        ask()
    assert "AWS_PROFILE" in str(caught.value.hint)


@pytest.mark.parametrize("way", ["web-identity", "source-profile", "sso"])
def test_a_role_that_is_configured_is_taken_at_an_endpoint_of_ones_own(
    way: str, start: Starting
) -> None:
    issuer = start(way)
    client = open_client(
        "http", os.environ["AWS_ENDPOINT_URL_DYNAMODB"], None, {"region": "eu-west-1"}
    )
    client.call("ListTables", {})
    client.close()
    assert len(issuer.issued) == 1


def test_an_endpoint_of_ones_own_asks_no_container_and_no_instance(
    start: Starting, known: dict[str, Credential], monkeypatch: pytest.MonkeyPatch
) -> None:
    known["stator"] = Credential("anybody", "stator", "123456789012", "stator")
    url = os.environ["AWS_ENDPOINT_URL_DYNAMODB"]
    issuer = start("instance")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{issuer.url}/role")
    client = open_client("http", url, None, {})
    client.call("ListTables", {})
    client.close()
    assert issuer.asked == []

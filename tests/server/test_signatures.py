"""Verified signatures, with boto3's own signer on the other side, and a clock that can be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.client import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from stator.clock import VirtualClock
from stator.errors import ConfigurationError
from stator.model.scope import Scope
from stator.server import BackgroundServer, Credential, read_credentials

from .conftest import Serve
from .fake_engine import FakeEngine
from .wire import WireClient, WireReply, request_bytes

CORAL = "com.amazon.coral.service#"
ALICE = Credential("alice", "AKIAALICE", "111122223333", "secret-of-alice")
GUEST = Credential("guest", "AKIAGUEST", "123456789012", "secret-of-guest", "token-of-guest")
CREDENTIALS = {credential.access_key_id: credential for credential in (ALICE, GUEST)}
TARGET = "DynamoDB_20120810.DescribeTable"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(time.time())


@pytest.fixture
def server(serve: Serve, engine: FakeEngine, clock: VirtualClock) -> BackgroundServer:
    return serve(engine, credentials=CREDENTIALS, clock=clock)


def boto(server: BackgroundServer, key_id: str, secret: str, token: str | None = None) -> Any:
    return boto3.client(
        "dynamodb",
        region_name="eu-central-1",
        endpoint_url=server.url,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}),
    )


def error_of(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call()
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_the_right_secret_passes_and_names_the_account(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    boto(server, ALICE.access_key_id, ALICE.secret_access_key).list_tables(Limit=7)
    operation, body, scope = engine.calls[0]
    assert (operation, body) == ("ListTables", b'{"Limit": 7}')
    assert (scope.account, scope.region) == ("111122223333", "eu-central-1")


def test_a_wrong_secret_is_an_invalid_signature(
    server: BackgroundServer, engine: FakeEngine
) -> None:
    code, message = error_of(boto(server, ALICE.access_key_id, "guess").list_tables)
    assert code == "InvalidSignatureException"
    assert message.startswith(
        "The request signature we calculated does not match the signature you provided."
    )
    assert engine.calls == []


def test_an_unknown_key_is_an_unrecognized_client(server: BackgroundServer) -> None:
    assert error_of(boto(server, "AKIANOBODY", "guess").list_tables) == (
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    )


def test_a_session_token_must_be_the_one_on_file(server: BackgroundServer) -> None:
    invalid = (
        "UnrecognizedClientException",
        "The security token included in the request is invalid",
    )
    key = (GUEST.access_key_id, GUEST.secret_access_key)
    boto(server, *key, GUEST.session_token).list_tables()
    assert error_of(boto(server, *key, "another").list_tables) == invalid
    assert error_of(boto(server, *key).list_tables) == invalid
    assert (
        error_of(boto(server, ALICE.access_key_id, ALICE.secret_access_key, "t").list_tables)
        == invalid
    )


def test_a_presigned_request_passes_until_it_expires(
    server: BackgroundServer, clock: VirtualClock, engine: FakeEngine
) -> None:
    """botocore presigns an empty body, so that is what passes; the engine then finds it empty."""
    client = boto(server, ALICE.access_key_id, ALICE.secret_access_key)
    parts = urlsplit(
        client.generate_presigned_url("describe_table", {"TableName": "orders"}, ExpiresIn=600)
    )
    path = f"{parts.path}?{parts.query}"
    headers: dict[str, str | None] = {
        "Host": parts.netloc,
        "Authorization": None,
        "X-Amz-Date": None,
    }

    def error_type(path: str, body: str = "") -> str:
        with WireClient(server.port) as wire:
            reply = wire.ask(body, operation="DescribeTable", path=path, headers=headers)
        return str(reply.json["__type"]).removeprefix(CORAL)

    assert error_type(path) == "SerializationException"
    assert engine.calls == [("DescribeTable", b"", Scope("111122223333", "eu-central-1"))]
    assert error_type(path, "{}") == "InvalidSignatureException"
    assert (
        error_type(path.replace("X-Amz-Expires=600", "X-Amz-Expires=900"))
        == "InvalidSignatureException"
    )
    clock.advance(599)
    assert error_type(path) == "SerializationException"
    clock.advance(2)
    assert error_type(path) == "InvalidSignatureException"
    assert len(engine.calls) == 2


def signed(
    clock: VirtualClock, body: str = "{}", **changes: str | None
) -> Callable[[WireClient], WireReply]:
    """A request signed by botocore, then changed on its way."""
    request = AWSRequest(
        "POST",
        "http://localhost/",
        data=body,
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": TARGET,
            "Host": "localhost",
        },
    )
    SigV4Auth(
        Credentials(ALICE.access_key_id, ALICE.secret_access_key), "dynamodb", "eu-west-1"
    ).add_auth(request)
    headers: dict[str, str | None] = dict(request.headers.items())
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}

    def send(client: WireClient) -> WireReply:
        client.send(request_bytes(body, headers=headers))
        return client.read()

    return send


@pytest.fixture
def wire(server: BackgroundServer) -> Iterator[WireClient]:
    with WireClient(server.port) as wire:
        yield wire


def test_a_request_signed_by_botocore_passes(wire: WireClient, clock: VirtualClock) -> None:
    assert signed(clock)(wire).json == {"account": "111122223333", "region": "eu-west-1"}


@pytest.mark.parametrize(
    "changes",
    [
        {"X_Amz_Target": "DynamoDB_20120810.ListTables"},
        {"Content_Type": "application/json"},
        {"Host": "elsewhere"},
    ],
)
def test_a_change_to_what_was_signed_is_noticed(
    wire: WireClient, clock: VirtualClock, changes: dict[str, str]
) -> None:
    assert signed(clock, **changes)(wire).json["__type"] == CORAL + "InvalidSignatureException"


def test_what_was_not_signed_may_change(wire: WireClient, clock: VirtualClock) -> None:
    assert signed(clock, User_Agent="proxy/1.0")(wire).status == 200


def test_a_signature_holds_for_fifteen_minutes(wire: WireClient, clock: VirtualClock) -> None:
    send = signed(clock)
    clock.advance(14 * 60)
    assert send(wire).status == 200
    clock.advance(2 * 60)
    reply = send(wire)
    assert reply.json["__type"] == CORAL + "InvalidSignatureException"
    signed_at, rest = (
        reply.json["message"].removeprefix("Signature expired: ").split(" is now earlier than ")
    )
    assert len(signed_at) == len("20130301T000000Z")
    assert rest.endswith(" - 15 min.)")


def test_a_signature_from_the_future_is_not_yet_current(
    serve: Serve, engine: FakeEngine, clock: VirtualClock
) -> None:
    slow = VirtualClock(time.time() - 20 * 60)
    with WireClient(serve(engine, credentials=CREDENTIALS, clock=slow).port) as wire:
        message = signed(clock)(wire).json["message"]
    assert message.startswith("Signature not yet current: ")
    assert message.endswith(" + 15 min.)")


@pytest.mark.parametrize("date", ["201", "Thu, 01 Jan 2026 00:00:00 GMT", "20261301T000000Z"])
def test_a_date_in_another_form_is_an_incomplete_signature(
    wire: WireClient, clock: VirtualClock, date: str
) -> None:
    assert signed(clock, X_Amz_Date=date)(wire).json == {
        "__type": CORAL + "IncompleteSignatureException",
        "message": (
            f"Date must be in ISO-8601 'basic format'. Got '{date}'. "
            "See http://en.wikipedia.org/wiki/ISO_8601"
        ),
    }


def authorization(
    clock: VirtualClock, credential: str, signed_headers: str = "host"
) -> dict[str, str | None]:
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock.now()))
    return {
        "X-Amz-Date": moment,
        "Authorization": (
            f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed_headers}, Signature=a"
        ),
    }


def test_the_host_must_be_signed(wire: WireClient, clock: VirtualClock) -> None:
    reply = wire.ask(headers=authorization(clock, "a/b/c/d/e", "x-amz-date"))
    assert reply.json == {
        "__type": CORAL + "InvalidSignatureException",
        "message": "'Host' must be a 'SignedHeader' in the AWS Authorization.",
    }


def test_everything_wrong_with_a_scope_is_named(wire: WireClient, clock: VirtualClock) -> None:
    headers = authorization(clock, "AKIAALICE/b/!/d/e")
    moment = headers["X-Amz-Date"] or ""
    assert wire.ask(headers=headers).json["message"] == (
        "Credential should be scoped to a valid region, not '!'. "
        "Credential should be scoped to correct service: 'dynamodb'. "
        "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. "
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        f"'b' != '{moment[:8]}', from '{moment}'."
    )


def write(folder: Path, text: str) -> Path:
    path = folder / "credentials"
    path.write_text(text)
    return path


def test_a_credentials_file_is_read_profile_by_profile(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "[default]\naws_access_key_id = 999988887777\naws_secret_access_key = a%b\n"
        "[role]\nrole_arn = arn:aws:iam::1:role/x\n"
        "[bob]\naws_access_key_id=AKIABOB\naws_secret_access_key=s\naws_session_token=t\n"
        "account_id=111122223333\n",
    )
    assert read_credentials(path) == {
        "999988887777": Credential("default", "999988887777", "999988887777", "a%b"),
        "AKIABOB": Credential("bob", "AKIABOB", "111122223333", "s", "t"),
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no profile with keys"),
        ("aws_access_key_id = x", "cannot be read"),
        ("[a]\naws_access_key_id = x", "the profile a has no aws_secret_access_key"),
        ("[a]\naws_secret_access_key = x", "the profile a has no aws_access_key_id"),
        (
            "[a]\naws_access_key_id = x\naws_secret_access_key = y\naccount_id = 12",
            "the account id '12' of the profile a is not valid",
        ),
        (
            (
                "[a]\naws_access_key_id = x\naws_secret_access_key = y\n"
                "[b]\naws_access_key_id = x\naws_secret_access_key = z"
            ),
            "the profiles a and b have the same aws_access_key_id",
        ),
    ],
)
def test_a_credentials_file_with_a_mistake_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        read_credentials(write(tmp_path, text))


def test_secrets_do_not_show_when_printed() -> None:
    assert "secret" not in repr(ALICE)
    assert "token-of" not in repr(GUEST)

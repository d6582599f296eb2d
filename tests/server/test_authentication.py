"""The form of the authorization is checked always; the texts are AWS's."""

from __future__ import annotations

import pytest

from .fake_engine import FakeEngine
from .wire import AUTHORIZATION, WireClient

CORAL = "com.amazon.coral.service#"
NO_CREDENTIAL = "Authorization header requires 'Credential' parameter. "
NO_SIGNATURE = "Authorization header requires 'Signature' parameter. "
NO_SIGNED_HEADERS = "Authorization header requires 'SignedHeaders' parameter. "
NO_DATE = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "


@pytest.mark.parametrize("header", [None, "AWS4", "Bearer token", "Basic YTpi"])
def test_without_a_signature_the_token_is_missing(client: WireClient, header: str | None) -> None:
    reply = client.ask(headers={"Authorization": header})
    assert reply.status == 400
    assert reply.json == {
        "__type": CORAL + "MissingAuthenticationTokenException",
        "message": "Request is missing Authentication Token",
    }


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("AWS4-", NO_CREDENTIAL + NO_SIGNATURE + NO_SIGNED_HEADERS),
        ("AWS4-HMAC-SHA256 Credential=a", NO_SIGNATURE + NO_SIGNED_HEADERS),
        ("AWS4-HMAC-SHA256 Credential=a, Signature=b", NO_SIGNED_HEADERS),
        ("AWS4-HMAC-SHA256 Signature=b,SignedHeaders=c", NO_CREDENTIAL),
        ("AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=c, Signature=", NO_SIGNATURE),
    ],
)
def test_every_missing_part_is_named(client: WireClient, header: str, missing: str) -> None:
    reply = client.ask(headers={"Authorization": header})
    assert reply.status == 400
    assert reply.json == {
        "__type": CORAL + "IncompleteSignatureException",
        "message": f"{missing}Authorization={header}",
    }


def test_the_checksum_of_an_incomplete_signature_is_that_of_aws(client: WireClient) -> None:
    headers: dict[str, str | None] = {"Authorization": "AWS4-", "X-Amz-Date": None}
    reply = client.ask(headers=headers)
    assert reply.json["message"].startswith(
        NO_CREDENTIAL + NO_SIGNATURE + NO_SIGNED_HEADERS + NO_DATE
    )
    assert reply.headers["x-amz-crc32"] == "1828866742"


def test_a_date_is_needed_even_by_a_caller_who_is_known(client: WireClient) -> None:
    assert client.ask().status == 200
    reply = client.ask(headers={"X-Amz-Date": None})
    assert reply.json["message"] == f"{NO_DATE}Authorization={AUTHORIZATION}"
    assert client.ask(headers={"X-Amz-Date": None, "Date": "20260101T000000Z"}).status == 200


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders",
            (
                "'Credential' not a valid key=value pair (missing equal-sign) in Authorization "
                "header: "
                "'AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders'."
            ),
        ),
        (
            AUTHORIZATION.replace("SHA256", "SHA25"),
            "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA25' (only AWS4-HMAC-SHA256 for now). ",
        ),
        (
            "AWS4-HMAC-SHA256 Credential=a/b/c/d, SignedHeaders=host, Signature=b",
            (
                "Credential must have exactly 5 slash-delimited elements, "
                "e.g. keyid/date/region/service/term, "
                "got 'a/b/c/d'"
            ),
        ),
    ],
)
def test_a_malformed_header_is_an_incomplete_signature(
    client: WireClient, header: str, message: str
) -> None:
    reply = client.ask(headers={"Authorization": header})
    assert reply.json == {"__type": CORAL + "IncompleteSignatureException", "message": message}


QUERY = {
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": "AKID%2F20260101%2Feu-west-1%2Fdynamodb%2Faws4_request",
    "X-Amz-Signature": "abc",
    "X-Amz-SignedHeaders": "host",
    "X-Amz-Date": "20260101T000000Z",
}


PRESIGNED = "/?" + "&".join(f"{name}={value}" for name, value in QUERY.items())


def test_a_presigned_request_names_its_region(client: WireClient) -> None:
    reply = client.ask(operation="DescribeTable", path=PRESIGNED, headers={"Authorization": None})
    assert reply.json == {"account": "123456789012", "region": "eu-west-1"}


def test_every_missing_query_parameter_is_named(client: WireClient) -> None:
    reply = client.ask(path="/?X-Amz-Algorithm=&X-Amz-Signature=a", headers={"Authorization": None})
    missing = ("X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-SignedHeaders", "X-Amz-Date")
    assert reply.json == {
        "__type": CORAL + "IncompleteSignatureException",
        "message": "".join(
            f"AWS query-string parameters must include '{name}'. " for name in missing
        )
        + "Re-examine the query-string parameters.",
    }


def test_header_and_query_exclude_each_other(client: WireClient) -> None:
    reply = client.ask(path=PRESIGNED)
    assert reply.json == {
        "__type": CORAL + "InvalidSignatureException",
        "message": (
            "Found both 'X-Amz-Algorithm' as a query-string param "
            "and 'Authorization' as HTTP header."
        ),
    }


def test_a_query_string_of_another_kind_does_not_matter(client: WireClient) -> None:
    assert client.ask(path="/?a=b").status == 200


@pytest.mark.parametrize(
    ("key_id", "region", "account"),
    [
        ("AKIAIOSFODNN7EXAMPLE", "us-east-1", "123456789012"),
        ("111122223333", "ap-southeast-2", "111122223333"),
        ("1111222233334", "local", "123456789012"),
    ],
)
def test_the_scope_comes_from_the_credential(
    client: WireClient, engine: FakeEngine, key_id: str, region: str, account: str
) -> None:
    header = AUTHORIZATION.replace("AKID", key_id).replace("us-east-1", region)
    for _ in range(2):  # the second time it is remembered
        reply = client.ask(operation="DescribeTable", headers={"Authorization": header})
        assert reply.json == {"account": account, "region": region}


def test_a_remembered_caller_does_not_excuse_a_malformed_header(client: WireClient) -> None:
    assert client.ask().status == 200
    reply = client.ask(headers={"Authorization": AUTHORIZATION + ", nonsense"})
    assert reply.json["__type"] == CORAL + "IncompleteSignatureException"

"""Signatures are AWS's: botocore's own signer and a server that verifies them agree."""

from __future__ import annotations

import json
import string
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from stator.client.credentials import Credentials
from stator.client.signer import Signer

TEXT = st.text(string.ascii_letters + string.digits + "/+=", min_size=1, max_size=60)


def botocore_authorization(
    url: str, body: bytes, target: str, credentials: Credentials, region: str, now: float
) -> str:
    import botocore.auth
    import botocore.credentials
    from botocore.awsrequest import AWSRequest

    request = AWSRequest("POST", url, data=body)
    request.headers["Content-Type"] = "application/x-amz-json-1.0"
    request.headers["X-Amz-Target"] = target
    held = botocore.credentials.Credentials(
        credentials.access_key, credentials.secret_key, credentials.token
    )
    moment = datetime.fromtimestamp(now, UTC).replace(tzinfo=None)
    with mock.patch("botocore.auth.get_current_datetime", return_value=moment):
        botocore.auth.SigV4Auth(held, "dynamodb", region).add_auth(request)
    return str(request.headers["Authorization"])


def signed(head: str) -> str:
    return next(
        line for line in head.split("\r\n") if line.startswith("Authorization: ")
    ).partition(": ")[2]


@given(TEXT, TEXT, st.none() | TEXT, st.binary(max_size=200), st.integers(0, 4_000_000_000))
def test_signatures_are_botocores(
    access: str, secret: str, token: str | None, body: bytes, now: int
) -> None:
    credentials = Credentials(access.replace("/", ""), secret, token)
    signer = Signer("localhost:8000", "/", "eu-west-1")
    for target in ("DynamoDB_20120810.GetItem", "DynamoDBStreams_20120810.GetRecords"):
        ours = signed(signer.head(target, body, credentials, float(now)))
        theirs = botocore_authorization(
            "http://localhost:8000/", body, target, credentials, "eu-west-1", float(now)
        )
        assert ours == theirs


def test_a_server_that_verifies_signatures_believes_ours(tmp_path: Any) -> None:
    import subprocess
    import sys
    from pathlib import Path

    import pytest

    from stator import connect
    from stator.errors import StatorError
    from tests.tables.shop import Product, shop

    known = tmp_path / "credentials"
    known.write_text(
        "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = the/secret+key\n"
    )
    command = [
        str(Path(sys.executable).with_name("stator")),
        "serve",
        "--port",
        "0",
        "--memory",
        "--json",
    ]
    with subprocess.Popen(
        [*command, "--credentials", str(known)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            db = connect(
                shop(),
                url,
                access_key_id="AKIDEXAMPLE",
                secret_access_key="the/secret+key",
                region="eu-west-1",
            )
            db.ensure()
            db.put(Product(sku="s1", stock=1))
            assert db.get(Product, sku="s1") == Product(sku="s1", stock=1)
            db.close()
            wrong = connect(
                shop(),
                url,
                access_key_id="AKIDEXAMPLE",
                secret_access_key="another",
                region="eu-west-1",
            )
            with pytest.raises(StatorError, match="signature"):
                wrong.get(Product, sku="s1")
            wrong.close()
        finally:
            process.kill()

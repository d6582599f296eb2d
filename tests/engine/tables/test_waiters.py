"""boto3's own waiters and parsers on the engine's answers: the client's requests are handed to it
in process.
"""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from stator.engine import Engine
from stator.model.scope import Scope


class _Body(io.BytesIO):
    def stream(self, **_: Any) -> list[bytes]:
        return [self.read()]


def client_of(engine: Engine) -> Any:
    client = boto3.client(
        "dynamodb", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )

    def answer(request: Any, **_: Any) -> AWSResponse:
        target = request.headers["X-Amz-Target"]
        name = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
        reply = engine.submit(name, request.body, Scope())
        return AWSResponse(request.url, reply.status, {}, _Body(reply.body))

    client.meta.events.register("before-send.dynamodb", answer)
    return client


def test_waiters_see_a_table_come_and_go(engine: Engine) -> None:
    client = client_of(engine)
    client.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(
        TableName="orders", WaiterConfig={"Delay": 0, "MaxAttempts": 2}
    )
    table = client.describe_table(TableName="orders")["Table"]
    assert isinstance(table["CreationDateTime"], datetime)
    assert isinstance(table["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"], datetime)
    client.delete_table(TableName="orders")
    client.get_waiter("table_not_exists").wait(
        TableName="orders", WaiterConfig={"Delay": 0, "MaxAttempts": 2}
    )
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName="orders")


def test_errors_are_boto3s_own_classes(engine: Engine) -> None:
    client = client_of(engine)
    with pytest.raises(ClientError, match="KeySchema") as caught:
        client.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    assert caught.value.response["Error"]["Code"] == "ValidationException"

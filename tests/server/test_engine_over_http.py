"""The real engine behind the server, as boto3 sees it, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import Config
from botocore.exceptions import ClientError

from stator.engine import Engine
from stator.server import BackgroundServer

from .wire import WireClient, request_bytes

KEY = {"KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}
ATTRIBUTES = {"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}
ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


@pytest.fixture(params=["memory", "disk"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BackgroundServer]:
    engine = Engine.open(None if request.param == "memory" else str(tmp_path / "data"))
    with BackgroundServer(engine) as server:
        yield server
    engine.close()


def boto(server: BackgroundServer, key_id: str = "local", region: str = "us-east-1") -> Any:
    return boto3.client(
        "dynamodb",
        region_name=region,
        endpoint_url=server.url,
        aws_access_key_id=key_id,
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_items_written_through_boto3_are_read_back(server: BackgroundServer) -> None:
    client = boto(server)
    client.create_table(TableName="orders", **KEY, **ATTRIBUTES, **ON_DEMAND)
    client.get_waiter("table_exists").wait(TableName="orders", WaiterConfig={"Delay": 1})
    item = {"pk": {"S": "a"}, "total": {"N": "12.5"}, "raw": {"B": b"\x00\xff"}}
    client.put_item(TableName="orders", Item=item)
    assert client.get_item(TableName="orders", Key={"pk": {"S": "a"}})["Item"] == item
    assert client.scan(TableName="orders")["Count"] == 1


def test_errors_of_the_engine_reach_boto3(server: BackgroundServer) -> None:
    client = boto(server)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName="missing")
    with pytest.raises(ClientError) as caught:
        client.create_table(TableName="x", **KEY, **ATTRIBUTES, **ON_DEMAND)
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_accounts_and_regions_do_not_see_each_others_tables(server: BackgroundServer) -> None:
    boto(server, "111122223333").create_table(TableName="mine", **KEY, **ATTRIBUTES, **ON_DEMAND)
    assert boto(server, "111122223333").list_tables()["TableNames"] == ["mine"]
    assert boto(server, "444455556666").list_tables()["TableNames"] == []
    assert boto(server, "111122223333", "eu-west-1").list_tables()["TableNames"] == []


def test_pipelined_writes_are_answered_in_order(server: BackgroundServer) -> None:
    boto(server).create_table(TableName="orders", **KEY, **ATTRIBUTES, **ON_DEMAND)
    put = '{"TableName":"orders","Item":{"pk":{"S":"a"},"n":{"N":"%d"}},"ReturnValues":"ALL_OLD"}'
    with WireClient(server.port) as wire:
        wire.send(b"".join(request_bytes(put % n, operation="PutItem") for n in range(200)))
        replies = [wire.read().json for _ in range(200)]
    assert replies[0] == {}
    assert [reply["Attributes"]["n"]["N"] for reply in replies[1:]] == [str(n) for n in range(199)]


def test_a_body_that_is_not_json_is_a_serialization_error(server: BackgroundServer) -> None:
    with WireClient(server.port) as wire:
        for body in (b"", b"hi", b"\xff"):
            reply = wire.ask(body, operation="ListTables")
            assert (reply.status, reply.json) == (
                400,
                {"__type": "com.amazon.coral.service#SerializationException"},
            )


def test_describe_endpoints_names_the_address_that_was_called(server: BackgroundServer) -> None:
    [endpoint] = boto(server).describe_endpoints()["Endpoints"]
    assert endpoint["Address"] == server.url.removeprefix("http://")

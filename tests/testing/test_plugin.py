"""The pytest plugin and the wiring of boto3, as a user's own tests see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from stator import AsyncDb, Db, Design, Entity, ident, ttl
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.testing import boto3_client, boto3_session, wire


def create(client: Any, name: str = "tests") -> None:
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_has_an_engine_of_its_own(dynamodb_client: Any, turn: int) -> None:
    assert dynamodb_client.list_tables()["TableNames"] == []
    create(dynamodb_client)


def test_client_and_resource_share_the_test_s_engine(
    dynamodb_client: Any, dynamodb_resource: Any, stator_engine: Engine
) -> None:
    create(dynamodb_client)
    dynamodb_resource.Table("tests").put_item(Item={"id": "a", "data": b"\x00\xff"})
    assert stator_engine.call("GetItem", {"TableName": "tests", "Key": {"id": {"S": "a"}}})["Item"][
        "data"
    ] == {"B": "AP8="}
    assert dynamodb_client.get_item(TableName="tests", Key={"id": {"S": "a"}})["Item"]["data"] == {
        "B": b"\x00\xff"
    }


def test_errors_are_botocore_s_own(dynamodb_client: Any) -> None:
    with pytest.raises(dynamodb_client.exceptions.ResourceNotFoundException):
        dynamodb_client.describe_table(TableName="absent")
    with pytest.raises(ClientError) as caught:
        dynamodb_client.put_item(TableName="absent", Item={"id": {"NULL": False}})
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_waiters_and_paginators_work(dynamodb_client: Any) -> None:
    for number in range(5):
        create(dynamodb_client, f"table-{number}")
        dynamodb_client.get_waiter("table_exists").wait(TableName=f"table-{number}")
    pages = dynamodb_client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 2})
    assert [name for page in pages for name in page["TableNames"]] == [
        f"table-{number}" for number in range(5)
    ]


def test_a_wired_session_keeps_its_region_and_account() -> None:
    with Engine.open() as engine:
        session = boto3.Session(
            aws_access_key_id="x", aws_secret_access_key="x", region_name="eu-west-1"
        )
        wire(session, engine, account="111122223333")
        client = session.client("dynamodb")
        create(client)
        arn = client.describe_table(TableName="tests")["Table"]["TableArn"]
        assert arn == "arn:aws:dynamodb:eu-west-1:111122223333:table/tests"
        assert boto3_client(engine).list_tables()["TableNames"] == []
        assert boto3_session(engine, region_name="eu-west-1", account="111122223333").client(
            "dynamodb"
        ).list_tables()["TableNames"] == ["tests"]


def test_sessions_share_models_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open() as one, Engine.open() as other:
        first, second = boto3_session(one), boto3_session(other)
        refused: list[str] = []
        first.events.register(
            "before-parameter-build.dynamodb.ListTables", lambda **_: refused.append("first")
        )
        create(first.client("dynamodb"))
        assert second.client("dynamodb").list_tables()["TableNames"] == [] and refused == []
        assert first.client("dynamodb").list_tables()["TableNames"] == ["tests"]
        assert refused == ["first"]
        assert "dynamodb" in first.get_available_resources()
        # Models in a folder of the user's own are still found, and only where it is named.
        model = tmp_path / "shopdb" / "2026-01-01" / "service-2.json"
        model.parent.mkdir(parents=True)
        model.write_text('{"metadata": {}, "operations": {}, "shapes": {}}')
        monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
        assert "shopdb" in boto3_session(one).get_available_services()
        assert "shopdb" not in second.get_available_services()


def test_status_lasts_as_long_as_asked() -> None:
    clock = VirtualClock()
    with Engine.open(clock=clock, status_delay_seconds=10) as engine:
        client = boto3_client(engine)
        create(client)
        assert client.describe_table(TableName="tests")["Table"]["TableStatus"] == "CREATING"
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.get_item(TableName="tests", Key={"id": {"S": "a"}})
        clock.advance(10)
        assert client.describe_table(TableName="tests")["Table"]["TableStatus"] == "ACTIVE"
        client.delete_table(TableName="tests")
        assert client.describe_table(TableName="tests")["Table"]["TableStatus"] == "DELETING"
        clock.advance(10)
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.describe_table(TableName="tests")


class Session(Entity):
    session_id: str = ident()
    expires: datetime | None = ttl(hours=1, default=None)


DESIGN = Design("sessions", [Session])


def test_a_design_is_connected_to_the_engine_and_its_clock(
    stator_connect: Callable[..., Db], stator_clock: VirtualClock
) -> None:
    db = stator_connect(DESIGN)
    db.create(Session(session_id="s1"))
    assert db.exists(Session, session_id="s1")
    stator_clock.advance(3601)
    assert not db.exists(Session, session_id="s1")


def test_a_design_is_connected_for_asyncio(stator_connect_async: Callable[..., AsyncDb]) -> None:
    db = stator_connect_async(DESIGN)
    asyncio.run(db.create(Session(session_id="s1")))
    assert asyncio.run(db.get(Session, session_id="s1")) is not None

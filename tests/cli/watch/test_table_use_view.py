"""The tables of ``stator top --tables``, from a server that has DynamoDB and CloudWatch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer
from rich.console import Console

from stator import Design, Entity, ident
from stator.cli.live_tables import AwsClients
from stator.cli.watch.table_use_view import LiveUse, TablesNow, shown_tables, use_table
from stator.errors import ConfigurationError
from stator.ops.live.hot_keys import HottestKey, InsightsSwitch, KeysNow
from stator.ops.live.table_use import PlaceUse

from ..serving import Serving


class Order(Entity):
    order_id: str = ident()


SHOP = Design("shop", [Order])


def printed(places: list[PlaceUse]) -> str:
    console = Console(width=120, record=True, file=None, no_color=True)
    with console.capture() as captured:
        console.print(use_table(places))
    return captured.get()


def test_units_are_shown_against_the_capacity_and_throttles_by_reason() -> None:
    text = printed(
        [
            PlaceUse("shop", None, 12.34, 5.0, 100, 50, {"write hot key": 1200}, 0.0455),
            PlaceUse("shop", "GSI1", 1.0, 0.0, None, None, {}, 0.01),
        ]
    )
    assert "tables: $0.0555 an hour" in text
    assert "12.3 of 100" in text and "1,200 write hot key" in text
    assert "shop/GSI1" in text and " 1.0 " in text


def test_the_use_is_read_at_the_address_of_the_tables() -> None:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        keys: dict[str, Any] = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
        where = {"region_name": "us-east-1", "endpoint_url": address}
        dynamodb = boto3.client("dynamodb", **where, **keys)
        for request in SHOP.plan().create_table_requests():
            dynamodb.create_table(**{**request, "TableName": f"prod-{request['TableName']}"})
        cloudwatch = boto3.client("cloudwatch", **where, **keys)
        cloudwatch.put_metric_data(
            Namespace="AWS/DynamoDB",
            MetricData=[
                {
                    "MetricName": "ConsumedWriteCapacityUnits",
                    "Dimensions": [{"Name": "TableName", "Value": "prod-shop"}],
                    "Timestamp": datetime.now(UTC) - timedelta(minutes=4),
                    "Value": 300,
                }
            ],
        )
        with LiveUse(SHOP, address, "prod-") as live:
            [use] = live.look().places
        dynamodb.close()
        cloudwatch.close()
    finally:
        server.stop()
    assert (use.table, use.write_units) == ("prod-shop", 1.0)


def test_a_folder_has_no_cloudwatch() -> None:
    with pytest.raises(ConfigurationError, match=r"which ./data does not have"):
        LiveUse(SHOP, "./data", "")


def test_stator_serve_answers_for_its_tables() -> None:
    with Serving() as server:
        address = str(server.facts["url"])
        dynamodb = AwsClients(address).client("dynamodb")
        for request in SHOP.plan().create_table_requests():
            dynamodb.create_table(**request)
        dynamodb.close()
        with LiveUse(SHOP, address, "") as live:
            found = live.look()
            places = found.places
    assert {place.table for place in places} == {"shop"}
    assert all(place.throttles == {} and place.dollars_an_hour >= 0 for place in places)
    assert [each.table for each in found.hottest.switches] == ["shop"]


def test_hottest_keys_are_shown_and_how_to_turn_them_on() -> None:
    hottest = KeysNow(
        (HottestKey("shop", "GSI1", "[red]a", 250.0, 0.25, 7),),
        (InsightsSwitch("shop", None, "aws dynamodb update-contributor-insights"),),
    )
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(shown_tables(TablesNow((), hottest)))
        console.print(shown_tables(TablesNow((), KeysNow((), (), "access denied"))))
    text = captured.get()
    assert "shop/GSI1" in text and "[red]a" in text and "25%" in text and "250.0" in text
    assert "is off for shop. On with:\n  aws dynamodb update-contributor-insights" in text
    assert "hottest keys cannot be read: access denied" in text

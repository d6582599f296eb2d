"""A shop in one DynamoDB table, on Stator's embedded engine, through plain boto3.

It starts ``stator serve`` on a folder, creates the table, runs every access pattern, kills the server without warning,
starts it again on the same folder, and shows that everything is still there. Nothing in the shop itself knows that
it is not talking to AWS: give it another ``endpoint_url``, or none, and it runs there.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
from boto3.dynamodb.conditions import Attr, Key
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

console = Console()

ACCESS_PATTERNS = (
    ("profile of a user", "GetItem", "PK = USER#<id>, SK = PROFILE"),
    ("user by e-mail address", "Query GSI1", "GSI1PK = EMAIL#<address>"),
    ("a user's orders, newest first", "Query", "PK = USER#<id>, SK begins with ORDER#"),
    ("an order with its items", "Query", "PK = ORDER#<id>"),
    ("orders in a status, by time", "Query GSI2", "GSI2PK = STATUS#<status>"),
    ("reviews of a product", "Query", "PK = PRODUCT#<id>, SK begins with REVIEW#"),
)


@contextmanager
def stator_server(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """A server on ``folder`` and a boto3 resource that talks to it."""
    command = [str(Path(sys.executable).with_name("stator")), "serve", "--port", "0", "--data", str(folder), "--json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["url"]
        console.print(
            f"[dim]stator serve --data {folder.name} listens on {address} ({time.perf_counter() - started:.2f} s)[/]"
        )
        yield (
            process,
            boto3.resource(
                "dynamodb",
                endpoint_url=address,
                region_name="us-east-1",
                aws_access_key_id="demo",
                aws_secret_access_key="demo",
            ),
        )
    finally:
        process.kill()
        process.wait()


def create_table(dynamodb: Any) -> Any:
    names = ("PK", "SK", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
    table = dynamodb.create_table(
        TableName="shop",
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": f"{index}PK", "KeyType": "HASH"},
                    {"AttributeName": f"{index}SK", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index in ("GSI1", "GSI2")
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    table.wait_until_exists()
    return table


def fill(table: Any) -> int:
    """Users, products with reviews, and orders with their items."""
    items: list[dict[str, Any]] = []
    for number, name in enumerate(("Anna", "Ben", "Chloe"), 1):
        email = f"{name.lower()}@example.com"
        items.append(
            {
                "PK": f"USER#{number}",
                "SK": "PROFILE",
                "GSI1PK": f"EMAIL#{email}",
                "GSI1SK": f"USER#{number}",
                "name": name,
                "email": email,
            }
        )
    for number, (name, price) in enumerate((("Lamp", "39.90"), ("Desk", "249.00"), ("Chair", "89.50")), 1):
        items.append({"PK": f"PRODUCT#{number}", "SK": "METADATA", "name": name, "price": Decimal(price), "stock": 10})
        items += [
            {"PK": f"PRODUCT#{number}", "SK": f"REVIEW#{user}", "stars": 3 + (number + user) % 3} for user in (1, 2)
        ]
    for number in range(1, 7):
        items += order(number, user=1 + number % 3, products=(1, 1 + number % 3))
    with table.batch_writer(overwrite_by_pkeys=["PK", "SK"]) as batch:
        for item in items:
            batch.put_item(Item=item)
    return len({(item["PK"], item["SK"]) for item in items})


def order(number: int, user: int, products: tuple[int, ...]) -> list[dict[str, Any]]:
    placed = f"2026-11-{number:02d}T10:00:00Z"
    head = {
        "PK": f"ORDER#{number}",
        "SK": "METADATA",
        "GSI2PK": "STATUS#PENDING",
        "GSI2SK": placed,
        "user": user,
        "status": "PENDING",
        "total": Decimal("10.00") * number,
    }
    entry = {"PK": f"USER#{user}", "SK": f"ORDER#{placed}", "order": number, "total": head["total"]}
    lines = [{"PK": f"ORDER#{number}", "SK": f"ITEM#{p}", "product": p, "quantity": 1} for p in products]
    return [head, entry, *lines]


def buy(dynamodb: Any, order_number: int, product: int) -> str:
    """Ship an order and take its item from stock, both or neither."""
    client = dynamodb.meta.client
    try:
        client.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": "shop",
                        "Key": {"PK": f"PRODUCT#{product}", "SK": "METADATA"},
                        "UpdateExpression": "SET stock = stock - :n",
                        "ConditionExpression": "stock >= :n",
                        "ExpressionAttributeValues": {":n": 6},
                    }
                },
                {
                    "Update": {
                        "TableName": "shop",
                        "Key": {"PK": f"ORDER#{order_number}", "SK": "METADATA"},
                        "UpdateExpression": "SET #s = :shipped, GSI2PK = :key",
                        "ExpressionAttributeNames": {"#s": "status"},
                        "ExpressionAttributeValues": {":shipped": "SHIPPED", ":key": "STATUS#SHIPPED"},
                    }
                },
            ]
        )
    except client.exceptions.TransactionCanceledException as error:
        codes = [reason["Code"] for reason in error.response["CancellationReasons"]]
        return f"order {order_number}: refused as a whole, {codes}"
    return f"order {order_number}: shipped, six of product {product} taken from stock"


def ask_everything(table: Any) -> Table:
    """Every access pattern once, with what it returned and what it cost."""
    shown = Table(title="Access patterns", title_justify="left", expand=True, show_lines=True)
    for column in ("asked", "operation", "answer"):
        shown.add_column(column)
    shown.add_column("RCU", justify="right")
    answers = (
        _get(table, {"PK": "USER#1", "SK": "PROFILE"}),
        _query(table, Key("GSI1PK").eq("EMAIL#ben@example.com"), IndexName="GSI1"),
        _query(table, Key("PK").eq("USER#2") & Key("SK").begins_with("ORDER#"), ScanIndexForward=False),
        _query(table, Key("PK").eq("ORDER#4")),
        _query(table, Key("GSI2PK").eq("STATUS#PENDING"), IndexName="GSI2"),
        _query(
            table, Key("PK").eq("PRODUCT#1") & Key("SK").begins_with("REVIEW#"), FilterExpression=Attr("stars").gte(3)
        ),
    )
    for (asked, operation, keys), (answer, units) in zip(ACCESS_PATTERNS, answers):
        shown.add_row(f"{asked}\n[dim]{keys}[/]", operation, answer, f"{units:g}")
    return shown


def _get(table: Any, key: dict[str, str]) -> tuple[str, float]:
    reply = table.get_item(Key=key, ReturnConsumedCapacity="TOTAL")
    return _line(reply["Item"]), reply["ConsumedCapacity"]["CapacityUnits"]


def _query(table: Any, condition: Any, **options: Any) -> tuple[str, float]:
    reply = table.query(KeyConditionExpression=condition, ReturnConsumedCapacity="TOTAL", **options)
    lines = [_line(item) for item in reply["Items"]]
    return "\n".join(lines), reply["ConsumedCapacity"]["CapacityUnits"]


def _line(item: dict[str, Any]) -> str:
    hidden = ("GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
    return " ".join(f"[cyan]{name}[/]={value}" for name, value in sorted(item.items()) if name not in hidden)


def everything(table: Any) -> list[dict[str, Any]]:
    found = table.scan()["Items"]
    return sorted(found, key=lambda item: (item["PK"], item["SK"]))


def main() -> None:
    console.print(Panel("A shop in one DynamoDB table, with no AWS account", style="bold"))
    folder = Path(tempfile.mkdtemp(prefix="stator-demo-"))
    try:
        with stator_server(folder / "data") as (process, dynamodb):
            table = create_table(dynamodb)
            console.print(f"table [bold]shop[/] created; {fill(table)} items written")
            for number in (1, 2):
                console.print(f"transaction: {buy(dynamodb, number, product=1)}")
            console.print(ask_everything(table))
            before = everything(table)
            process.send_signal(signal.SIGKILL)
            process.wait()
            console.print(f"[bold red]kill -9[/] on process {process.pid}, which held {len(before)} items")
        with stator_server(folder / "data") as (_, dynamodb):
            after = everything(dynamodb.Table("shop"))
            if after != before:
                console.print("[bold red]the data changed across the restart[/]")
                sys.exit(1)
            described = dynamodb.meta.client.describe_table(TableName="shop")["Table"]
            console.print(
                f"[bold green]all {len(after)} items are there again[/]; DescribeTable counts {described['ItemCount']} items, "
                f"{described['TableSizeBytes']} bytes, indexes "
                + ", ".join(f"{i['IndexName']} {i['ItemCount']}" for i in described["GlobalSecondaryIndexes"])
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(
        "\ntry it: [bold].venv/bin/stator serve[/], then [bold]aws dynamodb list-tables --endpoint-url http://localhost:8000[/]"
    )


if __name__ == "__main__":
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    main()

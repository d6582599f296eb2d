"""A shop that survives ``kill -9``: a server, a design, and a check of what is left.

The program plans the design of ``ecommerce.py``, starts ``stator serve`` on a folder, creates the
table and fills it. It runs the patterns through the typed data layer and sells until the stock is
gone. Then it kills the server without warning, starts it again, and shows that everything is still
there: through the data layer and through plain boto3.

python examples/shop_demo.py
"""

from __future__ import annotations

import json
import os
import random
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
from ecommerce import (
    Line,
    Order,
    Product,
    Review,
    User,
    buy,
    order_with_lines,
    orders_of_user,
    product,
    reviews_of,
    shop,
    user_by_email,
)
from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from stator import Db, connect
from stator.errors import TransactionFailed, UniqueTaken
from stator.patterns import Counter

console = Console()
CREDENTIALS: dict[str, Any] = {
    "access_key_id": "demo",
    "secret_access_key": "demo",
    "region": "us-east-1",
}
USERS, ORDERS = 200, 2_000


@contextmanager
def stator_server(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Runs a server on ``folder``; yields the process and its address."""
    command = [
        str(Path(sys.executable).with_name("stator")),
        "serve",
        "--port",
        "0",
        "--data",
        str(folder),
        "--json",
    ]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["url"]
            console.print(
                f"[dim]stator serve --data {folder.name} listens on {address} "
                f"({time.perf_counter() - started:.2f} s)[/]"
            )
            yield process, address
        finally:
            process.kill()


def show_plan() -> None:
    """Print the plan of each access pattern."""
    plan = shop.plan()
    table = Table(title="access patterns and their plans", title_justify="left")
    for heading in ("pattern", "request", "key", "a month"):
        table.add_column(heading, overflow="fold")
    for each in plan.patterns:
        if each.kind == "read":
            where = f"{each.operation} {each.index or ''}".strip()
            table.add_row(each.name, where, each.key_condition, f"${each.dollars_per_month:,.2f}")
    console.print(table)
    [planned] = plan.tables
    console.print(
        f"one table, {len(planned.indexes)} indexes, "
        f"[bold]${plan.dollars_per_month:,.2f}[/] a month on demand\n"
    )


def fill(db: Db) -> None:
    chance = random.Random(7)
    products = [
        Product(
            product_id=f"p{n}", name=f"Thing {n}", price=Decimal(chance.randint(5, 200)), stock=10
        )
        for n in range(50)
    ]
    reviews = [
        Review(product_id=f"p{n % 50}", user_id=f"u{n}", stars=chance.randint(1, 5))
        for n in range(USERS)
    ]
    orders, lines = [], []
    for n in range(ORDERS):
        bought = chance.sample(products, 3)
        orders.append(
            Order(
                order_id=f"o{n}",
                user_id=f"u{n % USERS}",
                total=sum((p.price for p in bought), Decimal(0)),
            )
        )
        lines += [
            Line(order_id=f"o{n}", product_id=p.product_id, name=p.name, price=p.price, quantity=1)
            for p in bought
        ]
    started = time.perf_counter()
    result = db.write_many([*products, *reviews, *orders, *lines])
    seconds = time.perf_counter() - started
    console.print(
        f"{result.written:,} items written in {result.requests} requests, "
        f"{result.written / seconds:,.0f} per second, all durable"
    )
    for n in range(20):
        db.create(User(user_id=f"u{n}", email=f"u{n}@example.com", name=f"User {n}"))


def ask(db: Db) -> None:
    answers = Table(
        title="patterns run through the typed data layer", title_justify="left", show_header=False
    )
    answers.add_row("user_by_email", str(db.first(user_by_email("u7@example.com"))))
    answers.add_row(
        "orders_of_user, 2 per page",
        "\n".join(
            f"{each.order_id} {each.total}" for each in db.page(orders_of_user("u7"), limit=2)
        ),
    )
    answers.add_row(
        "order_with_lines",
        "\n".join(
            f"{type(each).__name__}: {getattr(each, 'name', each)}"
            for each in list(db.fetch(order_with_lines("o7")))[:3]
        ),
    )
    answers.add_row("reviews_of, counted", str(db.count(reviews_of("p7"))))
    answers.add_row("product", str(db.first(product("p7"))))
    console.print(answers)


def sell_out(db: Db) -> None:
    """Ten are in stock; the eleventh order is refused, and nothing of it is written."""
    sold = 0
    try:
        while True:
            buy(db, f"sale{sold}", "u1", {"p1": 1})
            sold += 1
    except TransactionFailed as failed:
        console.print(f"{sold} sold; then refused: [yellow]{failed}[/]")
    try:
        db.create(User(user_id="impostor", email="u1@example.com", name="Not u1"))
    except UniqueTaken as taken:
        console.print(f"refused: [yellow]{taken}[/]")


def state(db: Db) -> tuple[int, int | None, int]:
    left = db.get(Product, product_id="p1", consistent=True)
    return (
        sum(1 for _ in db.scan(Order, allow=True, segments=4)),
        left.stock if left else None,
        Counter(db, "sales").value(),
    )


def boto3_count(address: str) -> int:
    session = boto3.Session(
        aws_access_key_id="demo", aws_secret_access_key="demo", region_name="us-east-1"
    )
    table: Any = session.resource("dynamodb", endpoint_url=address).Table("shop")
    return int(table.item_count)


def main() -> None:
    console.print(
        Panel("A shop on DynamoDB, from its access patterns, with no AWS account", style="bold")
    )
    show_plan()
    folder = Path(tempfile.mkdtemp(prefix="stator-demo-"))
    try:
        with (
            stator_server(folder / "data") as (process, address),
            connect(shop, address, **CREDENTIALS) as db,
        ):
            console.print(", ".join(db.ensure()))
            fill(db)
            ask(db)
            sell_out(db)
            Counter(db, "sales").add(10)
            before = state(db)
            process.send_signal(signal.SIGKILL)
            process.wait()
            console.print(
                f"[bold red]kill -9[/] on process {process.pid}, which held {before[0]:,} orders"
            )
        with (
            stator_server(folder / "data") as (_, address),
            connect(shop, address, **CREDENTIALS) as db,
        ):
            if state(db) != before:
                console.print("[bold red]the data changed across the restart[/]")
                sys.exit(1)
            console.print(
                f"[bold green]everything is still there[/]: {before[0]:,} orders, "
                f"stock of p1 {before[1]}, sales counter {before[2]}; "
                f"boto3 counts {boto3_count(address):,} items in the table"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(
        "\nnext: [bold].venv/bin/stator new shop[/], [bold].venv/bin/stator serve[/], "
        "and docs/guides/data.md"
    )


if __name__ == "__main__":
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    main()

"""The clients that ``bench.clients`` compares: put many 1 KB items, and get one item many times.

    python bench/client_subjects.py NAME URL ITEMS GETS

Prints the figures as JSON; each client runs in its own process. Each peer is used in its own best
way: with batches if it has them, with uvloop if it is asynchronous, with models if that is how it
is used.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

REGION, KEY, SECRET = "us-east-1", "bench", "bench"
NOTE = "x" * 640


def plain(number: int) -> dict[str, Any]:
    return {
        "pk": f"ITEM#{number}",
        "item_id": str(number),
        "customer": "customer-42",
        "placed_at": "2026-11-16T10:00:00.000000Z",
        "status": "shipped",
        "total": Decimal("129.95"),
        "quantity": 3,
        "paid": True,
        "note": NOTE,
        "tags": {"gift", "priority"},
        "lines": ["sku-1", "sku-2", "sku-3"],
    }


def wire(number: int) -> dict[str, Any]:
    return {
        "pk": {"S": f"ITEM#{number}"},
        "item_id": {"S": str(number)},
        "customer": {"S": "customer-42"},
        "placed_at": {"S": "2026-11-16T10:00:00.000000Z"},
        "status": {"S": "shipped"},
        "total": {"N": "129.95"},
        "quantity": {"N": "3"},
        "paid": {"BOOL": True},
        "note": {"S": NOTE},
        "tags": {"SS": ["gift", "priority"]},
        "lines": {"L": [{"S": "sku-1"}, {"S": "sku-2"}, {"S": "sku-3"}]},
    }


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watch:
    """CPU and wall time of a number of calls, and the median of timed single calls."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def put(self, items: int, run: Callable[[], Any]) -> None:
        self._time("put", items, run)

    def get(self, calls: int, run: Callable[[], list[float]]) -> None:
        laps = self._time("get", calls, run)
        self.figures["p50_us"] = sorted(laps)[len(laps) // 2] * 1e6

    def _time(self, name: str, count: int, run: Callable[[], Any]) -> Any:
        started, used = time.perf_counter(), cpu()
        result = run()
        self.figures[f"{name}_per_cpu_second"] = count / (cpu() - used)
        self.figures[f"{name}_per_second"] = count / (time.perf_counter() - started)
        return result


def laps(calls: int, one: Callable[[], Any]) -> list[float]:
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        one()
        found.append(time.perf_counter() - started)
    return found


async def laps_async(calls: int, one: Callable[[], Any]) -> list[float]:
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        await one()
        found.append(time.perf_counter() - started)
    return found


def chunks(items: int) -> Iterator[range]:
    for at in range(0, items, 25):
        yield range(at, min(at + 25, items))


# --- Stator -----------------------------------------------------------------------------------


def stator(url: str, items: int, gets: int, watch: Watch) -> None:
    from bench.client_entity import Item, design, make
    from stator import connect

    with connect(
        design, url, access_key_id=KEY, secret_access_key=SECRET, region=REGION, threads=1
    ) as db:
        db.write_many(make(n) for n in range(100))
        watch.put(items, lambda: db.write_many(make(n) for n in range(items)))
        db.get(Item, item_id="1")
        watch.get(gets, lambda: laps(gets, lambda: db.get(Item, item_id="1")))


def stator_async(url: str, items: int, gets: int, watch: Watch) -> None:
    import uvloop

    from bench.client_entity import Item, design, make
    from stator import connect_async

    db = connect_async(design, url, access_key_id=KEY, secret_access_key=SECRET, region=REGION)

    async def main() -> None:
        await db.write_many(make(n) for n in range(100))
        await timed(watch, "put", items, db.write_many(make(n) for n in range(items)))
        await timed(watch, "get", gets, laps_async(gets, lambda: db.get(Item, item_id="1")))
        await db.close()

    uvloop.run(main())


# --- peers ------------------------------------------------------------------------------------


def boto3(url: str, items: int, gets: int, watch: Watch) -> None:
    import boto3 as library

    session = library.Session(
        aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name=REGION
    )
    table = session.resource("dynamodb", endpoint_url=url).Table("bench")

    def put(count: int) -> None:
        with table.batch_writer() as batch:
            for number in range(count):
                batch.put_item(Item=plain(number))

    put(100)
    watch.put(items, lambda: put(items))
    watch.get(gets, lambda: laps(gets, lambda: table.get_item(Key={"pk": "ITEM#1"})["Item"]))


def boto3_client(url: str, items: int, gets: int, watch: Watch) -> None:
    import boto3 as library

    session = library.Session(
        aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name=REGION
    )
    client = session.client("dynamodb", endpoint_url=url)

    def put(count: int) -> None:
        for chunk in chunks(count):
            client.batch_write_item(
                RequestItems={"bench": [{"PutRequest": {"Item": wire(n)}} for n in chunk]}
            )

    put(100)
    watch.put(items, lambda: put(items))
    watch.get(
        gets,
        lambda: laps(
            gets, lambda: client.get_item(TableName="bench", Key={"pk": {"S": "ITEM#1"}})["Item"]
        ),
    )


def pynamodb(url: str, items: int, gets: int, watch: Watch) -> None:
    from pynamodb.attributes import (
        BooleanAttribute,
        ListAttribute,
        NumberAttribute,
        UnicodeAttribute,
        UnicodeSetAttribute,
    )
    from pynamodb.models import Model

    class Item(Model):
        class Meta:
            table_name = "bench"
            host = url
            region = REGION
            aws_access_key_id = KEY
            aws_secret_access_key = SECRET

        pk = UnicodeAttribute(hash_key=True)
        item_id = UnicodeAttribute()
        customer = UnicodeAttribute()
        placed_at = UnicodeAttribute()
        status = UnicodeAttribute()
        total = NumberAttribute()
        quantity = NumberAttribute()
        paid = BooleanAttribute()
        note = UnicodeAttribute()
        tags = UnicodeSetAttribute()
        lines: Any = ListAttribute()

    def put(count: int) -> None:
        with Item.batch_write() as batch:
            for number in range(count):
                given = plain(number)
                batch.save(Item(**(given | {"total": 129.95})))

    put(100)
    watch.put(items, lambda: put(items))
    watch.get(gets, lambda: laps(gets, lambda: Item.get("ITEM#1")))


def aiobotocore(url: str, items: int, gets: int, watch: Watch) -> None:
    import uvloop
    from aiobotocore.session import get_session

    async def main() -> None:
        session = get_session()
        async with session.create_client(
            "dynamodb",
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            endpoint_url=url,
        ) as client:

            async def put(count: int) -> None:
                for chunk in chunks(count):
                    await client.batch_write_item(
                        RequestItems={"bench": [{"PutRequest": {"Item": wire(n)}} for n in chunk]}
                    )

            await put(100)
            await timed(watch, "put", items, put(items))
            key = {"pk": {"S": "ITEM#1"}}
            get = lambda: client.get_item(TableName="bench", Key=key)  # noqa: E731
            await timed(watch, "get", gets, laps_async(gets, get))

    uvloop.run(main())


def aiodynamo(url: str, items: int, gets: int, watch: Watch) -> None:
    import aiohttp
    import uvloop
    import yarl
    from aiodynamo.client import Client
    from aiodynamo.credentials import Key, StaticCredentials
    from aiodynamo.http.aiohttp import AIOHTTP
    from aiodynamo.models import BatchWriteRequest

    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            client = Client(
                AIOHTTP(session),
                StaticCredentials(Key(KEY, SECRET)),
                REGION,
                endpoint=yarl.URL(url),
            )

            async def put(count: int) -> None:
                for chunk in chunks(count):
                    request = BatchWriteRequest(items_to_put=[_aiodynamo(n) for n in chunk])
                    await client.batch_write({"bench": request})

            await put(100)
            await timed(watch, "put", items, put(items))
            await timed(
                watch,
                "get",
                gets,
                laps_async(gets, lambda: client.get_item("bench", {"pk": "ITEM#1"})),
            )

    def _aiodynamo(number: int) -> dict[str, Any]:
        return plain(number) | {"total": 129.95}

    uvloop.run(main())


def pydynox(url: str, items: int, gets: int, watch: Watch) -> None:
    from pydynox import DynamoDBClient

    client = DynamoDBClient(region=REGION, access_key=KEY, secret_key=SECRET, endpoint_url=url)

    def given(number: int) -> dict[str, Any]:
        return plain(number) | {"total": 129.95}

    def put(count: int) -> None:
        for chunk in chunks(count):
            client.sync_batch_write("bench", put_items=[given(n) for n in chunk])

    put(100)
    watch.put(items, lambda: put(items))
    watch.get(gets, lambda: laps(gets, lambda: client.sync_get_item("bench", {"pk": "ITEM#1"})))


async def timed(watch: Watch, name: str, count: int, work: Any) -> None:
    started, used = time.perf_counter(), cpu()
    result = await work
    spent, passed = cpu() - used, time.perf_counter() - started
    watch.figures[f"{name}_per_cpu_second"], watch.figures[f"{name}_per_second"] = (
        count / spent,
        count / passed,
    )
    if name == "get":
        watch.figures["p50_us"] = sorted(result)[len(result) // 2] * 1e6


SUBJECTS: dict[str, Callable[[str, int, int, Watch], None]] = {
    "stator": stator,
    "stator, asyncio": stator_async,
    "boto3 batch_writer": boto3,
    "boto3 client": boto3_client,
    "PynamoDB": pynamodb,
    "aiobotocore": aiobotocore,
    "aiodynamo": aiodynamo,
    "pydynox": pydynox,
}


def main() -> None:
    name, url, items, gets = sys.argv[1:]
    watch = Watch()
    SUBJECTS[name](url, int(items), int(gets), watch)
    print(json.dumps(watch.figures))


if __name__ == "__main__":
    main()

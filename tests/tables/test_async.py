"""The same through asyncio: a selection of everything, since the work itself is the sync one's."""

from __future__ import annotations

import asyncio
import socket
from decimal import Decimal

import pytest

from stator import connect_async
from stator.errors import DeadlineExceeded, ItemExists, TransactionFailed, UniqueTaken
from tests.targets import Target

from .shop import Order, Product, Status, User, count_in_status, order, orders_of_user, shop, user


def test_everything_awaited(target: Target) -> None:
    async def main() -> None:
        async with target.connect_async(shop(), measure=True) as db:
            await db.create(user())
            with pytest.raises(ItemExists):
                await db.create(user())
            double = user(2)
            double.email = "u1@example.com"
            with pytest.raises(UniqueTaken):
                await db.put(double)
            assert (await db.write_many(order(n) for n in range(70))).written == 70
            assert [each.order_id async for each in db.fetch(orders_of_user("u1"), limit=2)] == [
                "o069",
                "o068",
            ]
            page = await db.page(orders_of_user("u1"), limit=3)
            page = await db.page(orders_of_user("u1"), limit=3, cursor=page.cursor)
            assert [each.order_id for each in page] == ["o066", "o065", "o064"]
            assert await db.count(count_in_status(Status.PENDING)) == 70
            there = await db.first(orders_of_user("u1"))
            assert there is not None
            async with db.update(there) as o:
                o.total += Decimal(1)
            assert there.total == 70
            async with db.transaction() as tx:
                tx.create(Product(sku="s1", stock=1))
                tx.delete(there)
            with pytest.raises(TransactionFailed):
                async with db.transaction() as tx:
                    tx.create(Product(sku="s1", stock=2))
            assert await db.get_many(Product, ["s1", "s2"]) == [Product(sku="s1", stock=1), None]
            assert (await db.upsert(Product(sku="s1", stock=5))).stock == 5
            assert await db.exists(Product, sku="s1")
            assert await db.delete(Product, sku="s1", returns="old") == Product(sku="s1", stock=5)
            assert (await db.delete_many(User, ["u1"])).ok
            assert len([each async for each in db.scan(Order, allow=True, segments=2)]) == 69
            assert db.meter is not None
            assert db.meter.by_label["orders_of_user"].read_units > 0
            assert db.meter.by_label["batch"].write_units >= 70
            assert (await db.call("ListTables", {}))["TableNames"]

    asyncio.run(main())


def test_many_tasks_at_once_count_exactly(target: Target) -> None:
    async def main() -> None:
        db = target.connect_async(shop())
        await db.put(Product(sku="s1", stock=0))

        async def add() -> None:
            for _ in range(5):
                async with db.update(Product, sku="s1") as p:
                    p.stock += 1

        await asyncio.gather(*(add() for _ in range(20)))
        found = await db.get(Product, sku="s1", consistent=True)
        assert found is not None and found.stock == 100
        await db.close()

    asyncio.run(main())


def test_a_client_serves_one_loop_after_the_other(target: Target) -> None:
    db = target.connect_async(shop())

    async def put() -> None:
        await db.put(Product(sku="s1", stock=3))
        await db.close()

    async def get() -> Product | None:
        found = await db.get(Product, sku="s1")
        await db.close()
        return found

    asyncio.run(put())
    assert asyncio.run(get()) == Product(sku="s1", stock=3)


def test_a_deadline_holds() -> None:
    async def main(port: int) -> None:
        db = connect_async(
            shop(), f"http://127.0.0.1:{port}", access_key_id="a", secret_access_key="b"
        )
        with pytest.raises(DeadlineExceeded):
            await db.within(0.2).get(Product, sku="s1")
        await db.close()

    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes connections and never answers
        asyncio.run(main(deaf.getsockname()[1]))

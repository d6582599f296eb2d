"""An archive: the orders that were finished on a day move to Parquet, and none is lost on the way.

The patterns: an order; the orders that were finished on a day, from an index that holds finished
orders only, so that archiving reads what it archives and nothing else. A job runs every night, for
the day that was ninety days ago.

The order of the steps makes it safe to stop at any point and to start again:

1. Write the orders of the day to a new file. Its name follows from its content, so a second run
   never replaces a file that holds something else.
2. Read the file back, and compare every row with the order.
3. Delete each order, on condition that its version is the one in the file. An order that somebody
   changed meanwhile stays, and the next run archives it as it is then.

After a crash between 1 and 3, an order is in the table and in a file. ``load_archive`` returns each
order once, in its latest version. Needs ``pip install 'stator[arrow]'``.

python examples/archive.py [ADDRESS]
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stator import (
    Db,
    Design,
    Entity,
    Query,
    attr,
    connect,
    creates,
    day_of,
    distinct,
    find,
    ident,
    read,
    share,
    updates,
    version,
    write,
)
from stator.errors import ConditionFailed


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    total: Decimal
    finished_at: datetime | None = None
    rev: int = version()


@read(rps=50)
def order(order_id: str) -> Query[Order]:
    return find(Order).where(Order.order_id == order_id)


@read(rps=0.01, returns=2_500)
def finished_on(day: str) -> Query[Order]:
    return find(Order).where(day_of(Order.finished_at) == day)


@write(rps=10)
def place() -> object:
    return creates(Order)


@write(rps=10)
def finish() -> object:
    return updates(Order.finished_at)


shop = Design(
    "archived-orders",
    [Order],
    [order, finished_on, place, finish],
    volumes={Order: 1_000_000},
    sizes={Order: 200},
    facts=[
        share(attr(Order.finished_at).exists(), 0.9),
        distinct(day_of(Order.finished_at), values=365),
    ],
)

COLUMNS = pa.schema(
    {
        "order_id": pa.string(),
        "customer_id": pa.string(),
        "total": pa.decimal128(38, 2),
        "finished_at": pa.timestamp("us", tz="UTC"),
        "rev": pa.int64(),
    }
)


def archive_day(db: Db, day: str, folder: Path) -> int:
    """Move the orders that were finished on a day into a file. Return how many were moved."""
    orders = db.all(finished_on(day))
    if orders:
        write_file(orders, folder / day)
    return sum(forget(db, each) for each in orders)


def write_file(orders: list[Order], folder: Path) -> Path:
    rows = [row_of(each) for each in sorted(orders, key=lambda each: each.order_id)]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{hashlib.sha256(repr(rows).encode()).hexdigest()[:16]}.parquet"
    unfinished = file.with_suffix(".unfinished")
    pq.write_table(pa.Table.from_pylist(rows, schema=COLUMNS), unfinished)
    flush(unfinished)
    if pq.read_table(unfinished).to_pylist() != rows:
        raise ValueError(f"{unfinished} does not hold what was written to it")
    unfinished.rename(file)
    flush(folder)
    return file


def flush(path: Path) -> None:
    """Make the content of a file or folder survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def forget(db: Db, archived: Order) -> bool:
    """Delete an order that is archived. Return False if it has changed since."""
    try:
        db.delete(archived, when=Order.rev == archived.rev)
    except ConditionFailed:
        return False
    return True


def load_archive(folder: Path) -> dict[str, Order]:
    """Return the archived orders by their ids, each in its latest version."""
    found: dict[str, Order] = {}
    for file in sorted(folder.glob("*/*.parquet")):
        for row in pq.read_table(file).to_pylist():
            each = Order(**row)
            if each.order_id not in found or found[each.order_id].rev < each.rev:
                found[each.order_id] = each
    return found


def row_of(each: Order) -> dict[str, Any]:
    return {name: getattr(each, name) for name in COLUMNS.names}


def main(address: str | None = None) -> None:
    with connect(shop, address) as db, tempfile.TemporaryDirectory() as folder:
        db.ensure()
        for number in range(20):
            finished = datetime(2026, 8, 5 + number % 3, tzinfo=UTC) if number % 4 else None
            total = Decimal(number) + Decimal("0.50")
            db.create(
                Order(
                    order_id=f"o{number}",
                    customer_id=f"c{number % 5}",
                    total=total,
                    finished_at=finished,
                )
            )
        place = Path(folder)
        print(f"{archive_day(db, '2026-08-05', place)} orders archived")
        print(f"{archive_day(db, '2026-08-05', place)} left to archive")
        print(f"{sum(1 for _ in db.scan(Order, allow=True))} orders in the table")
        archived = load_archive(place)
        print(f"{len(archived)} in {len(list(place.glob('*/*.parquet')))} file, such as")
        print(archived[min(archived)])


if __name__ == "__main__":
    main(*sys.argv[1:2])

"""What capacity to buy for a table, from a week of its use, and how the usual recipe gets it wrong.

The usual recipe is a class that fetches an hour's Average and Maximum of ConsumedReadCapacityUnits.
Average is the mean of a *request*, mostly half a unit, so every table looks idle and belongs on
demand. Maximum is the largest request, not the busiest second. Indexes have metrics and units of
their own, which the recipe does not read and does not set. And nothing is ever priced.

Here every minute is replayed over each way to pay for it, indexes included: what it costs, and what
DynamoDB would have refused. On AWS the minutes come from CloudWatch; anywhere else from numbers
that this program makes up, through the same seam.

python examples/capacity.py [ADDRESS]
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from stator import Design, Entity, Query, connect, find, ident, read
from stator.costs import prices
from stator.ops import (
    CloudWatchMetrics,
    LiveTable,
    MemoryMetrics,
    MetricSource,
    OptionSearch,
    TableAdvice,
    advise,
    live_history,
)

DAYS = 7
MINUTE = 60


class Order(Entity):
    order_id: str = ident()
    customer: str


@read(rps=20)
def orders_of(customer: str) -> Query[Order]:
    return find(Order).where(Order.customer == customer)


shop = Design("capacity-shop", [Order], [orders_of], volumes={Order: 100_000})


def main(address: str | None = None) -> None:
    with connect(shop, address or "memory") as db:
        db.ensure()
        db.put(Order(order_id="o1", customer="anna"))
    [table] = shop.plan().tables
    indexes = tuple(index.name for index in table.indexes)
    now = time.time() // 86_400 * 86_400 + 240  # minutes of the last hours may still change
    source = measured(address) if is_aws(address) else made_up(table.name, indexes, int(now))
    advice = advice_on(source, LiveTable(table.name, {}, indexes), now)
    for option in advice.options:
        refused = option.throttled_share.high
        print(f"{option.name:24} {option.dollars.middle:8.2f} $/month, {refused:7.3%} refused")
    print(f"\n{table.name}: {advice.recommended.name}. {advice.reason}")
    for dimension, schedule in advice.recommended.schedules:
        print(f"{dimension}: {'; '.join(schedule.windows())}; else min={schedule.base}")


def advice_on(source: MetricSource, table: LiveTable, now: float) -> TableAdvice:
    history = live_history(source, table, now, DAYS)
    search = OptionSearch(replace(history, sizes={None: 1e9}), prices("eu-west-1"))
    return advise([search]).tables[0]


def is_aws(address: str | None) -> bool:
    return address is not None and address.startswith("aws://")


def measured(address: str | None) -> MetricSource:
    import boto3

    assert address is not None
    return CloudWatchMetrics(boto3.client("cloudwatch", address.removeprefix("aws://")))


def made_up(table: str, indexes: tuple[str, ...], now: int) -> MemoryMetrics:
    """A week of 40 units a second, with a batch of 400 on Sundays from two to four."""
    found = MemoryMetrics()
    for at in range(now - now % 86_400 - DAYS * 86_400, now, MINUTE):
        day, hour = (at // 86_400 + 3) % 7, at // 3600 % 24  # Monday is 0
        rate = 400 if day == 6 and 2 <= hour < 4 else 40
        for place in (None, *indexes):
            found.put("ConsumedWriteCapacityUnits", table, place, at, rate * MINUTE)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])

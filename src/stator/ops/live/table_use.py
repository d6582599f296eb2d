"""The units, throttles and cost of tables and their indexes in the last minutes.

CloudWatch has the minutes, and DescribeTable the capacity. Metrics of a minute arrive one to two
minutes after its end, so the newest two minutes are left out. One GetMetricData asks for all tables
of a design; each metric in it costs $0.00001 on AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from stator.design.cost.prices import PriceName, RegionPrices
from stator.errors import LiveTableUnreachable
from stator.ops.dashboards.panels import NAMESPACE

LATE_MINUTES: Final = 2
_QUERIES_A_CALL: Final = 500
"""AWS's limit of queries in a GetMetricData."""
THROTTLE_REASONS: Final = {
    f"{kind}{limit}ThrottleEvents": f"{kind.lower()} {words}"
    for kind in ("Read", "Write")
    for limit, words in (
        ("KeyRangeThroughput", "hot key"),
        ("ProvisionedThroughput", "capacity"),
        ("MaxOnDemandThroughput", "maximum"),
        ("AccountLimit", "account"),
    )
}
_CONSUMED: Final = ("ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits")


@dataclass(frozen=True, slots=True)
class PlaceUse:
    """The use of a table, or of one of its global indexes, over the last minutes.

    Units are a second. The capacity is None if the place is billed by request. ``throttles`` are
    the refusals by reason, such as ``{"write hot key": 12}``. ``dollars_an_hour`` is the cost of an
    hour like these minutes, storage left out.
    """

    table: str
    index: str | None
    read_units: float
    write_units: float
    read_capacity: int | None
    write_capacity: int | None
    throttles: dict[str, int]
    dollars_an_hour: float


def table_use(
    dynamodb: Any,
    cloudwatch: Any,
    tables: Iterable[str],
    prices: RegionPrices,
    *,
    now: datetime | None = None,
    minutes: int = 5,
) -> tuple[PlaceUse, ...]:
    """Return the use of tables and of their global indexes.

    ``dynamodb`` and ``cloudwatch`` are clients of botocore. Raises LiveTableUnreachable if a call
    fails. A table that does not exist is left out.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        described = [each for name in tables for each in _described(dynamodb, name)]
        places = [place for each in described for place in _places(each)]
        end = (now or datetime.now(UTC)).replace(second=0, microsecond=0)
        end -= timedelta(minutes=LATE_MINUTES)
        sums = _sums(cloudwatch, places, end - timedelta(minutes=minutes), end)
    except (BotoCoreError, ClientError) as error:
        raise LiveTableUnreachable(
            f"the use of tables cannot be read: {error}",
            hint="check the address, and that the role may call cloudwatch:GetMetricData and "
            "dynamodb:DescribeTable",
        ) from None
    return tuple(_use(place, sums, at, minutes * 60, prices) for at, place in enumerate(places))


@dataclass(frozen=True, slots=True)
class _Place:
    table: str
    index: str | None
    read_capacity: int | None
    write_capacity: int | None
    is_infrequent: bool

    @property
    def dimensions(self) -> list[dict[str, str]]:
        found = [{"Name": "TableName", "Value": self.table}]
        if self.index is not None:
            found.append({"Name": "GlobalSecondaryIndexName", "Value": self.index})
        return found


def _described(dynamodb: Any, name: str) -> Iterator[dict[str, Any]]:
    from botocore.exceptions import ClientError

    try:
        yield dynamodb.describe_table(TableName=name)["Table"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise


def _places(table: dict[str, Any]) -> Iterator[_Place]:
    mode = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    infrequent = table.get("TableClassSummary", {}).get("TableClass", "").endswith("ACCESS")
    members = [(None, table)]
    members += [(each["IndexName"], each) for each in table.get("GlobalSecondaryIndexes", ())]
    for index, member in members:
        found = member.get("ProvisionedThroughput", {}) if mode == "PROVISIONED" else {}
        yield _Place(
            table["TableName"],
            index,
            found.get("ReadCapacityUnits"),
            found.get("WriteCapacityUnits"),
            infrequent,
        )


def _sums(
    cloudwatch: Any, places: list[_Place], start: datetime, end: datetime
) -> dict[tuple[int, str], float]:
    """Return the sum of each metric of each place, by the number of the place and the metric."""
    wanted = [(at, name) for at in range(len(places)) for name in (*_CONSUMED, *THROTTLE_REASONS)]
    sums = dict.fromkeys(wanted, 0.0)
    for first in range(0, len(wanted), _QUERIES_A_CALL):
        chunk = wanted[first : first + _QUERIES_A_CALL]
        queries = [
            {
                "Id": f"m{number}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": NAMESPACE,
                        "MetricName": name,
                        "Dimensions": places[at].dimensions,
                    },
                    "Period": 60,
                    "Stat": "Sum",
                },
            }
            for number, (at, name) in enumerate(chunk)
        ]
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries, StartTime=start, EndTime=end
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                sums[chunk[int(result["Id"][1:])]] += sum(result["Values"])
    return sums


def _use(
    place: _Place,
    sums: dict[tuple[int, str], float],
    at: int,
    seconds: float,
    prices: RegionPrices,
) -> PlaceUse:
    read, write = (sums[at, name] / seconds for name in _CONSUMED)
    names: tuple[PriceName, PriceName]
    if place.read_capacity is None or place.write_capacity is None:
        names = ("read_request_unit", "write_request_unit")
        if place.is_infrequent:
            names = ("ia_read_request_unit", "ia_write_request_unit")
        billed = (read * 3600, write * 3600)
    else:
        names = ("read_capacity_hour", "write_capacity_hour")
        if place.is_infrequent:
            names = ("ia_read_capacity_hour", "ia_write_capacity_hour")
        billed = (float(place.read_capacity), float(place.write_capacity))
    return PlaceUse(
        table=place.table,
        index=place.index,
        read_units=read,
        write_units=write,
        read_capacity=place.read_capacity,
        write_capacity=place.write_capacity,
        throttles={
            words: int(sums[at, name]) for name, words in THROTTLE_REASONS.items() if sums[at, name]
        },
        dollars_an_hour=float(prices[names[0]]) * billed[0] + float(prices[names[1]]) * billed[1],
    )

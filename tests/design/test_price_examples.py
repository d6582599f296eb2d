"""Bills that AWS works out in dollars on its own pages, line by line and to the cent, at the prices
of their day.

Two pages of AWS are behind this, in the words that public repositories keep of them:

- ON_DEMAND: https://aws.amazon.com/dynamodb/pricing/on-demand/, "pricing example", as it was before
  the prices of November 2024: a table in US East (N. Virginia) with 42,177,000 writes of 1 KB and
  as many reads in a month of 30 days.
- PROVISIONED: https://aws.amazon.com/dynamodb/pricing/provisioned/, "pricing example", as it was
  some time after December 2021 (it names table classes): 114 WCUs and 114 RCUs all month.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from stator.design.cost.charges import (
    GB_BYTES,
    Charge,
    backups,
    on_demand,
    provisioned,
    reserved,
    storage,
    streams,
    total,
)
from stator.design.cost.prices import PriceFile, parse, prices
from stator.design.cost.report import cost
from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import creates, write

GB = GB_BYTES
HOURS = 30 * 24
REQUESTS = 42_177_000


def file_of(as_of: str, source: str, **dollars: str) -> PriceFile:
    """The prices that an example names."""
    return parse(
        {
            "as_of": as_of,
            "free_tier": {
                "write_capacity": 25,
                "read_capacity": 25,
                "storage_gb": 25,
                "stream_reads": 2_500_000,
            },
            "sources": {"page": {"kind": "transcript", "text": source}},
            "regions": {
                "us-east-1": {
                    "name": "US East (N. Virginia)",
                    "prices": {
                        name: {"usd": usd, "source": "page"} for name, usd in dollars.items()
                    },
                }
            },
        }
    )


BEFORE_NOVEMBER_2024 = file_of(
    "2024-10-31",
    "https://aws.amazon.com/dynamodb/pricing/on-demand/",
    write_request_unit="0.00000125",
    read_request_unit="0.00000025",
    replicated_write_request_unit="0.000001875",
    write_capacity_hour="0.00065",
    read_capacity_hour="0.00013",
    storage_gb_month="0.25",
    pitr_gb_month="0.20",
    backup_gb_month="0.10",
    restore_gb="0.15",
    export_gb="0.10",
    stream_read="0.0000002",
    kinesis_capture_unit="0.0000001",
)
THEN, FREE = BEFORE_NOVEMBER_2024.region("us-east-1"), BEFORE_NOVEMBER_2024.free_tier


def cents(charges: tuple[Charge, ...]) -> Decimal:
    return total(charges).quantize(Decimal("0.01"))


# --- ON_DEMAND ------------------------------------------------------------------------------------


def test_writes_and_reads() -> None:
    assert cents(on_demand(THEN, write_units=REQUESTS)) == Decimal("52.72")
    assert cents(on_demand(THEN, read_units=REQUESTS)) == Decimal("10.54")


def test_storage_past_the_free_tier() -> None:
    # 25 GB at the beginning of the month, 29 GB at its end: 27 GB on average, 25 of them free.
    assert cents(storage(THEN, 27 * GB, free=FREE)) == Decimal("0.50")


def test_backups_kept_for_a_month_or_a_part_of_it() -> None:
    assert cents(backups(THEN, backup_bytes=60 * GB)) == Decimal("6.00")
    # 15 GB are deleted after 10 days of 30.
    assert cents(backups(THEN, backup_bytes=60 * GB - 15 * GB * 20 / 30)) == Decimal("5.00")


def test_continuous_backups_and_a_restore() -> None:
    assert cents(backups(THEN, pitr_bytes=27 * GB)) == Decimal("5.40")
    assert cents(backups(THEN, restored_bytes=29 * GB)) == Decimal("4.35")


def test_an_export_to_s3() -> None:
    assert cents(backups(THEN, exported_bytes=29 * GB)) == Decimal("2.90")


def test_changes_captured_for_kinesis() -> None:
    assert cents(streams(THEN, kinesis_units=REQUESTS)) == Decimal("4.22")


def test_a_stream_that_is_read_once_a_second() -> None:
    reads = HOURS * 3600
    assert reads == 2_592_000
    assert cents(streams(THEN, reads=reads, free=FREE)) == Decimal("0.02")


def test_a_global_table_of_two_regions() -> None:
    # The replica is made when the table has 25 GB.
    assert cents(backups(THEN, restored_bytes=25 * GB)) == Decimal("3.75")
    assert cents(on_demand(THEN, replicated_write_units=2 * REQUESTS)) == Decimal("158.16")
    assert cents(storage(THEN, 27 * GB, free=FREE)) == Decimal("0.50")


def test_the_whole_bill() -> None:
    # AWS adds up the lines as it shows them: 100.05 dollars, of which 14.40 are for DAX, which
    # Stator does not price.
    lines = (
        on_demand(THEN, write_units=REQUESTS),
        on_demand(THEN, read_units=REQUESTS),
        storage(THEN, 27 * GB, free=FREE),
        backups(THEN, backup_bytes=60 * GB - 15 * GB * 20 / 30),
        backups(THEN, pitr_bytes=27 * GB),
        backups(THEN, restored_bytes=29 * GB),
        streams(THEN, kinesis_units=REQUESTS),
        backups(THEN, exported_bytes=29 * GB),
        streams(THEN, reads=HOURS * 3600, free=FREE),
    )
    assert sum(map(cents, lines)) + Decimal("14.40") == Decimal("100.05")


class Record(Entity):
    record_id: str = ident()


@read(rps=2 * REQUESTS / (730 * 3600))
def record(record_id: str) -> Query[Record]:
    """Read eventually consistently, so that two are one unit."""
    return find(Record).where(Record.record_id == record_id)


@write(rps=REQUESTS / (730 * 3600))
def keep() -> object:
    return creates(Record)


def test_a_design_with_that_traffic_has_that_bill() -> None:
    design = Design("example", [Record], [record, keep], volumes={Record: 1}, sizes={Record: 900})
    found = cost(design, known=BEFORE_NOVEMBER_2024).by_pattern()
    rounded = {name: dollars.quantize(Decimal("0.01")) for name, dollars in found.items()}
    assert (rounded["keep"], rounded["record"]) == (Decimal("52.72"), Decimal("10.54"))


# --- PROVISIONED ----------------------------------------------------------------------------------


def test_capacity_all_month_less_the_free_tier() -> None:
    write, read_ = (
        provisioned(THEN, write_capacity=114, hours=24),
        provisioned(THEN, read_capacity=114, hours=24),
    )
    assert [round(total(each), 4) for each in (write, read_, write + read_)] == [
        Decimal("1.7784"),
        Decimal("0.3557"),
        Decimal("2.1341"),
    ]
    # The month is 64.04 dollars, with each of the two lines rounded up to a cent.
    month = provisioned(THEN, write_capacity=114, read_capacity=114, hours=HOURS)
    assert sum(
        charge.dollars.quantize(Decimal("0.01"), ROUND_CEILING) for charge in month
    ) == Decimal("64.04")
    # The free tier takes 11.70 and 2.34 dollars off.
    assert cents(provisioned(THEN, write_capacity=25, hours=HOURS)) == Decimal("11.70")
    assert cents(provisioned(THEN, read_capacity=25, hours=HOURS)) == Decimal("2.34")
    left = provisioned(THEN, write_capacity=114, read_capacity=114, hours=HOURS, free=FREE)
    assert total(month) - total(left) == Decimal("14.04")


# --- others ---------------------------------------------------------------------------------------


def test_the_faq_s_first_prices() -> None:
    # AWS's DynamoDB FAQ, "What are some pricing examples?", with the prices of its first year (kept
    # on brainscape.com, pack 10626532): a cent an hour for 10 units of writes or 50 of reads; 10
    # and 200 units are 0.05 dollars an hour.
    then = file_of(
        "2012-01-18",
        "https://aws.amazon.com/dynamodb/faqs/",
        write_request_unit="0",
        read_request_unit="0",
        write_capacity_hour="0.001",
        read_capacity_hour="0.0002",
        storage_gb_month="1.00",
    ).region("us-east-1")
    assert total(provisioned(then, write_capacity=10, read_capacity=200, hours=1)) == Decimal(
        "0.05"
    )


def test_three_years_of_reserved_writes() -> None:
    # AWS Startups Blog, "On DynamoDB Provisioning: Simple, Flexible, and Affordable": the smallest
    # block is 100 units, which is 259 million writes in a month; three years of it save 76 %, of
    # the prices of that day, and up to 77 % of today's.
    now = prices("us-east-1")
    assert 100 * HOURS * 3600 == 259_200_000
    saved = 1 - total(reserved(now, write_capacity=100, years=3)) / total(
        provisioned(now, write_capacity=100)
    )
    assert Decimal("0.76") <= saved < Decimal("0.78")

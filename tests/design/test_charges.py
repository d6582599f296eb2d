"""Units and dollars, against numbers that AWS and others publish."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, Decimal
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.capacity_units import (
    Consistency,
    half_read_units,
    index_write_units,
    write_units,
)
from stator.design.cost.charges import (
    GB_BYTES,
    Charge,
    a_month,
    backups,
    break_even_utilisation,
    capacity,
    on_demand,
    provisioned,
    reserved,
    storage,
    stored_bytes,
    streams,
    total,
)
from stator.design.cost.prices import NEEDED, parse, price_file, prices
from stator.design.planner import weights
from stator.errors import DesignError

KB = 1024
CONSISTENCIES: tuple[Consistency, ...] = ("strong", "eventual", "transactional")
VIRGINIA = prices("us-east-1")


def read_units(size_bytes: float, consistency: Consistency = "eventual") -> Decimal:
    return Decimal(half_read_units(size_bytes, consistency)) / 2


def cents(charges: tuple[Charge, ...]) -> Decimal:
    return total(charges).quantize(Decimal("0.01"))


# --- units: "Key terms" of https://aws.amazon.com/dynamodb/pricing/on-demand/ and /provisioned/ ---


def test_the_pricing_page_s_reads() -> None:
    # A read of an 8 KB item: two units strongly consistent, one eventually, four in a transaction.
    assert [read_units(8 * KB, how) for how in CONSISTENCIES] == [2, 1, 4]
    # Up to 4 KB: one, one half, two.
    assert [read_units(4 * KB, how) for how in CONSISTENCIES] == [1, Decimal("0.5"), 2]


def test_the_pricing_page_s_writes() -> None:
    # A write of 1 KB: one unit; of 3 KB: three; of 3 KB in a transaction: six.
    assert [write_units(1 * KB), write_units(3 * KB), write_units(3 * KB, transactional=True)] == [
        1,
        3,
        6,
    ]


def test_the_developer_guide_s_rounding() -> None:
    # docs.aws.amazon.com .../developerguide/read-write-operations.html: 3,500 bytes are read as 4
    # KB and 10 KB as 12 KB; a batch of two items of 1.5 KB and 6.5 KB is 12 KB, each rounded alone.
    # A Query adds up first: the same two are 8 KB.
    assert read_units(3_500, "strong") == 1
    assert read_units(10 * KB, "strong") == 3
    assert read_units(1.5 * KB, "strong") + read_units(6.5 * KB, "strong") == 3
    assert read_units(1.5 * KB + 6.5 * KB, "strong") == 2
    assert [write_units(500), write_units(4 * KB), write_units(4 * KB + 1)] == [1, 4, 5]
    # A delete is billed for what it deletes, and for one unit where nothing was.
    assert write_units(0) == 1
    assert read_units(0) == Decimal("0.5")


def test_index_writes() -> None:
    # docs.aws.amazon.com .../developerguide/GSI.html#GSI.Writes: a new entry or one taken out is
    # one write; a changed index key two, one to delete and one to put; a changed projected
    # attribute one; nothing projected, none.
    assert index_write_units(None, 600) == 1
    assert index_write_units(600, None) == 1
    assert index_write_units(600, 700, key_changes=True) == 2
    assert index_write_units(600, 700) == 1
    assert index_write_units(600, 600, changes=False) == 0
    assert index_write_units(None, None) == 0
    assert index_write_units(3 * KB, 2 * KB, key_changes=True) == 5
    assert index_write_units(3 * KB, 2 * KB) == 3


def test_stored_bytes() -> None:
    # docs.aws.amazon.com .../developerguide/CapacityUnitCalculations.html: 100 bytes for each item,
    # and 48 more in global tables.
    assert stored_bytes(1_000, 400) == 500_000
    assert stored_bytes(1_000, 400, replicated=True) == 548_000


@given(st.integers(0, 400 * KB), st.integers(0, 400 * KB))
def test_units_grow_with_size(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert read_units(small) <= read_units(large)
    assert write_units(small) <= write_units(large)
    assert read_units(large, "eventual") * 2 == read_units(large, "strong")
    assert index_write_units(small, large) <= index_write_units(small, large, key_changes=True)


# --- dollars: infracost's dynamodb_table_test.golden at 0b97cc5, from AWS's us-east-1 price list --


def test_a_month_on_demand() -> None:
    assert cents(on_demand(VIRGINIA, write_units=3_000_000)) == Decimal("1.88")
    assert cents(on_demand(VIRGINIA, read_units=8_000_000)) == Decimal("1.00")
    assert cents(on_demand(prices("us-east-2"), replicated_write_units=3_000_000)) == Decimal(
        "1.88"
    )


def test_a_month_provisioned() -> None:
    assert cents(provisioned(VIRGINIA, write_capacity=77)) == Decimal("36.54")
    assert cents(provisioned(VIRGINIA, read_capacity=76)) == Decimal("7.21")
    assert cents(provisioned(VIRGINIA, write_capacity=20)) == Decimal("9.49")
    assert cents(provisioned(VIRGINIA, read_capacity=30)) == Decimal("2.85")
    assert cents(provisioned(prices("us-east-2"), replicated_write_capacity=20)) == Decimal("9.49")


def test_a_month_of_storage_backups_and_streams() -> None:
    assert cents(storage(VIRGINIA, 230 * GB_BYTES)) == Decimal("57.50")
    assert cents(backups(VIRGINIA, pitr_bytes=2_300 * GB_BYTES)) == Decimal("460.00")
    assert cents(backups(VIRGINIA, backup_bytes=460 * GB_BYTES)) == Decimal("46.00")
    assert cents(backups(VIRGINIA, restored_bytes=230 * GB_BYTES)) == Decimal("34.50")
    assert cents(streams(VIRGINIA, reads=2_000_000)) == Decimal("0.40")


def test_the_console_s_capacity_calculator() -> None:
    # AWS console, shown on notes.kodekloud.com (DynamoDB Pricing Throughput Demo): 20 strongly
    # consistent reads and 30 writes a second of 8 KB items are 40 RCU and 240 WCU, 119.94 dollars a
    # month of 31 days; the console rounds each of the two up to a cent.
    read, write = 20 * read_units(8 * KB, "strong"), 30 * write_units(8 * KB)
    assert read == 40 and write == 240
    bill = provisioned(VIRGINIA, read_capacity=read, write_capacity=write, hours=744)
    assert sum(
        charge.dollars.quantize(Decimal("0.01"), ROUND_CEILING) for charge in bill
    ) == Decimal("119.94")


def test_backups_of_a_month() -> None:
    # finops.com.py/services/dynamodb/backups: 30 daily backups of 500 GB are 1,500 dollars a month.
    assert cents(backups(VIRGINIA, backup_bytes=30 * 500 * GB_BYTES)) == Decimal("1500.00")


def test_tokyo() -> None:
    # A public estimate of 2026-08-03 from the price list of ap-northeast-1: 100 writes of 4 KiB,
    # and keeping them, without overhead.
    tokyo = prices("ap-northeast-1")
    assert total(on_demand(tokyo, write_units=100 * write_units(4 * KB))) == Decimal("0.000286")
    assert round(total(storage(tokyo, 100 * 4096)), 15) == Decimal("0.000108718872070")


def test_break_even() -> None:
    # shared/research: 28.9 % since November 2024, the same for reads and writes.
    assert round(break_even_utilisation(VIRGINIA), 3) == Decimal("0.289")
    assert round(break_even_utilisation(VIRGINIA, "read"), 3) == Decimal("0.289")
    load = 1_000
    at_break_even = provisioned(VIRGINIA, write_capacity=load / break_even_utilisation(VIRGINIA))
    assert round(total(at_break_even), 6) == round(
        total(on_demand(VIRGINIA, write_units=a_month(load))), 6
    )


def test_reserved_capacity() -> None:
    # docs.aws.amazon.com .../developerguide/reserved-capacity.html: blocks of 100; up to 54 % off
    # for one year, 77 % for three.
    full = total(provisioned(VIRGINIA, write_capacity=1_000))
    one, three = (total(reserved(VIRGINIA, write_capacity=1_000, years=years)) for years in (1, 3))
    assert (round(1 - one / full, 2), round(1 - three / full, 2)) == (
        Decimal("0.54"),
        Decimal("0.77"),
    )
    # Ten blocks of 100: an upfront fee of 150 over 12 months and 730 hours of 0.0128.
    assert one == 10 * (Decimal(150) / 12 + Decimal("0.0128") * 730)
    # What is no whole block is provisioned as usual.
    assert total(reserved(VIRGINIA, read_capacity=99)) == total(
        provisioned(VIRGINIA, read_capacity=99)
    )
    mixed = reserved(VIRGINIA, read_capacity=250)
    assert [(charge.what, charge.quantity) for charge in mixed] == [
        ("reserved_read_block_month", Decimal(2)),
        ("read_capacity_hour", Decimal(50 * 730)),
    ]


def test_the_free_tier() -> None:
    free = price_file().free_tier
    assert provisioned(VIRGINIA, read_capacity=25, write_capacity=20, free=free) == ()
    assert cents(provisioned(VIRGINIA, write_capacity=45, free=free)) == Decimal("9.49")
    assert cents(storage(VIRGINIA, 255 * GB_BYTES, free=free)) == Decimal("57.50")
    assert streams(VIRGINIA, reads=2_500_000, free=free) == ()
    # It is for the Standard class only.
    assert total(storage(VIRGINIA, 10 * GB_BYTES, table_class="infrequent_access", free=free)) == 1


def test_the_infrequent_access_class_trades_storage_for_throughput() -> None:
    standard, rare = (
        on_demand(VIRGINIA, read_units=10**6, write_units=10**6)
        + provisioned(VIRGINIA, read_capacity=10, write_capacity=10),
        on_demand(VIRGINIA, read_units=10**6, write_units=10**6, table_class="infrequent_access")
        + provisioned(
            VIRGINIA, read_capacity=10, write_capacity=10, table_class="infrequent_access"
        ),
    )
    for usual, dearer in zip(standard, rare, strict=True):
        assert Decimal("1.2") < dearer.price / usual.price < Decimal("1.26")
    assert total(storage(VIRGINIA, GB_BYTES, table_class="infrequent_access")) == Decimal("0.10")


def test_capacity_for_a_rate() -> None:
    assert capacity(100) == 143
    assert capacity(100, peak_to_average=3) == 143
    assert capacity(100, peak_to_average=3, auto_scaling=False) == 429
    assert capacity(100, utilisation=1) == 100
    assert capacity(0.01) == 1
    with pytest.raises(DesignError, match="utilisation=70 must be greater than 0"):
        capacity(100, utilisation=70)
    with pytest.raises(DesignError, match="peak_to_average"):
        capacity(100, peak_to_average=0.5)


# --- the file -------------------------------------------------------------------------------------


def test_every_number_has_a_source() -> None:
    known = price_file()
    assert set(known.regions) >= {
        "us-east-1",
        "us-east-2",
        "us-west-2",
        "eu-west-1",
        "eu-central-1",
        "ap-northeast-1",
        "ap-south-1",
    }
    for region in known.regions.values():
        assert region.sources.keys() == region.known.keys() >= set(NEEDED)
        assert all(price > 0 for price in region.known.values())
        assert all(region.sources.values())
        assert {"write_capacity_hour", "read_capacity_hour"}.isdisjoint(region.doubtful)
        # Prices of a region keep the proportions of the others: a slip of the pen would show.
        assert (
            Decimal("4.9")
            < region["write_request_unit"] / region["read_request_unit"]
            < Decimal("5.1")
        )
        assert (
            Decimal("4.9")
            < region["write_capacity_hour"] / region["read_capacity_hour"]
            < Decimal("5.1")
        )
        assert Decimal("0.27") < break_even_utilisation(region) < Decimal("0.31")


def test_derived_prices_follow_the_rule_that_holds_where_price_lists_were_found() -> None:
    regions = price_file().regions
    base = regions["us-east-1"]
    listed = [region for region in regions.values() if region.doubtful.isdisjoint(NEEDED)]
    assert len(regions) == 22
    assert len(listed) == 7
    for region in regions.values():
        factor = region["write_capacity_hour"] / base["write_capacity_hour"]
        for name in ("write_request_unit", "read_request_unit", "storage_gb_month"):
            tolerance = Decimal("0.003") if name in region.doubtful else Decimal("0.005")
            off = region[name] / (base[name] * factor) - 1
            assert abs(off) < (Decimal("0.011") if name == "read_request_unit" else tolerance), (
                region.region,
                name,
            )


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(DesignError, match="no prices for region 'mars-1'") as caught:
        prices("mars-1")
    assert "us-east-1" in str(caught.value.hint)
    with pytest.raises(
        DesignError, match="restore_gb of eu-west-1 is not in the price file of 2026-09-11"
    ):
        backups(prices("eu-west-1"), restored_bytes=GB_BYTES)
    with pytest.raises(DesignError, match="3-year reserved write capacity in us-east-2"):
        reserved(prices("us-east-2"), write_capacity=100, years=3)


def test_a_price_file_of_one_s_own(tmp_path: Path) -> None:
    document = json.loads(
        resources.files("stator.design.cost.prices").joinpath("2026-09-11.json").read_text()
    )
    document["as_of"] = "2027-01-01"
    document["regions"] = {"moon-1": document["regions"]["us-east-1"]}
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(document))
    assert price_file(path).region("moon-1")["write_request_unit"] == VIRGINIA["write_request_unit"]
    broken: dict[str, Any] = document["regions"]["moon-1"]["prices"]
    del broken["storage_gb_month"]
    with pytest.raises(DesignError, match="moon-1 has no storage_gb_month"):
        parse(document)
    broken["storage_gb_month"] = broken["lunar_dust"] = broken["read_request_unit"]
    with pytest.raises(DesignError, match="unknown prices lunar_dust"):
        parse(document)


def test_the_planner_weighs_with_the_prices_of_the_file() -> None:
    us_east = prices("us-east-1")
    assert float(us_east["write_request_unit"]) == pytest.approx(weights.WRITE_UNIT_DOLLARS)
    assert float(us_east["read_request_unit"]) == pytest.approx(weights.READ_UNIT_DOLLARS)
    assert float(us_east["storage_gb_month"]) == pytest.approx(
        weights.STORAGE_BYTE_DOLLARS * 1024**3
    )

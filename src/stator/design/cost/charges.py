"""Charges: dollars for units, bytes and hours.

``on_demand``, ``provisioned``, ``reserved``, ``storage`` and the others turn quantities into
``Charge``s, one for each line of a bill; ``total`` adds them up. Units are counted in
``stator.design.capacity_units``; prices are in ``prices``.

All numbers are ``Decimal``: prices have up to ten decimal places, and a design has billions of
units a month. A month has 730 hours, as in the AWS Pricing Calculator; on a real bill it has 672 to
744 hours. A GB is 2**30 bytes. Taxes, data transfer and savings plans are not included.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal

from stator.design import capacity_units as units
from stator.design.capacity_units import Number
from stator.design.cost.prices import FreeTier, PriceName, RegionPrices, Years
from stator.errors import DesignError
from stator.model.scaling.target_tracking import USUAL_TARGET_PERCENT

TableClass = Literal["standard", "infrequent_access"]

MONTH_HOURS: Final = Decimal(units.MONTH_HOURS)
GB_BYTES: Final = Decimal(1024**3)

# "DynamoDB item sizes and formats" of the Developer Guide: what storage is billed for beyond the
# item's own size in a global table.
REPLICATED_ITEM_OVERHEAD_BYTES: Final = 48
# "Streams read request unit" of the pricing page: one GetRecords call returns up to 1 MB.
STREAM_READ_BYTES: Final = 1024**2

_HOURLY: Final[dict[str, PriceName]] = {
    "read": "read_capacity_hour",
    "write": "write_capacity_hour",
}


def _exact(value: Number) -> Decimal:
    """Return a number as the Decimal with the same digits: the float 0.7 becomes exactly 0.7."""
    return value if isinstance(value, Decimal) else Decimal(str(value))


def stored_bytes(items: Number, item_bytes: Number, *, replicated: bool = False) -> Decimal:
    """Return the bytes billed for storing a number of items or index entries.

    DynamoDB adds a fixed overhead to each item or entry, and a further overhead if the table is
    ``replicated``.
    """
    overhead = units.ITEM_OVERHEAD_BYTES + (REPLICATED_ITEM_OVERHEAD_BYTES if replicated else 0)
    return _exact(items) * (_exact(item_bytes) + overhead)


def capacity(
    average: Number,
    *,
    peak_to_average: Number = 1,
    utilisation: Number = USUAL_TARGET_PERCENT / 100,
    auto_scaling: bool = True,
) -> Decimal:
    """Return the capacity units to provision for an average load in units a second.

    ``utilisation`` is the share of the capacity that the load uses. With auto scaling, the capacity
    follows the load. Without it, the capacity must cover the peak all the time. The peak is
    ``peak_to_average`` times the average.
    """
    share = _exact(utilisation)
    if not 0 < share <= 1:
        raise DesignError(
            f"utilisation={utilisation} must be greater than 0 and at most 1",
            hint="use the share of capacity that is used, for example 0.7",
        )
    if _exact(peak_to_average) < 1:
        raise DesignError(
            f"peak_to_average={peak_to_average} must be 1 or more",
            hint="a peak cannot be below the average",
        )
    held = _exact(average) if auto_scaling else _exact(average) * _exact(peak_to_average)
    return max(Decimal(1), (held / share).to_integral_value(ROUND_CEILING))


# --- dollars --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Charge:
    """One charge: a quantity of ``what``, and the price of one unit in dollars."""

    what: str
    quantity: Decimal
    price: Decimal

    @property
    def dollars(self) -> Decimal:
        return self.quantity * self.price


def total(charges: Iterable[Charge]) -> Decimal:
    return sum((charge.dollars for charge in charges), Decimal(0))


def a_month(per_second: Number) -> Decimal:
    """Convert a rate per second into a quantity per month."""
    return _exact(per_second) * units.MONTH_SECONDS


def _charges(prices: RegionPrices, *lines: tuple[PriceName, Number]) -> tuple[Charge, ...]:
    return tuple(
        Charge(name, _exact(quantity), prices[name]) for name, quantity in lines if quantity
    )


def _of_class(name: str, table_class: TableClass) -> PriceName:
    prefix = "ia_" if table_class == "infrequent_access" else ""
    return f"{prefix}{name}"  # type: ignore[return-value]


def on_demand(
    prices: RegionPrices,
    *,
    read_units: Number = 0,
    write_units: Number = 0,
    replicated_write_units: Number = 0,
    table_class: TableClass = "standard",
) -> tuple[Charge, ...]:
    """Return the charges for request units.

    Writes to a replica of a global table are billed as replicated writes. Writes to its indexes are
    not.
    """
    return _charges(
        prices,
        (_of_class("read_request_unit", table_class), read_units),
        (_of_class("write_request_unit", table_class), write_units),
        (_of_class("replicated_write_request_unit", table_class), replicated_write_units),
    )


def provisioned(
    prices: RegionPrices,
    *,
    read_capacity: Number = 0,
    write_capacity: Number = 0,
    replicated_write_capacity: Number = 0,
    hours: Number = MONTH_HOURS,
    table_class: TableClass = "standard",
    free: FreeTier | None = None,
) -> tuple[Charge, ...]:
    """Return the charges for provisioned capacity that is kept for a number of hours.

    ``free`` is the unused part of the account's free tier, which covers the Standard class only.
    """
    read, write, lasting = _exact(read_capacity), _exact(write_capacity), _exact(hours)
    if free is not None and table_class == "standard":
        read, write = (
            max(Decimal(0), read - free.read_capacity),
            max(Decimal(0), write - free.write_capacity),
        )
    return _charges(
        prices,
        (_of_class("read_capacity_hour", table_class), read * lasting),
        (_of_class("write_capacity_hour", table_class), write * lasting),
        (
            _of_class("replicated_write_capacity_hour", table_class),
            _exact(replicated_write_capacity) * lasting,
        ),
    )


def reserved(
    prices: RegionPrices, *, read_capacity: Number = 0, write_capacity: Number = 0, years: Years = 1
) -> tuple[Charge, ...]:
    """Return the charges for one month of capacity that is reserved in whole blocks.

    A block has 100 units. Its upfront fee is spread over the term of ``years``. Units that do not
    fill a block are charged as provisioned capacity. Reserved capacity exists for the Standard
    class only, and not for replicated writes.
    """
    charges: list[Charge] = []
    kinds: tuple[tuple[Literal["read", "write"], Number], ...] = (
        ("read", read_capacity),
        ("write", write_capacity),
    )
    for kind, wanted in kinds:
        if not wanted:
            continue
        price = prices.reserved(kind, years)
        blocks, rest = divmod(_exact(wanted), price.units)
        if blocks:
            charges.append(
                Charge(f"reserved_{kind}_block_month", blocks, price.month(years, MONTH_HOURS))
            )
        charges += _charges(prices, (_HOURLY[kind], rest * MONTH_HOURS))
    return tuple(charges)


def storage(
    prices: RegionPrices,
    size_bytes: Number,
    *,
    table_class: TableClass = "standard",
    free: FreeTier | None = None,
) -> tuple[Charge, ...]:
    """Return the charges for a month of storage. See ``stored_bytes`` for what to count."""
    size = _exact(size_bytes) / GB_BYTES
    if free is not None and table_class == "standard":
        size = max(Decimal(0), size - free.storage_gb)
    return _charges(prices, (_of_class("storage_gb_month", table_class), size))


def backups(
    prices: RegionPrices,
    *,
    pitr_bytes: Number = 0,
    backup_bytes: Number = 0,
    cold_backup_bytes: Number = 0,
    restored_bytes: Number = 0,
    exported_bytes: Number = 0,
    imported_bytes: Number = 0,
) -> tuple[Charge, ...]:
    """Return the charges for a month of backups, restores, exports and imports.

    Backups and exports cover tables and local indexes. Restores cover all indexes, too.
    """
    return _charges(
        prices,
        ("pitr_gb_month", _exact(pitr_bytes) / GB_BYTES),
        ("backup_gb_month", _exact(backup_bytes) / GB_BYTES),
        ("cold_backup_gb_month", _exact(cold_backup_bytes) / GB_BYTES),
        ("restore_gb", _exact(restored_bytes) / GB_BYTES),
        ("export_gb", _exact(exported_bytes) / GB_BYTES),
        ("import_gb", _exact(imported_bytes) / GB_BYTES),
    )


def streams(
    prices: RegionPrices,
    *,
    reads: Number = 0,
    kinesis_units: Number = 0,
    free: FreeTier | None = None,
) -> tuple[Charge, ...]:
    """Return the charges for reading streams: GetRecords calls, and units captured into Kinesis.

    Calls by Lambda and global tables are free. One Kinesis unit is 1 KB of a change.
    """
    paid = _exact(reads) if free is None else max(Decimal(0), _exact(reads) - free.stream_reads)
    return _charges(prices, ("stream_read", paid), ("kinesis_capture_unit", kinesis_units))


def break_even_utilisation(
    prices: RegionPrices, kind: Literal["read", "write"] = "write"
) -> Decimal:
    """Return the utilisation at which provisioned capacity costs as much as on-demand."""
    if kind == "write":
        return prices["write_capacity_hour"] / 3600 / prices["write_request_unit"]
    return prices["read_capacity_hour"] / 3600 / prices["read_request_unit"]

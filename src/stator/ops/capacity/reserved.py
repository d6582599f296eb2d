"""Reserved capacity over all tables together: blocks of 100 units that pay for themselves.

AWS sells reserved capacity for an account and a region, not for a table. So the hours of all
tables with provisioned capacity of the Standard class are added up. Block k stands for the units
between 100 k and 100 (k + 1) of each hour. It pays if these units, at the hourly price, cost more
than the block. Later blocks are used less, so the first that does not pay is the last to ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from stator.design.cost.charges import MONTH_HOURS
from stator.design.cost.prices import PriceName, RegionPrices, Years
from stator.errors import DesignError
from stator.ops.capacity.replay import Replay
from stator.ops.capacity.use_series import KINDS, Kind, TableHistory

_HOUR_SECONDS: Final = 3600
_PRICES: Final[Mapping[Kind, PriceName]] = {
    "read": "read_capacity_hour",
    "write": "write_capacity_hour",
}


@dataclass(frozen=True, slots=True)
class ReservedBlocks:
    """Blocks of reads or writes that pay, and what they save and cost.

    ``saves`` is dollars a month, after the upfront fee spread over the term.
    ``pays_after_months`` is when the savings have paid the fee. ``break_even_share`` is the share
    of hours in which a block must be used to pay.
    """

    kind: Kind
    blocks: int
    years: Years
    block_units: int
    upfront: float
    saves: float
    pays_after_months: float
    break_even_share: float


def reserved_blocks(
    replays: Iterable[tuple[TableHistory, Replay]], prices: RegionPrices, years: Years
) -> tuple[ReservedBlocks, ...]:
    """Return the blocks of reads and of writes that cost less than they save in these replays.

    A region without prices of reserved capacity has none.
    """
    pairs = list(replays)
    found = [_blocks(kind, _hour_totals(pairs, kind), prices, years) for kind in KINDS]
    return tuple(each for each in found if each is not None)


def _hour_totals(pairs: list[tuple[TableHistory, Replay]], kind: Kind) -> list[float]:
    """Return the units in force in each clock hour, over all tables and indexes."""
    totals: dict[int, float] = defaultdict(float)
    for history, found in pairs:
        first = history.start // _HOUR_SECONDS
        for each in found.dimensions:
            if each.dimension.kind == kind:
                for at, (units, share) in enumerate(each.hours):
                    totals[first + at] += units * share
    return list(totals.values())


def _blocks(
    kind: Kind, hours: list[float], prices: RegionPrices, years: Years
) -> ReservedBlocks | None:
    try:
        price = prices.reserved(kind, years)
    except DesignError:
        return None
    hourly = float(prices[_PRICES[kind]])
    month = float(MONTH_HOURS)
    fee, running = float(price.upfront), float(price.hour) * month
    cost = float(price.month(years, MONTH_HOURS))
    count, saves, before_fee = 0, 0.0, 0.0
    while hours:
        low = count * price.units
        used = sum(min(price.units, max(0.0, units - low)) for units in hours) / len(hours)
        value = used * hourly * month
        if value <= cost:
            break
        count += 1
        saves += value - cost
        before_fee += value - running
    if count == 0:
        return None
    return ReservedBlocks(
        kind, count, years, price.units, fee * count, saves, fee * count / before_fee,
        break_even_share(prices, kind, years),
    )  # fmt: skip


def break_even_share(prices: RegionPrices, kind: Kind, years: Years) -> float:
    """Return the share of hours in which a block must be used to cost no more than it saves."""
    price = prices.reserved(kind, years)
    full = float(prices[_PRICES[kind]]) * price.units * float(MONTH_HOURS)
    return float(price.month(years, MONTH_HOURS)) / full

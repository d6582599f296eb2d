"""DynamoDB's prices by region, from dated data files.

    prices("eu-west-1")["write_request_unit"]     # Decimal("7.05E-7") dollars

Each number in a file names its source. A ``transcript`` is a public copy of AWS's price list, a
``tool`` is a program that includes prices. A ``recollection`` is a number from memory, and a
``derived`` number follows from the region's other prices; both are listed in ``doubtful``. A region
is in the file only if it has prices for reads, writes and storage. Its other prices may be missing:
asking for a missing price raises an error. ``price_file`` loads a file of your own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from stator.design.cost.prices.price_list import from_price_list, is_price_list, list_address
from stator.errors import DesignError

PriceName = Literal[
    "write_request_unit", "read_request_unit", "replicated_write_request_unit",
    "write_capacity_hour", "read_capacity_hour", "replicated_write_capacity_hour",
    "storage_gb_month",
    "ia_write_request_unit", "ia_read_request_unit", "ia_replicated_write_request_unit",
    "ia_write_capacity_hour", "ia_read_capacity_hour", "ia_replicated_write_capacity_hour",
    "ia_storage_gb_month", "pitr_gb_month", "backup_gb_month", "cold_backup_gb_month",
    "restore_gb", "export_gb", "import_gb",
    "stream_read", "kinesis_capture_unit",
]  # fmt: skip
NEEDED: tuple[PriceName, ...] = (
    "write_request_unit", "read_request_unit", "write_capacity_hour", "read_capacity_hour",
    "storage_gb_month",
)  # fmt: skip
Years = Literal[1, 3]
# The kinds of sources that no copy of AWS's price list confirms.
_DOUBTFUL = frozenset({"recollection", "derived"})


@dataclass(frozen=True, slots=True)
class ReservedPrice:
    """The price of a block of ``units`` reserved capacity units.

    ``upfront`` is paid once; ``hour`` is paid for each hour of the term.
    """

    upfront: Decimal
    hour: Decimal
    units: int

    def month(self, years: int, hours: Decimal) -> Decimal:
        """Return the monthly cost of a block, with the upfront fee spread over the term."""
        return self.upfront / (12 * years) + self.hour * hours


@dataclass(frozen=True, slots=True)
class FreeTier:
    """The monthly free tier of an account: Standard-class capacity and storage, stream reads."""

    write_capacity: Decimal
    read_capacity: Decimal
    storage_gb: Decimal
    stream_reads: Decimal


@dataclass(frozen=True, slots=True)
class RegionPrices:
    """The prices of one region, in dollars."""

    region: str
    name: str
    as_of: date
    known: Mapping[str, Decimal]
    reserved_known: Mapping[tuple[int, str], ReservedPrice]
    sources: Mapping[str, str]
    doubtful: frozenset[str]

    def __getitem__(self, name: PriceName) -> Decimal:
        found = self.known.get(name)
        if found is None:
            raise DesignError(
                f"the price {name} of {self.region} is not in the price file of {self.as_of}",
                hint=f"download AWS's price list, {list_address(self.region)}, and pass it: "
                "stator cost --prices index.json",
            )
        return found

    def __contains__(self, name: object) -> bool:
        return name in self.known

    def reserved(self, kind: Literal["read", "write"], years: Years) -> ReservedPrice:
        found = self.reserved_known.get((years, kind))
        if found is None:
            raise DesignError(
                f"the price of {years}-year reserved {kind} capacity in {self.region} is not in "
                f"the price file of {self.as_of}",
                hint=f"reserve for another term, or download AWS's price list, "
                f"{list_address(self.region)}, and pass it: stator cost --prices index.json",
            )
        return found


@dataclass(frozen=True, slots=True)
class PriceFile:
    """AWS's prices by region, as of one day."""

    as_of: date
    free_tier: FreeTier
    regions: Mapping[str, RegionPrices]

    def region(self, name: str) -> RegionPrices:
        found = self.regions.get(name)
        if found is None:
            raise DesignError(
                f"no prices for region {name!r} in the price file of {self.as_of}",
                hint=f"choose {' or '.join(sorted(self.regions))} with --region, or download AWS's "
                f"price list, {list_address(name)}, and pass it: stator cost --prices index.json",
            )
        return found


def prices(region: str = "us-east-1") -> RegionPrices:
    """Return the newest prices of a region that come with Stator."""
    return price_file().region(region)


@cache
def price_file(path: Path | None = None) -> PriceFile:
    """Return the price file at ``path``, or the newest one in the package.

    The file may also be AWS's own price list of DynamoDB for one region (see ``price_list``).
    """
    if path is not None:
        try:
            document = json.loads(path.read_text())
            if is_price_list(document):
                document = from_price_list(document, _newest()["free_tier"])
            return parse(document)
        except OSError as error:
            raise DesignError(
                f"the price file {path} cannot be read: {error.strerror}",
                hint="check its path, or leave it out for the prices that come with Stator",
            ) from error
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise DesignError(
                f"{path} is not a price file: {problem}",
                hint="see the package's own files in stator/design/cost/prices for the form, or "
                "pass AWS's price list of AmazonDynamoDB",
            ) from error
    return parse(_newest())


def _newest() -> Any:
    """Return the content of the newest price file in the package."""
    names = sorted(
        entry.name for entry in resources.files(__name__).iterdir() if entry.name.endswith(".json")
    )
    return json.loads(resources.files(__name__).joinpath(names[-1]).read_text())


def parse(document: Mapping[str, Any]) -> PriceFile:
    as_of = date.fromisoformat(document["as_of"])
    free = {
        name: Decimal(value) for name, value in document["free_tier"].items() if name != "sources"
    }
    sources: dict[str, Any] = document["sources"]
    regions = {
        name: _region(name, content, as_of, sources)
        for name, content in document["regions"].items()
    }
    return PriceFile(as_of, FreeTier(**free), regions)


def _region(
    region: str, content: Mapping[str, Any], as_of: date, sources: Mapping[str, Any]
) -> RegionPrices:
    listed: dict[str, Any] = content["prices"]
    unknown = listed.keys() - set(get_args(PriceName))
    missing = [name for name in NEEDED if name not in listed]
    if unknown or missing:
        problem = (
            f"unknown prices {', '.join(sorted(unknown))}"
            if unknown
            else f"no {', '.join(missing)}"
        )
        raise DesignError(
            f"price file of {as_of}: {region} has {problem}",
            hint="the files in stator/design/cost/prices show which prices a region has",
        )
    reserved: dict[tuple[int, str], ReservedPrice] = {}
    for years, kinds in content.get("reserved", {}).get("years", {}).items():
        for kind, price in kinds.items():
            reserved[int(years), kind] = ReservedPrice(
                Decimal(price["upfront"]), Decimal(price["hour"]), content["reserved"]["units"]
            )
    return RegionPrices(
        region,
        content["name"],
        as_of,
        {name: Decimal(price["usd"]) for name, price in listed.items()},
        reserved,
        {name: sources[price["source"]]["text"] for name, price in listed.items()},
        frozenset(
            name for name, price in listed.items() if sources[price["source"]]["kind"] in _DOUBTFUL
        ),
    )

"""AWS's own price list for DynamoDB as a price file.

AWS publishes a file for each region, which anybody can download:

    https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonDynamoDB/current/eu-north-1/index.json

``from_price_list`` reads such a file, so that ``stator cost --prices index.json`` knows a region or
a day that the package's own file does not have. A price is found by its usage type, such as
``EUN1-WriteRequestUnits``; the part before the dash names the region. If a price has tiers, such as
25 GB of free storage first, the price of the last tier is used. A reserved unit has a fee paid
once, in the unit ``Quantity``, and a price for each hour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from stator.errors import DesignError

OFFER: Final = "AmazonDynamoDB"
_USAGE_TYPES: Final = {
    "WriteRequestUnits": "write_request_unit",
    "ReadRequestUnits": "read_request_unit",
    "ReplWriteRequestUnits": "replicated_write_request_unit",
    "WriteCapacityUnit-Hrs": "write_capacity_hour",
    "ReadCapacityUnit-Hrs": "read_capacity_hour",
    "TimedStorage-ByteHrs": "storage_gb_month",
    "IA-WriteRequestUnits": "ia_write_request_unit",
    "IA-ReadRequestUnits": "ia_read_request_unit",
    "IA-WriteCapacityUnit-Hrs": "ia_write_capacity_hour",
    "IA-ReadCapacityUnit-Hrs": "ia_read_capacity_hour",
    "IA-TimedStorage-ByteHrs": "ia_storage_gb_month",
    "TimedPITRStorage-ByteHrs": "pitr_gb_month",
    "TimedBackupStorage-ByteHrs": "backup_gb_month",
    "RestoreDataSize-Bytes": "restore_gb",
    "ExportDataSize-Bytes": "export_gb",
    "ImportDataSize-Bytes": "import_gb",
    "Streams-Requests": "stream_read",
    "ChangeDataCaptureUnits-Kinesis": "kinesis_capture_unit",
    "ReplWriteCapacityUnit-Hrs": "replicated_write_capacity_hour",
    "IA-ReplWriteRequestUnits": "ia_replicated_write_request_unit",
    "IA-ReplWriteCapacityUnit-Hrs": "ia_replicated_write_capacity_hour",
}
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-understanding-billing.html"""
_RESERVED: Final = {"write_capacity_hour": "write", "read_capacity_hour": "read"}
_YEARS: Final = {"1yr": "1", "3yr": "3"}
_BLOCK: Final = 100
"""Reserved capacity is sold in blocks of 100 units. The list has the price of one unit."""
_REGION: Final = re.compile(r"[A-Z]{2,4}[0-9]?-")


def list_address(region: str) -> str:
    """Return the address from which anybody can download the price list of a region."""
    return (
        "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/"
        f"{OFFER}/current/{region}/index.json"
    )


def is_price_list(document: Any) -> bool:
    return isinstance(document, Mapping) and document.get("offerCode") == OFFER


def from_price_list(document: Mapping[str, Any], free_tier: Mapping[str, Any]) -> dict[str, Any]:
    """Return AWS's price list in the form of a price file.

    AWS's list does not contain the free tier. ``free_tier`` is taken from another price file.
    """
    regions: dict[str, dict[str, Any]] = {}
    terms, reserved = document["terms"]["OnDemand"], document["terms"].get("Reserved", {})
    for sku, product in document["products"].items():
        attributes = product["attributes"]
        name = _price_name(attributes.get("usagetype", ""))
        code = attributes.get("regionCode")
        if name is None or not code or sku not in terms:
            continue
        region = regions.setdefault(code, {"name": attributes.get("location", code), "prices": {}})
        region["prices"][name] = {"usd": str(_last_step(terms[sku])), "source": "list"}
        if name in _RESERVED:
            _add_reserved(region, _RESERVED[name], reserved.get(sku, {}))
    if not regions:
        raise DesignError(
            "the price list has no prices of DynamoDB requests",
            hint=f"download the file of {OFFER} for your region",
        )
    published = str(document["publicationDate"])
    text = f"AWS Price List, {OFFER}, published {published}"
    return {
        "as_of": published[:10],
        "free_tier": dict(free_tier),
        "sources": {"list": {"kind": "transcript", "text": text}},
        "regions": regions,
    }


def _add_reserved(region: dict[str, Any], kind: str, offers: Mapping[str, Any]) -> None:
    """Add the prices of blocks of reserved capacity to a region, from the offers of one product."""
    for offer in offers.values():
        years = _YEARS.get(offer.get("termAttributes", {}).get("LeaseContractLength", ""))
        steps = list(offer["priceDimensions"].values())
        once = [step for step in steps if step.get("unit") == "Quantity"]
        hourly = [step for step in steps if step.get("unit") != "Quantity"]
        if years is None or not once or not hourly:
            continue
        found = region.setdefault("reserved", {"source": "list", "units": _BLOCK, "years": {}})
        found["years"].setdefault(years, {})[kind] = {
            "upfront": str(_usd(once[0]) * _BLOCK),
            "hour": str(_usd(hourly[0]) * _BLOCK),
        }


def _price_name(usage_type: str) -> str | None:
    """Return the name of the price for a usage type.

    ``EUN1-WriteRequestUnits`` has the price ``write_request_unit``. Returns None for a usage type
    whose price Stator does not use.
    """
    if usage_type in _USAGE_TYPES:
        return _USAGE_TYPES[usage_type]
    region = _REGION.match(usage_type)
    return None if region is None else _USAGE_TYPES.get(usage_type[region.end() :])


def _last_step(offers: Mapping[str, Any]) -> Decimal:
    steps = [step for offer in offers.values() for step in offer["priceDimensions"].values()]
    last = max(steps, key=lambda step: Decimal(step.get("beginRange", "0")))
    return _usd(last)


def _usd(step: Mapping[str, Any]) -> Decimal:
    return Decimal(step["pricePerUnit"]["USD"])

"""AWS's price list of one region, as a user downloads it, read as a price file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stator.design.cost.prices import price_file
from stator.design.cost.report import cost
from stator.errors import DesignError

from . import models

# Usage types and steps as in the list; the prices are made up.
LISTED: list[tuple[str, list[tuple[str, str]]]] = [
    ("EUN1-WriteRequestUnits", [("0", "0.0000007")]),
    ("EUN1-ReadRequestUnits", [("0", "0.00000014")]),
    ("EUN1-ReplWriteRequestUnits", [("0", "0.0000008")]),
    ("EUN1-WriteCapacityUnit-Hrs", [("0", "0"), ("18600", "0.0007")]),
    ("EUN1-ReadCapacityUnit-Hrs", [("0", "0"), ("18600", "0.00014")]),
    ("EUN1-TimedStorage-ByteHrs", [("25", "0.27"), ("0", "0")]),
    ("EUN1-IA-TimedStorage-ByteHrs", [("0", "0.11")]),
    ("EUN1-TimedPITRStorage-ByteHrs", [("0", "0.21")]),
    ("EUN1-SomethingElse", [("0", "9")]),
]


def a_list(listed: list[tuple[str, list[tuple[str, str]]]] = LISTED) -> dict[str, Any]:
    products, terms = {}, {}
    for at, (usage_type, steps) in enumerate(listed):
        attributes = {
            "usagetype": usage_type,
            "regionCode": "eu-north-1",
            "location": "EU (Stockholm)",
        }
        products[f"SKU{at}"] = {"sku": f"SKU{at}", "attributes": attributes}
        dimensions = {
            f"SKU{at}.{number}": {"beginRange": start, "pricePerUnit": {"USD": usd}}
            for number, (start, usd) in enumerate(steps)
        }
        terms[f"SKU{at}"] = {f"SKU{at}.JRTC": {"priceDimensions": dimensions}}
    return {
        "offerCode": "AmazonDynamoDB",
        "publicationDate": "2026-10-12T09:00:00Z",
        "products": products,
        "terms": {"OnDemand": terms},
    }


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "index.json"
    path.write_text(json.dumps(document))
    return path


def test_a_price_list_gives_the_prices_of_its_region(tmp_path: Path) -> None:
    found = price_file(written(tmp_path, a_list())).region("eu-north-1")
    assert (found.name, found.as_of.isoformat()) == ("EU (Stockholm)", "2026-10-12")
    assert found["write_request_unit"] == Decimal("0.0000007")
    assert found["storage_gb_month"] == Decimal("0.27")  # the step after the free one
    assert found["ia_storage_gb_month"] == Decimal("0.11")
    assert found["write_capacity_hour"] == Decimal("0.0007")
    assert not found.doubtful
    with pytest.raises(DesignError, match="backup_gb_month of eu-north-1 is not in"):
        _ = found["backup_gb_month"]


def test_a_design_is_priced_by_a_price_list(tmp_path: Path) -> None:
    known = price_file(written(tmp_path, a_list()))
    report = cost(models.routers(), known=known, region="eu-north-1", pitr=True)
    assert report.prices_as_of == "2026-10-12"
    assert report.total > models.routers().cost(pitr=True).total


def test_a_list_without_needed_prices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="no prices of DynamoDB requests"):
        price_file(written(tmp_path, a_list([])))
    with pytest.raises(DesignError, match="eu-north-1 has no read_request_unit"):
        price_file(written(tmp_path, a_list(LISTED[:1])))

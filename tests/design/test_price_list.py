"""AWS's price list of one region, as a user downloads it, read as a price file."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stator.design.cost.prices import price_file, prices
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
    ("EUN1-RestoreDataSize-Bytes", [("0", "0.161")]),
    ("EUN1-ExportDataSize-Bytes", [("0", "0.11")]),
    ("EUN1-IncrementalExportDataSize-Bytes", [("0", "8")]),
    ("EUN1-ImportDataSize-Bytes", [("0", "0.16")]),
    ("EUN1-Streams-Requests", [("0", "0"), ("2500000", "0.00000021")]),
    ("EUN1-ChangeDataCaptureUnits-Kinesis", [("0", "0.00000011")]),
    ("EUN1-IA-ReplWriteRequestUnits", [("0", "0.0000009")]),
    ("EUN1-ReplWriteCapacityUnit-Hrs", [("0", "0"), ("18600", "0.00071")]),
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
    reserved = {
        f"SKU{at}": {
            f"SKU{at}.{term}": {
                "termAttributes": {"LeaseContractLength": term, "PurchaseOption": "Heavy"},
                "priceDimensions": {
                    "fee": {"unit": "Quantity", "pricePerUnit": {"USD": "1.61"}},
                    "hour": {"unit": "WriteCapacityUnit-Hrs", "pricePerUnit": {"USD": "0.000138"}},
                },
            }
            for term in ("1yr", "2yr")
        }
        for at, (usage_type, _) in enumerate(listed)
        if usage_type == "EUN1-WriteCapacityUnit-Hrs"
    }
    return {
        "offerCode": "AmazonDynamoDB",
        "publicationDate": "2026-10-12T09:00:00Z",
        "products": products,
        "terms": {"OnDemand": terms, "Reserved": reserved},
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


def test_a_price_list_has_backups_streams_and_reserved_capacity(tmp_path: Path) -> None:
    found = price_file(written(tmp_path, a_list())).region("eu-north-1")
    assert found["restore_gb"] == Decimal("0.161")
    assert found["export_gb"] == Decimal("0.11")  # the full export, not the incremental one
    assert found["import_gb"] == Decimal("0.16")
    assert found["stream_read"] == Decimal("0.00000021")  # after the free ones
    assert found["kinesis_capture_unit"] == Decimal("0.00000011")
    assert found["ia_replicated_write_request_unit"] == Decimal("0.0000009")
    assert found["replicated_write_capacity_hour"] == Decimal("0.00071")
    block = found.reserved("write", 1)
    assert (block.units, block.upfront, block.hour) == (100, Decimal(161), Decimal("0.0138"))
    with pytest.raises(DesignError, match="3-year reserved write capacity in eu-north-1"):
        found.reserved("write", 3)


@pytest.mark.parametrize("region", ["eu-west-1", "eu-central-9"])
def test_a_missing_price_names_the_list_to_download(region: str) -> None:
    with pytest.raises(DesignError) as caught:
        prices(region)["ia_write_request_unit"]
    assert f"/AmazonDynamoDB/current/{region}/index.json" in str(caught.value.hint)
    assert "stator cost --prices" in str(caught.value.hint)

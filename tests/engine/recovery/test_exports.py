"""Exports: AWS's files, to the name and the field, and what is in them."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from hashlib import md5
from typing import Any

import amazon.ion.simpleion as ion
import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    AccessDenied,
    ExportConflict,
    ExportNotFound,
    InvalidExportTime,
    RecoveryUnavailable,
    TableNotFound,
    ValidationFailed,
)

from .world import ARN, START, World, item

RICH = item(
    "rich",
    1,
    text={"S": 'a "quoted"\nline é'},
    number={"N": "-12.50"},
    large={"N": "1E+100"},
    small={"N": "1E-100"},
    binary={"B": "aGVsbG8="},
    yes={"BOOL": True},
    nothing={"NULL": True},
    names={"SS": ["a", "b"]},
    numbers={"NS": ["1", "2.5"]},
    binaries={"BS": ["YQ==", "Yg=="]},
    list={"L": [{"S": "x"}, {"L": []}, {"NULL": True}]},
    map={"M": {"inner": {"M": {"deep": {"N": "1"}}}, "odd name": {"S": ""}}},
)


def base64_md5(content: bytes) -> str:
    return b64encode(md5(content).digest()).decode()


def fill(world: World) -> None:
    world.create()
    world.enable()
    world.put(RICH, *(item(f"p{number}", number, g={"S": "x"}) for number in range(20)))


@pytest.mark.parametrize("prefix", [None, "2026/october"])
@pytest.mark.parametrize("export_format", [None, "ION"])
def test_a_full_export_has_the_files_of_aws(
    world: World, prefix: str | None, export_format: str | None
) -> None:
    fill(world)
    options = {"S3Prefix": prefix, "ExportFormat": export_format}
    described = world.export(
        **{member: value for member, value in options.items() if value is not None}
    )
    identity = described["ExportArn"].rpartition("/")[2]
    root = f"{prefix}/AWSDynamoDB/{identity}" if prefix else f"AWSDynamoDB/{identity}"
    folder = world.bucket / root
    assert {path.name for path in folder.iterdir()} == {
        "_started",
        "data",
        "manifest-files.json",
        "manifest-files.md5",
        "manifest-summary.json",
        "manifest-summary.md5",
    }
    assert (folder / "_started").read_bytes() == b""
    for name in ("manifest-files", "manifest-summary"):
        assert (folder / f"{name}.md5").read_text() == base64_md5(
            (folder / f"{name}.json").read_bytes()
        )
    summary = json.loads((folder / "manifest-summary.json").read_bytes())
    assert summary == {
        "version": "2020-06-30",
        "exportArn": described["ExportArn"],
        "startTime": "2026-10-08T20:00:00.000Z",
        "endTime": "2026-10-08T20:00:00.000Z",
        "tableArn": ARN + "orders",
        "tableId": world.call("DescribeTable", TableName="orders")["Table"]["TableId"],
        "exportTime": "2026-10-08T20:00:00.000Z",
        "s3Bucket": "exports",
        "s3Prefix": prefix,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"{root}/manifest-files.json",
        "billedSizeBytes": described["BilledSizeBytes"],
        "itemCount": 21,
        "outputFormat": export_format or "DYNAMODB_JSON",
    }
    assert (
        described["BilledSizeBytes"]
        == world.call("DescribeTable", TableName="orders")["Table"]["TableSizeBytes"]
    )
    files = world.files(described)
    assert sum(entry["itemCount"] for entry, _ in files) == 21
    assert {path.name for path in (folder / "data").iterdir()} == {
        entry["dataFileS3Key"].rpartition("/")[2] for entry, _ in files
    }
    for entry, content in files:
        assert entry["dataFileS3Key"].startswith(f"{root}/data/")
        assert entry["dataFileS3Key"].endswith(".ion.gz" if export_format else ".json.gz")
        assert entry["md5Checksum"] == base64_md5(content)
        assert entry["etag"] == md5(content).hexdigest()
        assert gzip.decompress(content).count(b"\n") == entry["itemCount"]
    if export_format is None:
        assert world.exported(described) == world.items()


def test_an_export_is_described_as_on_aws(world: World) -> None:
    fill(world)
    described = world.export(ClientToken="token-1", ExportTime=START, S3BucketOwner="123456789012")
    assert described == {
        "ExportArn": described["ExportArn"],
        "ExportStatus": "COMPLETED",
        "StartTime": START,
        "EndTime": START,
        "ExportManifest": described["ExportManifest"],
        "TableArn": ARN + "orders",
        "TableId": described["TableId"],
        "ExportTime": START,
        "ClientToken": "token-1",
        "S3Bucket": "exports",
        "S3BucketOwner": "123456789012",
        "S3SseAlgorithm": "AES256",
        "ExportFormat": "DYNAMODB_JSON",
        "BilledSizeBytes": described["BilledSizeBytes"],
        "ItemCount": 21,
    }
    assert described["ExportManifest"].endswith("/manifest-summary.json")


def test_ion_has_the_types_of_aws(world: World) -> None:
    world.create()
    world.enable()
    world.put(item("a", 600, tags={"SS": ["x", "y"]}, price={"N": "2000"}, blob={"B": "aGk="}))
    content = b"".join(
        gzip.decompress(file) for _, file in world.files(world.export(ExportFormat="ION"))
    )
    assert content.startswith(b"$ion_1_0 {Item:{")
    assert b'tags:$dynamodb_SS::["x","y"]' in content and b"blob:{{aGk=}}" in content
    [struct] = ion.loads(content.decode(), single_value=False)
    assert struct["Item"]["price"].ion_type.name == "DECIMAL"


def test_an_incremental_export_tells_what_became_of_each_item(world: World) -> None:
    fill(world)
    world.clock.advance(1000)
    since = world.clock.now()
    world.put(item("p1", 1, v={"N": "1"}))
    world.put(item("p1", 1, v={"N": "2"}), item("new", 1))
    world.delete("p2", 2)
    world.put(item("brief", 1))
    world.delete("brief", 1)
    world.clock.advance(1000)
    described = world.export_changes(since, S3Prefix="changes")
    stamp = {"Metadata": {"WriteTimestampMicros": {"N": str(int(since * 1_000_000))}}}
    expected = [
        {**stamp, "Keys": item("new", 1), "NewImage": item("new", 1)},
        {
            **stamp,
            "Keys": item("p1", 1),
            "OldImage": item("p1", 1, g={"S": "x"}),
            "NewImage": item("p1", 1, v={"N": "2"}),
        },
        {**stamp, "Keys": item("p2", 2), "OldImage": item("p2", 2, g={"S": "x"})},
    ]
    found = sorted(world.lines(described), key=lambda line: str(line["Keys"]["pk"]["S"]))
    assert found == expected
    assert described["ExportType"] == "INCREMENTAL_EXPORT" and "ExportTime" not in described
    assert described["IncrementalExportSpecification"] == {
        "ExportFromTime": since,
        "ExportToTime": world.clock.now(),
        "ExportViewType": "NEW_AND_OLD_IMAGES",
    }
    summary = json.loads((world.bucket / described["ExportManifest"]).read_bytes())
    assert (summary["version"], summary["exportType"]) == ("2023-08-01", "INCREMENTAL_EXPORT")
    assert summary["outputView"] == "NEW_AND_OLD_IMAGES" and "exportTime" not in summary
    assert (summary["exportFromTime"], summary["exportToTime"]) == (
        "2026-10-08T20:16:40.000Z",
        "2026-10-08T20:33:20.000Z",
    )
    for entry, _ in world.files(described):
        assert entry["dataFileS3Key"].startswith("changes/AWSDynamoDB/data/")
    assert not (world.bucket / described["ExportManifest"]).with_name("data").exists()


def test_the_end_of_a_window_is_not_part_of_it_and_its_start_is(world: World) -> None:
    fill(world)
    world.clock.advance(1000)
    start = world.clock.now()
    world.put(item("first", 1))
    world.clock.advance(900)
    world.put(item("last", 1))
    world.clock.advance(1000)
    found = world.lines(world.export_changes(start, start + 900, ExportViewType="NEW_IMAGE"))
    assert [line["Keys"]["pk"]["S"] for line in found] == ["first"]


def test_windows_and_moments_outside_of_the_history_are_refused(world: World) -> None:
    fill(world)
    world.clock.advance(3 * 86_400)
    now = world.clock.now()

    def refused(**options: Any) -> str:
        return world.refused(
            "ExportTableToPointInTime",
            InvalidExportTime,
            TableArn=ARN + "orders",
            S3Bucket="exports",
            **options,
        )

    def window(start: float, end: float) -> dict[str, Any]:
        specification = {"ExportFromTime": start, "ExportToTime": end}
        return {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": specification}

    refused(ExportTime=START - 1)
    refused(ExportTime=now + 1)
    refused(**window(START - 10, START + 3600))
    refused(**window(now - 1000, now + 1))
    assert refused(**window(now - 899, now)).startswith("Difference between export period")
    assert refused(**window(now - 86_401, now)).startswith("Difference between export period")


def test_what_an_export_needs(world: World) -> None:
    world.create()
    asked = {"TableArn": ARN + "orders", "S3Bucket": "exports"}
    world.refused("ExportTableToPointInTime", RecoveryUnavailable, **asked)
    world.refused(
        "ExportTableToPointInTime", TableNotFound, **asked | {"TableArn": ARN + "missing"}
    )
    for wrong in (
        {"ExportType": "INCREMENTAL_EXPORT"},
        {"IncrementalExportSpecification": {"ExportFromTime": START}},
        {"ExportFormat": "CSV"},
        {"S3Bucket": ""},
        {"S3Prefix": ""},
        {"TableArn": "orders"},
        {"S3SseKmsKeyId": "key"},
        {"FilterSpecification": {"FilterExpression": "g = :missing"}},
    ):
        world.refused("ExportTableToPointInTime", ValidationFailed, **asked | wrong)


def test_a_bucket_that_is_not_there_fails_the_export(world: World) -> None:
    fill(world)
    arn = world.call("ExportTableToPointInTime", TableArn=ARN + "orders", S3Bucket="nowhere")[
        "ExportDescription"
    ]["ExportArn"]
    world.settle()
    described = world.call("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (described["ExportStatus"], described["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert "bucket does not exist" in described["FailureMessage"]
    world.call("DeleteTable", TableName="orders")  # nothing holds on to the table


def test_an_engine_without_buckets_says_how_to_give_it_some() -> None:
    with Engine.open(clock=VirtualClock(START)) as engine:
        world = World(engine, VirtualClock(START), None)  # type: ignore[arg-type]  # no buckets
        fill(world)
        described = world.export()
    assert (
        described["FailureCode"] == "S3NoSuchBucket" and "--buckets" in described["FailureMessage"]
    )


def test_a_client_token_makes_one_export_of_many_requests(world: World) -> None:
    fill(world)
    first = world.export(ClientToken="once")
    assert world.export(ClientToken="once") == first
    for change in (
        {"S3Prefix": "x"},
        {"ExportFormat": "ION"},
        {"ExportTime": START},
        {"S3BucketOwner": "0" * 12},
    ):
        with pytest.raises(ExportConflict, match="Duplicate request detected"):
            world.export(ClientToken="once", **change)
    world.clock.advance(8 * 3600)
    assert world.export(ClientToken="once")["ExportArn"] != first["ExportArn"]
    assert world.export()["ExportArn"] != world.export()["ExportArn"]


def test_exports_are_listed_in_pages_for_90_days(world: World) -> None:
    fill(world)
    arns = []
    for _ in range(5):
        arns.append(world.export()["ExportArn"])
        world.clock.advance(1)
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {}
    while True:
        page = world.call("ListExports", MaxResults=2, TableArn=ARN + "orders", **request)
        assert len(page["ExportSummaries"]) <= 2
        found += page["ExportSummaries"]
        if "NextToken" not in page:
            break
        request = {"NextToken": page["NextToken"]}
    assert found == [
        {"ExportArn": arn, "ExportStatus": "COMPLETED", "ExportType": "FULL_EXPORT"}
        for arn in reversed(arns)
    ]
    assert world.call("ListExports", TableArn=ARN + "other")["ExportSummaries"] == []
    world.refused("ListExports", ValidationFailed, NextToken="nonsense")
    world.clock.advance(91 * 86_400)
    assert world.call("ListExports")["ExportSummaries"] == []


# Both seen on AWS by ScyllaDB's test suite.
def test_exports_are_listed_by_table_the_newest_first(world: World) -> None:
    fill(world)
    world.create(TableName="another")
    world.enable("another")
    arns = []
    for name in ("orders", "another", "orders", "another"):
        started = world.call("ExportTableToPointInTime", TableArn=ARN + name, S3Bucket="exports")
        arns.append(started["ExportDescription"]["ExportArn"])
        world.settle()
        world.clock.advance(1)
    listed = [each["ExportArn"] for each in world.call("ListExports")["ExportSummaries"]]
    assert listed == [arns[3], arns[1], arns[2], arns[0]]


def test_exports_of_a_deleted_table_are_described_but_not_listed_for_it(world: World) -> None:
    fill(world)
    arn = world.export()["ExportArn"]
    world.call("DeleteTable", TableName="orders")
    world.create()
    assert world.call("ListExports", TableArn=ARN + "orders")["ExportSummaries"] == []
    assert (
        world.call("DescribeExport", ExportArn=arn)["ExportDescription"]["TableArn"]
        == ARN + "orders"
    )


def test_exports_that_are_not_there(world: World) -> None:
    world.create()
    missing = ARN + "orders/export/01791489600000-00000000"
    world.refused("DescribeExport", ExportNotFound, ExportArn=missing)
    assert (
        world.refused("DescribeExport", ValidationFailed, ExportArn=ARN + "orders")
        == "Invalid Export ARN"
    )
    world.refused(
        "DescribeExport", AccessDenied, ExportArn=missing.replace("us-east-1", "eu-west-1")
    )


def test_a_filter_chooses_items_and_attributes(world: World) -> None:
    world.create()
    world.enable()
    world.put(
        *(
            item(pk, number, g={"S": "xy"[number % 2]}, n={"N": str(number)})
            for pk in "ab"
            for number in range(6)
        )
    )

    def keys(**specification: Any) -> set[tuple[str, str]]:
        return set(world.exported(world.export(FilterSpecification=specification)))

    values = {":x": {"S": "x"}, ":a": {"S": "a"}, ":two": {"N": "2"}}
    assert keys(FilterExpression="g = :x", ExpressionAttributeValues={":x": values[":x"]}) == {
        (pk, str(number)) for pk in "ab" for number in (0, 2, 4)
    }
    assert keys(
        KeyConditionExpression="pk = :a AND #s > :two",
        FilterExpression="g = :x",
        ExpressionAttributeNames={"#s": "sk"},
        ExpressionAttributeValues=values,
    ) == {("a", "4")}
    described = world.export(FilterSpecification={"ProjectionExpression": "pk, sk, n"})
    assert world.exported(described)["a", "3"] == item("a", 3, n={"N": "3"})
    assert described["FilterSpecification"] == {"ProjectionExpression": "pk, sk, n"}
    with pytest.raises(ValidationFailed, match="non-primary key"):
        specification = {"KeyConditionExpression": "pk = :a", "FilterExpression": "sk = :two"}
        used = {":a": values[":a"], ":two": values[":two"]}
        world.export(FilterSpecification={**specification, "ExpressionAttributeValues": used})


def test_a_filter_of_changes_looks_at_both_images(world: World) -> None:
    world.create()
    world.enable()
    world.put(
        item("in", 1, g={"S": "x"}), item("out", 1, g={"S": "x"}), item("never", 1, g={"S": "y"})
    )
    world.clock.advance(1000)
    since = world.clock.now()
    world.put(
        item("in", 1, g={"S": "x"}, n={"N": "1"}), item("out", 1, g={"S": "y"}), item("never", 1)
    )
    world.clock.advance(1000)
    chosen = {"FilterExpression": "g = :x", "ExpressionAttributeValues": {":x": {"S": "x"}}}
    found = world.lines(world.export_changes(since, FilterSpecification=chosen))
    assert sorted(line["Keys"]["pk"]["S"] for line in found) == ["in", "out"]


def test_a_bucket_may_be_a_link_to_a_folder_elsewhere(world: World) -> None:
    elsewhere = world.bucket.parent.parent / "elsewhere"
    elsewhere.mkdir()
    world.bucket.rmdir()
    world.bucket.symlink_to(elsewhere)
    fill(world)
    export = world.export()
    assert export["ExportStatus"] == "COMPLETED"
    assert len(world.exported(export)) == 21


def test_a_link_in_a_bucket_does_not_lead_out_of_it(world: World) -> None:
    outside = world.bucket.parent.parent / "outside"
    outside.mkdir()
    (world.bucket / "AWSDynamoDB").symlink_to(outside)
    fill(world)
    export = world.export()
    assert (export["ExportStatus"], export["FailureCode"]) == ("FAILED", "S3AccessDenied")
    assert not list(outside.iterdir())

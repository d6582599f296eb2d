"""Imports: every format and compression, what is refused and counted, and what is left of it."""

from __future__ import annotations

import gzip
import json
import logging
import sys
from typing import Any

import amazon.ion.simpleion as ion
import pytest
import zstandard

from stator.errors import ImportConflict, ImportNotFound, ResourceInUse, ValidationFailed

from .test_exports import RICH
from .test_exports import fill as fill_table
from .world import ARN, CREATE, START, World, item

TABLE = {name: value for name, value in CREATE.items() if name != "LocalSecondaryIndexes"} | {"TableName": "imported"}


def run(world: World, prefix: str, **options: Any) -> dict[str, Any]:
    request = {
        "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": prefix},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
    } | options
    started = world.call("ImportTable", **request)["ImportTableDescription"]
    assert started["ImportStatus"] == "IN_PROGRESS"
    world.settle()
    described: dict[str, Any] = world.call("DescribeImport", ImportArn=started["ImportArn"])["ImportTableDescription"]
    return described


def place(world: World, key: str, content: bytes | str) -> None:
    path = world.bucket / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def counts(described: dict[str, Any]) -> tuple[int, int, int]:
    return described["ProcessedItemCount"], described["ImportedItemCount"], described["ErrorCount"]


def json_line(*items: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"Item": each}).encode() + b"\n" for each in items)


@pytest.mark.parametrize("export_format", ["DYNAMODB_JSON", "ION"])
def test_an_export_imports_again_as_it_was(world: World, export_format: str) -> None:
    fill_table(world)
    export = world.export(ExportFormat=export_format)
    prefix = export["ExportManifest"].replace("manifest-summary.json", "data/")
    described = run(world, prefix, InputFormat=export_format, InputCompressionType="GZIP")
    assert described["ImportStatus"] == "COMPLETED" and counts(described) == (21, 21, 0)
    assert world.items("imported") == world.items()
    table = world.call("DescribeTable", TableName="imported")["Table"]
    assert (table["ItemCount"], table["TableStatus"]) == (21, "ACTIVE")
    assert len(world.items("imported", "by-g")) == 20


@pytest.mark.parametrize(
    ("compression", "compress"),
    [("NONE", bytes), ("GZIP", gzip.compress), ("ZSTD", lambda data: zstandard.ZstdCompressor().compress(data))],
)
def test_every_compression_is_read(world: World, compression: str, compress: Any) -> None:
    place(world, "in/one", compress(json_line(item("a", 1), item("a", 2))))
    place(world, "in/two", compress(json_line(item("b", 1))))
    described = run(world, "in/", InputCompressionType=compression)
    assert described["ImportStatus"] == "COMPLETED"
    assert set(world.items("imported")) == {("a", "1"), ("a", "2"), ("b", "1")}


def test_binary_ion_is_read(world: World) -> None:
    place(world, "in/one.ion", ion.dumps({"Item": {"pk": "a", "sk": 12}}, binary=True))
    assert run(world, "in/", InputFormat="ION")["ImportStatus"] == "COMPLETED"
    assert world.items("imported") == {("a", "12"): item("a", 12)}


def test_columns_of_csv_are_strings_but_for_keys(world: World) -> None:
    place(world, "in/a.csv", 'pk,sk,g,note\na,1,x,"two, ""lines""\nof it"\nb,2.50,y,12\n')
    described = run(world, "in/", InputFormat="CSV")
    assert described["ImportStatus"] == "COMPLETED"
    assert world.items("imported") == {
        ("a", "1"): item("a", 1, g={"S": "x"}, note={"S": 'two, "lines"\nof it'}),
        ("b", "2.5"): {"pk": {"S": "b"}, "sk": {"N": "2.5"}, "g": {"S": "y"}, "note": {"S": "12"}},
    }


def test_csv_takes_another_delimiter_and_headers_of_its_own(world: World) -> None:
    place(world, "in/a.csv", "a|1|x\nb|2|y\n")
    options = {"Csv": {"Delimiter": "|", "HeaderList": ["pk", "sk", "note"]}}
    described = run(world, "in/", InputFormat="CSV", InputFormatOptions=options)
    assert counts(described) == (2, 2, 0) and described["InputFormatOptions"] == options
    assert world.items("imported")["a", "1"] == item("a", 1, note={"S": "x"})


def test_bad_items_are_counted_told_and_left_out(world: World, caplog: pytest.LogCaptureFixture) -> None:
    lines = [
        json_line(item("a", 1)),
        b"not json\n",
        b'{"Thing":{}}\n',
        json_line({"pk": {"S": "no sort key"}}),
        json_line(item("a", 2, g={"N": "1"})),
        json_line(item("a", 3, n={"N": "not a number"})),
        json_line(item("a", 4, text={"S": "x" * 410_000})),
        json_line(item("a", 5)),
    ]
    place(world, "in/one", b"".join(lines))
    with caplog.at_level(logging.WARNING, "stator.imports"):
        described = run(world, "in/")
    assert described["ImportStatus"] == "FAILED" and counts(described) == (8, 2, 6)
    assert described["FailureCode"] == "ItemValidationError"
    assert set(world.items("imported")) == {("a", "1"), ("a", "5")}
    told = [json.loads(record.getMessage()) for record in caplog.records]
    assert [each["itemS3Pointer"]["itemIndex"] for each in told] == [1, 2, 3, 4, 5, 6]
    assert told[2]["errorMessages"] == ["One or more parameter values were invalid: Missing the key sk in the item"]


@pytest.mark.parametrize(
    ("options", "content"),
    [
        ({"InputCompressionType": "GZIP"}, gzip.compress(json_line(*(item("a", n) for n in range(3000))))[:-40]),
        ({"InputCompressionType": "GZIP"}, b"this is not gzip"),
        ({"InputCompressionType": "ZSTD"}, b"this is not zstd"),
        ({"InputFormat": "ION"}, b'$ion_1_0 {Item:{pk:"a",sk:1}} }} nonsense {'),
        ({"InputFormat": "CSV"}, b"pk,sk\n\xff\xfe,1\n"),
    ],
)
def test_a_damaged_object_is_left_and_the_next_is_read(world: World, options: dict[str, str], content: bytes) -> None:
    place(world, "in/a-damaged", content)
    good = {"ION": b'{Item:{pk:"good",sk:1}}', "CSV": b"pk,sk\ngood,1\n"}.get(
        options.get("InputFormat", ""), json_line(item("good", 1))
    )
    compress = {"GZIP": gzip.compress, "ZSTD": lambda data: zstandard.ZstdCompressor().compress(data)}
    place(world, "in/b-good", compress.get(options.get("InputCompressionType", ""), bytes)(good))
    described = run(world, "in/", **options)
    assert (described["ImportStatus"], described["ErrorCount"]) == ("FAILED", 1)
    assert ("good", "1") in world.items("imported")


def test_the_last_of_several_items_with_one_key_stays(world: World) -> None:
    place(world, "in/one", json_line(*(item("a", 1, n={"N": str(number)}) for number in range(1200))))
    described = run(world, "in/")
    assert described["ImportStatus"] == "COMPLETED" and counts(described) == (1200, 1200, 0)
    assert world.items("imported") == {("a", "1"): item("a", 1, n={"N": "1199"})}
    assert world.call("DescribeTable", TableName="imported")["Table"]["ItemCount"] == 1


def test_an_import_is_described_as_on_aws(world: World) -> None:
    place(world, "in/one", json_line(RICH))
    described = run(world, "in/", ClientToken="token-1")
    assert described == {
        "ImportArn": described["ImportArn"],
        "ImportStatus": "COMPLETED",
        "TableArn": ARN + "imported",
        "TableId": world.call("DescribeTable", TableName="imported")["Table"]["TableId"],
        "ClientToken": "token-1",
        "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": "in/"},
        "ErrorCount": 0,
        "CloudWatchLogGroupArn": "arn:aws:logs:us-east-1:123456789012:log-group:/aws-dynamodb/imports:*",
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "NONE",
        "TableCreationParameters": TABLE,
        "StartTime": START,
        "EndTime": START,
        "ProcessedSizeBytes": len(json_line(RICH)),
        "ProcessedItemCount": 1,
        "ImportedItemCount": 1,
    }
    [listed] = world.call("ListImports", TableArn=ARN + "imported")["ImportSummaryList"]
    assert listed == {member: described[member] for member in listed}


def test_where_nothing_can_be_read_no_table_is_left(world: World) -> None:
    for number, (source, code) in enumerate(
        [({"S3Bucket": "nowhere"}, "S3NoSuchBucket"), ({"S3Bucket": "exports", "S3KeyPrefix": "no/"}, "S3NoSuchKey")]
    ):
        described = run(world, "", S3BucketSource=source)
        assert (described["ImportStatus"], described["FailureCode"]) == ("FAILED", code)
        assert counts(described) == (0, 0, 0)
        assert world.call("ListTables")["TableNames"] == []
        assert len(world.call("ListImports")["ImportSummaryList"]) == number + 1


def test_a_client_token_makes_one_import_of_many_requests(world: World) -> None:
    place(world, "in/one", json_line(item("a", 1)))
    first = run(world, "in/", ClientToken="once")
    request = {
        "S3BucketSource": first["S3BucketSource"],
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
        "ClientToken": "once",
    }
    assert world.call("ImportTable", **request)["ImportTableDescription"] == first
    world.refused("ImportTable", ImportConflict, **request | {"InputFormat": "ION"})
    message = world.refused("ImportTable", ResourceInUse, **request | {"ClientToken": "twice"})
    assert message == "Table already exists: imported"


def test_what_an_import_is_refused_for(world: World) -> None:
    asked = {
        "S3BucketSource": {"S3Bucket": "exports"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
    }
    for wrong in (
        {"InputFormat": "PARQUET"},
        {"InputFormatOptions": {"Csv": {"Delimiter": ","}}},
        {"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": "x"}}},
        {"TableCreationParameters": TABLE | {"KeySchema": [{"AttributeName": "other", "KeyType": "HASH"}]}},
    ):
        world.refused("ImportTable", ValidationFailed, **asked | wrong)
    world.refused("DescribeImport", ImportNotFound, ImportArn=ARN + "imported/import/01791489600000-00000000")


def test_imports_are_listed_in_pages(world: World) -> None:
    arns = []
    for number in range(3):
        place(world, "in/one", json_line(item("a", 1)))
        described = run(world, "in/", TableCreationParameters=TABLE | {"TableName": f"imported-{number}"})
        arns.append(described["ImportArn"])
    page = world.call("ListImports", PageSize=2)
    rest = world.call("ListImports", PageSize=2, NextToken=page["NextToken"])
    assert [each["ImportArn"] for each in page["ImportSummaryList"] + rest["ImportSummaryList"]] == sorted(arns)
    assert "NextToken" not in rest


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("amazon.ion.simpleion", {"InputFormat": "ION"}),
        ("zstandard", {"InputCompressionType": "ZSTD"}),
    ],
)
def test_what_is_not_installed_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, module: str, options: dict[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValidationFailed, match="is not available here") as caught:
        run(world, "in/", **options)
    assert "pip install 'stator[" in (caught.value.hint or "")
    assert world.call("ListTables")["TableNames"] == []

"""Imports: every format and compression, what is refused and counted, and what is left of it."""

from __future__ import annotations

import gzip
import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import amazon.ion.simpleion as ion
import pytest
import zstandard

from stator.engine.recovery.tasks import Task
from stator.errors import ImportConflict, ImportNotFound, ResourceInUse, ValidationFailed

from ...formats.damage import COMPRESS, DAMAGE, WHOLE, lines
from .test_exports import RICH
from .test_exports import fill as fill_table
from .world import ARN, CREATE, START, World, item

TABLE = {name: value for name, value in CREATE.items() if name != "LocalSecondaryIndexes"} | {
    "TableName": "imported"
}


def run(world: World, prefix: str, **options: Any) -> dict[str, Any]:
    request = {
        "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": prefix},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
        "ClientToken": str(uuid4()),
    } | options
    started = world.call("ImportTable", **request)["ImportTableDescription"]
    assert started["ImportStatus"] == "IN_PROGRESS"
    world.settle()
    described: dict[str, Any] = world.call("DescribeImport", ImportArn=started["ImportArn"])[
        "ImportTableDescription"
    ]
    return described


def place(world: World, key: str, content: bytes | str) -> None:
    path = world.bucket / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


@contextmanager
def held(world: World) -> Iterator[None]:
    """No import gets on meanwhile."""
    imports, go_on = world.engine.recovery.imports, threading.Event()
    read = imports.read

    def wait_and_read(task: Task) -> None:
        assert go_on.wait(60)
        read(task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(imports, "read", wait_and_read)
        try:
            yield
        finally:
            go_on.set()
            world.settle()


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
    [
        ("NONE", bytes),
        ("GZIP", gzip.compress),
        ("ZSTD", lambda data: zstandard.ZstdCompressor().compress(data)),
    ],
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


def test_bad_items_are_counted_told_and_left_out(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [
        json_line(item("a", 1)),
        json_line({"pk": {"S": "no sort key"}}),
        json_line(item("a", 2, g={"N": "1"})),
        json_line(item("a", 3, n={"N": "not a number"})),
        json_line(item("a", 4, text={"S": "x" * 410_000})),
        json_line(item("a", 5)),
    ]
    place(world, "in/one", b"".join(lines))
    with caplog.at_level(logging.WARNING, "stator.imports"):
        described = run(world, "in/")
    assert described["ImportStatus"] == "FAILED" and counts(described) == (6, 2, 4)
    assert described["FailureCode"] == "ItemValidationError"
    assert set(world.items("imported")) == {("a", "1"), ("a", "5")}
    told = [json.loads(record.getMessage()) for record in caplog.records]
    assert [each["itemS3Pointer"]["itemIndex"] for each in told] == [1, 2, 3, 4]
    assert told[0]["errorMessages"] == [
        "One or more parameter values were invalid: Missing the key sk in the item"
    ]


# Measured on AWS by ScyllaDB's test suite: lines after one without an item are not counted.
@pytest.mark.parametrize("line", [b"not json\n", b'{"Thing":{}}\n', b'["Item"]\n'])
def test_a_line_that_is_no_item_ends_its_object(world: World, line: bytes) -> None:
    place(world, "in/a", json_line(item("a", 1)) + line + json_line(item("a", 2)) + line)
    place(world, "in/b", b"\n  \n" + json_line(item("b", 1)))
    described = run(world, "in/")
    assert described["ImportStatus"] == "FAILED" and counts(described) == (3, 2, 1)
    assert set(world.items("imported")) == {("a", "1"), ("b", "1")}


def test_an_ion_value_that_is_no_item_ends_its_object(world: World) -> None:
    place(world, "in/a", '{Item:{pk:"a",sk:1}} {Thing:{}} {Item:{pk:"a",sk:2}}')
    assert counts(run(world, "in/", InputFormat="ION")) == (2, 1, 1)


@pytest.mark.parametrize(
    ("options", "content"),
    [
        (
            {"InputCompressionType": "GZIP"},
            gzip.compress(json_line(*(item("a", n) for n in range(3000))))[:-40],
        ),
        ({"InputCompressionType": "GZIP"}, b"this is not gzip"),
        ({"InputCompressionType": "ZSTD"}, b"this is not zstd"),
        ({"InputFormat": "ION"}, b'$ion_1_0 {Item:{pk:"a",sk:1}} }} nonsense {'),
        ({"InputFormat": "CSV"}, b"pk,sk\n\xff\xfe,1\n"),
    ],
)
def test_a_damaged_object_is_left_and_the_next_is_read(
    world: World, options: dict[str, str], content: bytes
) -> None:
    place(world, "in/a-damaged", content)
    good = {"ION": b'{Item:{pk:"good",sk:1}}', "CSV": b"pk,sk\ngood,1\n"}.get(
        options.get("InputFormat", ""), json_line(item("good", 1))
    )
    compress = {
        "GZIP": gzip.compress,
        "ZSTD": lambda data: zstandard.ZstdCompressor().compress(data),
    }
    place(world, "in/b-good", compress.get(options.get("InputCompressionType", ""), bytes)(good))
    described = run(world, "in/", **options)
    assert (described["ImportStatus"], described["ErrorCount"]) == ("FAILED", 1)
    assert ("good", "1") in world.items("imported")


def test_the_last_of_several_items_with_one_key_stays(world: World) -> None:
    place(
        world, "in/one", json_line(*(item("a", 1, n={"N": str(number)}) for number in range(1200)))
    )
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
        "CloudWatchLogGroupArn": (
            "arn:aws:logs:us-east-1:123456789012:log-group:/aws-dynamodb/imports:*"
        ),
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


def test_of_a_missing_bucket_no_table_is_left(world: World) -> None:
    described = run(world, "", S3BucketSource={"S3Bucket": "nowhere"})
    assert (described["ImportStatus"], described["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert counts(described) == (0, 0, 0) and "ProcessedSizeBytes" not in described
    assert world.call("ListTables")["TableNames"] == []
    assert len(world.call("ListImports")["ImportSummaryList"]) == 1


# What this and the next four tests say was measured on AWS by ScyllaDB's test suite in 2026.
def test_a_prefix_without_objects_makes_an_empty_table(world: World) -> None:
    described = run(world, "no/")
    assert described["ImportStatus"] == "COMPLETED" and counts(described) == (0, 0, 0)
    assert "FailureCode" not in described and "ProcessedSizeBytes" not in described
    table = world.call("DescribeTable", TableName="imported")["Table"]
    assert (table["TableStatus"], table["TableId"]) == ("ACTIVE", described["TableId"])
    assert world.items("imported") == {}


@pytest.mark.parametrize(
    ("compression", "compress"),
    [
        ("NONE", bytes),
        ("GZIP", gzip.compress),
        ("ZSTD", lambda data: zstandard.ZstdCompressor().compress(data)),
    ],
)
def test_the_size_of_an_import_is_that_before_compression(
    world: World, compression: str, compress: Any
) -> None:
    lines = json_line(*(item("a", n, text={"S": "x" * 1000}) for n in range(1200)))
    place(world, "in/one", compress(lines))
    place(world, "in/two", compress(lines[: lines.index(b"\n") + 1]))
    described = run(world, "in/", InputCompressionType=compression)
    assert described["ProcessedSizeBytes"] == len(lines) + lines.index(b"\n") + 1


def test_an_import_counts_nothing_before_it_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(world, "in/one", json_line(*(item("a", n) for n in range(5000))))
    imports, seen = world.engine.recovery.imports, []
    read = imports.read

    def read_and_look(task: Task) -> None:
        read(task)
        [listed] = world.call("ListImports")["ImportSummaryList"]
        seen.append(
            world.call("DescribeImport", ImportArn=listed["ImportArn"])["ImportTableDescription"]
        )

    monkeypatch.setattr(imports, "read", read_and_look)
    assert counts(run(world, "in/")) == (5000, 5000, 0)
    running = [each for each in seen if each["ImportStatus"] == "IN_PROGRESS"]
    assert len(running) > 1
    for each in running:
        assert counts(each) == (0, 0, 0) and not {"EndTime", "ProcessedSizeBytes"} & each.keys()


def test_only_another_table_makes_another_request_of_a_token(world: World) -> None:
    place(world, "in/one", json_line(item("a", 1)))
    request = {
        "S3BucketSource": {"S3Bucket": "exports", "S3KeyPrefix": "in/"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
        "ClientToken": "once",
    }
    other_table = {"TableCreationParameters": TABLE | {"TableName": "another"}}
    with held(world):
        first = world.call("ImportTable", **request)
        for change in (
            {},
            {"InputFormat": "CSV"},
            {"InputCompressionType": "GZIP"},
            {"S3BucketSource": {"S3Bucket": "other"}},
        ):
            assert world.call("ImportTable", **request | change) == first
        message = world.refused("ImportTable", ImportConflict, **request | other_table)
        assert message == "Duplicate request detected with conflicting parameters"
        world.refused("ImportTable", ResourceInUse, **request | {"ClientToken": "twice"})
    for token in ("once", "twice"):
        message = world.refused("ImportTable", ResourceInUse, **request | {"ClientToken": token})
        assert message == "Table already exists: imported"
    world.refused("ImportTable", ImportConflict, **request | other_table)


def test_an_import_needs_a_client_token(world: World) -> None:
    request = {
        "S3BucketSource": {"S3Bucket": "exports"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
    }
    assert "'clientToken'" in world.refused("ImportTable", ValidationFailed, **request)
    for token in ("", "$", "has$dollar"):
        world.refused("ImportTable", ValidationFailed, **request | {"ClientToken": token})


def test_what_an_import_is_refused_for(world: World) -> None:
    asked = {
        "S3BucketSource": {"S3Bucket": "exports"},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": TABLE,
        "ClientToken": "token",
    }
    for wrong in (
        {"InputFormat": "PARQUET"},
        {"InputFormatOptions": {"Csv": {"Delimiter": ","}}},
        {"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": "x"}}},
        {
            "TableCreationParameters": TABLE
            | {"KeySchema": [{"AttributeName": "other", "KeyType": "HASH"}]}
        },
    ):
        world.refused("ImportTable", ValidationFailed, **asked | wrong)
    world.refused(
        "DescribeImport", ImportNotFound, ImportArn=ARN + "imported/import/01791489600000-00000000"
    )
    message = world.refused(
        "DescribeImport", ValidationFailed, ImportArn=ARN + "x/import/01791489600000-00000000"
    )
    assert message == "Invalid Import ARN"


def test_imports_are_listed_in_pages(world: World) -> None:
    arns = []
    for number in range(3):
        place(world, "in/one", json_line(item("a", 1)))
        described = run(
            world, "in/", TableCreationParameters=TABLE | {"TableName": f"imported-{number}"}
        )
        arns.append(described["ImportArn"])
    page = world.call("ListImports", PageSize=2)
    rest = world.call("ListImports", PageSize=2, NextToken=page["NextToken"])
    assert [
        each["ImportArn"] for each in page["ImportSummaryList"] + rest["ImportSummaryList"]
    ] == sorted(arns)
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


AWS_NAMES = {"gzip": "GZIP", "zstd": "ZSTD"}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", DAMAGE)
def test_damaged_compression_is_counted_and_the_next_object_is_read(
    world: World, compression: str, way: str
) -> None:
    pack = COMPRESS[compression]
    place(world, "in/a-damaged", DAMAGE[way](pack, lines(4000)))
    place(world, "in/b-good", pack(json_line(item("good", 1))))
    described = run(world, "in/", InputCompressionType=AWS_NAMES[compression])
    assert (described["ImportStatus"], described["ErrorCount"]) == ("FAILED", 1)
    assert ("good", "1") in world.items("imported")


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", WHOLE)
def test_every_member_of_a_compressed_object_is_imported(
    world: World, compression: str, way: str
) -> None:
    place(world, "in/a", WHOLE[way](COMPRESS[compression], lines(4000)))
    described = run(world, "in/", InputCompressionType=AWS_NAMES[compression])
    assert counts(described) == (4000, 4000, 0)


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("input_format", ["ION", "CSV"])
def test_a_truncated_object_of_ion_or_csv_is_an_error(
    world: World, compression: str, input_format: str
) -> None:
    if input_format == "CSV":
        rows = [f"p,{number},{number * 7919:x}" for number in range(20_000)]
        content = "\n".join(["pk,sk,note", *rows]).encode()
    else:
        values = (
            f'{{Item:{{pk:"p",sk:{number},note:"{number * 7919:x}"}}}}\n' for number in range(2_000)
        )
        content = "".join(values).encode()
    packed = COMPRESS[compression](content)
    place(world, "in/a", packed[: len(packed) * 2 // 3])
    described = run(
        world, "in/", InputFormat=input_format, InputCompressionType=AWS_NAMES[compression]
    )
    assert (described["ImportStatus"], described["ErrorCount"]) == ("FAILED", 1)


def test_a_set_of_ion_with_a_member_of_another_type_is_refused(world: World) -> None:
    place(world, "in/a", '{Item:{pk:"a",sk:1,s:$dynamodb_SS::[1]}} {Item:{pk:"a",sk:2}}')
    assert counts(run(world, "in/", InputFormat="ION")) == (2, 1, 1)


def test_a_long_field_of_csv_is_refused_and_the_rest_is_read(world: World) -> None:
    place(world, "in/a.csv", f"pk,sk,note\na,1,{'x' * 600_000}\nb,2,y\n")
    assert counts(run(world, "in/", InputFormat="CSV")) == (2, 1, 1)

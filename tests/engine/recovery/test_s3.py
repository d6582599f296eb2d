"""Exports to, and imports from, a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ResponseStreamingError
from moto import mock_aws

from stator.buckets import S3Buckets
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.engine.recovery.objects import Encryption, ObjectStoreError
from stator.errors import ConfigurationError

from ...s3_servers import client, seaweedfs
from .test_imports import TABLE, counts, json_line, run
from .world import ARN, START, World, item


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as made:
        yield made


@pytest.fixture
def world(s3: Any) -> Iterator[World]:
    clock = VirtualClock(START)
    with Engine.open(clock=clock, buckets=S3Buckets(client=s3)) as engine:
        yield World(engine, clock, Path())


def test_an_export_goes_to_s3_and_an_import_comes_from_it(world: World, s3: Any) -> None:
    world.create()
    world.enable()
    world.put(*(item("a", number, g={"S": "x"}) for number in range(50)))
    started = world.call(
        "ExportTableToPointInTime", TableArn=ARN + "orders", S3Bucket="blobs", S3Prefix="out"
    )
    world.settle()
    arn = started["ExportDescription"]["ExportArn"]
    described = world.call("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert described["ExportStatus"] == "COMPLETED", described
    root = described["ExportManifest"].removesuffix("manifest-summary.json")
    keys = {each["Key"] for each in s3.list_objects_v2(Bucket="blobs", Prefix=root)["Contents"]}
    assert {
        root + name for name in ("_started", "manifest-files.json", "manifest-files.md5")
    } <= keys
    running = world.call(
        "ImportTable",
        S3BucketSource={"S3Bucket": "blobs", "S3KeyPrefix": root + "data/"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters=TABLE,
        ClientToken="token",
    )["ImportTableDescription"]
    world.settle()
    found = world.call("DescribeImport", ImportArn=running["ImportArn"])["ImportTableDescription"]
    assert found["ImportStatus"] == "COMPLETED" and counts(found) == (50, 50, 0)
    assert world.items("imported") == world.items()


def test_what_s3_says_of_buckets_and_encryption() -> None:
    """SeaweedFS answers 403 for a missing bucket; moto answers as AWS, and keeps encryption."""
    with mock_aws():
        made = client("https://s3.us-east-1.amazonaws.com")
        made.create_bucket(Bucket="blobs")
        buckets = S3Buckets(client=made)
        with pytest.raises(ObjectStoreError) as caught:
            buckets.put("nowhere", "key", b"content")
        assert caught.value.code == "S3NoSuchBucket"
        with pytest.raises(ObjectStoreError) as caught:
            list(buckets.keys("nowhere", ""))
        assert caught.value.code == "S3NoSuchBucket"
        etag = buckets.put("blobs", "key", b"content", encryption=Encryption("KMS", "alias/mine"))
        found = made.head_object(Bucket="blobs", Key="key")
        assert found["ETag"] == f'"{etag}"'
        assert (found["ServerSideEncryption"], found["SSEKMSKeyId"]) == ("aws:kms", "alias/mine")


def test_objects_that_are_not_there_and_servers_that_do_not_answer(s3: Any) -> None:
    with pytest.raises(ObjectStoreError) as caught:
        S3Buckets(client=s3).open("blobs", "missing")
    assert caught.value.code == "S3NoSuchKey"
    with pytest.raises(ObjectStoreError) as caught:
        S3Buckets(client=client("http://127.0.0.1:9")).put("blobs", "key", b"")
    assert caught.value.code == "S3InternalError"


class BrokenBody:
    """An object whose connection breaks after some lines."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self, size: int) -> bytes:
        if not self._content:
            raise ResponseStreamingError(error="connection broken")
        data, self._content = self._content[:size], self._content[size:]
        return data

    def close(self) -> None:
        pass


def test_a_connection_that_breaks_ends_the_import(tmp_path: Path) -> None:
    class Client:
        def get_object(self, **_: Any) -> dict[str, Any]:
            return {"Body": BrokenBody(json_line(*(item("a", number) for number in range(9))))}

        def get_paginator(self, _: str) -> Any:
            return self

        def paginate(self, **_: Any) -> Any:
            return [{"Contents": [{"Key": "in/a", "Size": 100}]}]

    clock = VirtualClock(START)
    with Engine.open(clock=clock, buckets=S3Buckets(client=Client())) as engine:
        described = run(World(engine, clock, tmp_path), "in/")
    assert (described["ImportStatus"], described["FailureCode"]) == ("FAILED", "S3InternalError")
    assert "connection broken" in described["FailureMessage"]


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is not an S3 endpoint"):
        S3Buckets(endpoint="localhost:8333")

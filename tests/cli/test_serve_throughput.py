"""``stator serve --throughput`` from outside: boto3 over HTTP, the exit report, and SIGUSR1.

The server has a real clock, so the writes are large: 6,000 write units of one key need six seconds
on AWS, and are sent in a fraction of that.
"""

from __future__ import annotations

import signal
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from .serving import Serving, run

PUTS = 60
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/shop"


def client(server: Serving) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=server.facts["url"],
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}),
    )


def put_hot_key(dynamodb: Any, **options: Any) -> list[dict[str, Any]]:
    """Write 100 units to one key again and again, and return the refusals."""
    dynamodb.create_table(
        TableName="shop",
        KeySchema=[{"AttributeName": "sku", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "sku", "AttributeType": "S"}],
        **({"BillingMode": "PAY_PER_REQUEST"} | options),
    )
    refusals = []
    item = {"sku": {"S": "secret-lamp"}, "text": {"S": "x" * 102_000}}
    for _ in range(PUTS):
        try:
            dynamodb.put_item(TableName="shop", Item=item)
        except ClientError as error:
            refusals.append(error.response)
    return refusals


def test_enforced_refuses_over_http_and_reports_at_the_end() -> None:
    with Serving("--throughput", "enforced") as server:
        assert server.facts["throughput"] == "enforced"
        refusals = put_hot_key(client(server))
        code, out, err = server.stop()
    assert 0 < len(refusals) < PUTS
    for refusal in refusals:
        assert refusal["Error"]["Code"] == "ThrottlingException"
        assert refusal["ResponseMetadata"]["HTTPStatusCode"] == 400
        assert refusal["throttlingReasons"] == [
            {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": ARN}
        ]
    assert (code, out) == (0, "")
    assert "throughput (enforced):" in err
    assert f"{len(refusals)} requests refused" in err
    assert f"  {len(refusals)} refused: TableWriteKeyRangeThroughputExceeded" in err
    assert "hot key #" in err
    assert "100% of the load of its partition" in err
    assert "secret-lamp" not in err, "keys may be personal data"


def test_provisioned_units_are_another_class_of_error() -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    with Serving("--throughput", "enforced") as server:
        refusals = put_hot_key(
            client(server), BillingMode="PROVISIONED", ProvisionedThroughput=units
        )
    assert len(refusals) == PUTS - 1, "one put leaves a debt of 99 seconds"
    assert {each["Error"]["Code"] for each in refusals} == {
        "ProvisionedThroughputExceededException"
    }
    assert refusals[0]["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": ARN}
    ]


def test_observed_refuses_nothing_and_reports_what_it_would() -> None:
    with Serving("--throughput", "observed", "--show-keys") as server:
        assert put_hot_key(client(server)) == []
        server.process.send_signal(signal.SIGUSR1)
        assert server.process.stderr is not None
        assert server.process.stderr.readline() == "throughput (observed):\n"
        first = server.process.stderr.readline()
        assert first.startswith("shop: 4 partitions, 0 read and ")
        assert first.endswith(" requests would be refused\n")
        _, _, err = server.stop()
    assert "would be refused: TableWriteKeyRangeThroughputExceeded" in err
    assert "hot key 'secret-lamp': 100%" in err


def test_off_reports_nothing() -> None:
    with Serving() as server:
        assert server.facts["throughput"] == "off"
        assert put_hot_key(client(server)) == []
        assert server.stop() == (0, "", "")


def test_a_server_without_requests_says_so() -> None:
    with Serving("--throughput", "enforced") as server:
        assert server.stop() == (0, "", "throughput (enforced):\nno requests were charged\n")


@pytest.mark.parametrize("value", ["on", "strict"])
def test_another_value_is_refused(value: str) -> None:
    done = run("serve", "--port", "0", "--throughput", value)
    assert done.returncode == 2
    assert value in done.stderr and "enforced" in done.stderr

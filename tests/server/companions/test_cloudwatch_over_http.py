"""CloudWatch over HTTP: boto3 in the three protocols, the AWS CLI, signatures, and strangers."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import botocore
import botocore.loaders
import botocore.session
import pytest
from botocore.exceptions import ClientError

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.server import BackgroundServer, ServerOptions, read_credentials

NOW = datetime.now(UTC).replace(second=0, microsecond=0)
MODEL = "cloudwatch/2010-08-01/service-2.json"
PROTOCOLS = {"json": "json", "query": "query", "cbor": "smithy-rpc-v2-cbor"}


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    clock = VirtualClock(NOW.timestamp())
    with Engine.open(clock=clock, metrics=True) as engine, BackgroundServer(engine) as server:
        yield server


def client(server: BackgroundServer, folder: Path, protocol: str = "json", **options: Any) -> Any:
    """Return a client that uses one protocol, by a copy of botocore's model that has only it."""
    original = Path(botocore.__file__).parent / "data" / f"{MODEL}.gz"
    model = json.loads(gzip.decompress(original.read_bytes()))
    model["metadata"]["protocol"] = PROTOCOLS[protocol]
    model["metadata"]["protocols"] = [PROTOCOLS[protocol]]
    if protocol == "query":
        del model["metadata"]["awsQueryCompatible"]
    copy = folder / MODEL
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(json.dumps(model))
    core = botocore.session.Session()
    # Not the loader that all tests share: it would keep this model.
    core.register_component("data_loader", botocore.loaders.create_loader())
    core.get_component("data_loader").search_paths.insert(0, str(folder))
    return boto3.Session(botocore_session=core).client(
        "cloudwatch",
        endpoint_url=server.url,
        **{
            "region_name": "us-east-1",
            "aws_access_key_id": "local",
            "aws_secret_access_key": "local",
            **options,
        },
    )


ALARM = {
    "AlarmName": "a <b> & ä",
    "Namespace": "Shop",
    "MetricName": "Load",
    "Statistic": "Sum",
    "Dimensions": [{"Name": "host", "Value": "a < b"}],
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 1.5,
    "ComparisonOperator": "GreaterThanThreshold",
    "ActionsEnabled": False,
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_boto3_puts_and_gets_in_every_protocol(
    server: BackgroundServer, tmp_path: Path, protocol: str
) -> None:
    cloudwatch = client(server, tmp_path, protocol)
    assert cloudwatch.meta.service_model.resolved_protocol == PROTOCOLS[protocol]
    cloudwatch.put_metric_data(
        Namespace="Shop",
        MetricData=[
            {"MetricName": "Load", "Value": 2.5, "Unit": "Count", "Timestamp": NOW},
            {"MetricName": "Load", "Values": [1.0, 2.0], "Counts": [3.0, 1.0], "Unit": "Count"},
        ],
    )
    answer = cloudwatch.get_metric_statistics(
        Namespace="Shop",
        MetricName="Load",
        StartTime=NOW,
        EndTime=NOW + timedelta(minutes=5),
        Period=60,
        Statistics=["Sum", "SampleCount"],
    )
    assert answer["Datapoints"] == [
        {"Timestamp": NOW, "Sum": 7.5, "SampleCount": 5.0, "Unit": "Count"}
    ]
    cloudwatch.put_metric_alarm(**ALARM)
    [alarm] = cloudwatch.describe_alarms()["MetricAlarms"]
    assert {name: alarm[name] for name in ALARM} == ALARM
    assert alarm["StateUpdatedTimestamp"] == NOW
    assert cloudwatch.describe_alarms(StateValue="OK")["MetricAlarms"] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_large_request_is_sent_compressed(
    server: BackgroundServer, tmp_path: Path, protocol: str
) -> None:
    cloudwatch = client(server, tmp_path, protocol)
    encodings: list[Any] = []

    def note(request: Any, **_: Any) -> None:
        encodings.append(request.headers.get("Content-Encoding"))

    cloudwatch.meta.events.register("before-send.cloudwatch.PutMetricData", note)
    data = [{"MetricName": f"m{at}", "Value": 1.0, "Unit": "Count"} for at in range(400)]
    cloudwatch.put_metric_data(Namespace="Shop", MetricData=data)
    assert encodings in ([b"gzip"], ["gzip"])
    assert len(cloudwatch.list_metrics()["Metrics"]) == 400


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_have_their_class_and_codes_in_every_protocol(
    server: BackgroundServer, tmp_path: Path, protocol: str
) -> None:
    cloudwatch = client(server, tmp_path, protocol)
    with pytest.raises(cloudwatch.exceptions.InvalidParameterValueException) as caught:
        cloudwatch.put_metric_data(Namespace="AWS/X", MetricData=[])
    error = caught.value.response["Error"]
    assert (error["Code"], error["Type"]) == ("InvalidParameterValue", "Sender")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    with pytest.raises(ClientError) as missing:
        cloudwatch.get_dashboard(DashboardName="none")
    assert missing.value.response["Error"]["Code"] == "ResourceNotFound"
    assert missing.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_table_s_metrics_and_items_share_the_port(
    server: BackgroundServer, tmp_path: Path
) -> None:
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    dynamodb = boto3.client("dynamodb", endpoint_url=server.url, region_name="us-east-1", **keys)
    dynamodb.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="orders", Item={"pk": {"S": "a"}})
    query = {
        "Id": "units",
        "MetricStat": {
            "Metric": {
                "Namespace": "AWS/DynamoDB",
                "MetricName": "ConsumedWriteCapacityUnits",
                "Dimensions": [{"Name": "TableName", "Value": "orders"}],
            },
            "Period": 60,
            "Stat": "Sum",
        },
    }
    answer = client(server, tmp_path).get_metric_data(
        MetricDataQueries=[query], StartTime=NOW, EndTime=NOW + timedelta(minutes=1)
    )
    assert answer["MetricDataResults"][0]["Values"] == [1.0]


def test_the_aws_cli_lists_metrics(server: BackgroundServer, tmp_path: Path) -> None:
    client(server, tmp_path).put_metric_data(
        Namespace="Shop", MetricData=[{"MetricName": "Load", "Value": 1.0}]
    )
    aws = shutil.which("aws", path=str(Path(sys.executable).parent))
    assert aws is not None
    found = subprocess.run(
        [aws, "cloudwatch", "list-metrics", "--endpoint-url", server.url, "--region", "us-east-1"],
        env={**os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"},
        capture_output=True,
        check=True,
    )
    assert json.loads(found.stdout)["Metrics"] == [
        {"Namespace": "Shop", "MetricName": "Load", "Dimensions": []}
    ]


CREDENTIALS = "[alice]\naws_access_key_id = AKIAALICE\naws_secret_access_key = secret\n"


def test_signatures_are_checked_for_the_service(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(CREDENTIALS)
    options = ServerOptions(port=0, credentials=read_credentials(tmp_path / "credentials"))
    with Engine.open() as engine, BackgroundServer(engine, options) as server:
        alice = {"aws_access_key_id": "AKIAALICE", "aws_secret_access_key": "secret"}
        assert client(server, tmp_path, **alice).list_metrics()["Metrics"] == []
        forged = client(server, tmp_path, **{**alice, "aws_secret_access_key": "guess"})
        with pytest.raises(ClientError) as caught:
            forged.list_metrics()
        assert caught.value.response["Error"]["Code"] == "InvalidSignatureException"
        for protocol in ("query", "cbor"):
            with pytest.raises(ClientError) as caught:
                client(server, tmp_path, protocol, aws_access_key_id="x").list_metrics()
            assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"


def post(server: BackgroundServer, path: str, headers: dict[str, str], body: bytes) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    authorization = (
        "AWS4-HMAC-SHA256 Credential=local/20231114/us-east-1/monitoring/aws4_request, "
        "SignedHeaders=host, Signature=00"
    )
    signed = {"Authorization": authorization, "X-Amz-Date": "20231114T000000Z"}
    connection.request("POST", path, body, {**signed, **headers})
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, dict(reply.getheaders()), content


FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
JSON = {"Content-Type": "application/x-amz-json-1.0"}
TARGET = "GraniteServiceVersion20100801"


def test_the_envelopes_of_errors(server: BackgroundServer) -> None:
    status, headers, body = post(
        server, "/", {**JSON, "X-Amz-Target": f"{TARGET}.GetDashboard"}, b'{"DashboardName": "x"}'
    )
    assert (status, headers["x-amzn-query-error"]) == (404, "ResourceNotFound;Sender")
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert json.loads(body)["__type"] == "DashboardNotFoundError"
    status, headers, body = post(
        server, "/", FORM, b"Action=GetDashboard&Version=2010-08-01&DashboardName=x"
    )
    assert (status, headers["Content-Type"]) == (404, "text/xml")
    assert b"<Type>Sender</Type><Code>ResourceNotFound</Code>" in body
    path = f"/service/{TARGET}/operation/GetDashboard"
    status, headers, _ = post(
        server,
        path,
        {"smithy-protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"},
        b"\xa0",
    )
    assert (status, headers["smithy-protocol"]) == (400, "rpc-v2-cbor")
    assert headers["x-amzn-query-error"] == "ValidationError;Sender"


@pytest.mark.parametrize(
    ("path", "headers", "body", "status"),
    [
        ("/", {**JSON, "X-Amz-Target": f"{TARGET}.Nonsense"}, b"{}", 400),
        ("/", {**JSON, "X-Amz-Target": f"{TARGET}.ListMetrics"}, b"{", 400),
        ("/", {**JSON, "X-Amz-Target": "OtherService.ListMetrics"}, b"{}", 400),
        ("/", FORM, b"Action=ListMetrics&Version=1999-01-01", 400),
        ("/", FORM, b"Action=ListMetrics&Version=2010-08-01&Dimensions.member.x.Name=a", 400),
        ("/", FORM, b"Action=DescribeAlarms&Version=2010-08-01&MaxRecords=many", 400),
        (f"/service/{TARGET}/operation/ListMetrics", {}, b"\xa0", 404),
        (
            f"/service/{TARGET}/operation/ListMetrics",
            {"smithy-protocol": "rpc-v2-cbor"},
            b"\xa1",
            400,
        ),
    ],
)
def test_requests_that_no_service_accepts(
    server: BackgroundServer, path: str, headers: dict[str, str], body: bytes, status: int
) -> None:
    assert post(server, path, headers, body)[0] == status

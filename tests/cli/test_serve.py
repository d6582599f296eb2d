"""``stator serve`` as a newcomer and as a script meet it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import botocore.session
import pytest

from .serving import ENVIRONMENT, Serving, run, run_shell


def test_the_line_to_paste_works_as_it_stands() -> None:
    with Serving() as server:
        pasted = run_shell(server.facts["try"])
    assert pasted.returncode == 0, pasted.stderr
    assert json.loads(pasted.stdout) == {"TableNames": []}


def test_the_aws_cli_creates_writes_and_reads(tmp_path: Path) -> None:
    def aws(server: Serving, command: str) -> dict[str, object]:
        keys = "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"
        line = (
            f"{keys} aws dynamodb {command} --region us-east-1 --endpoint-url {server.facts['url']}"
        )
        done = run_shell(line)
        assert done.returncode == 0, done.stderr
        answer: dict[str, object] = json.loads(done.stdout or "{}")
        return answer

    with Serving("--data", str(tmp_path / "data")) as server:
        aws(
            server,
            "create-table --table-name orders --billing-mode PAY_PER_REQUEST"
            " --attribute-definitions AttributeName=pk,AttributeType=S"
            " --key-schema AttributeName=pk,KeyType=HASH",
        )
        aws(server, """put-item --table-name orders --item '{"pk": {"S": "a"}, "n": {"N": "1"}}'""")
    with Serving("--data", str(tmp_path / "data")) as server:
        found = aws(server, """get-item --table-name orders --key '{"pk": {"S": "a"}}'""")
    assert found["Item"] == {"pk": {"S": "a"}, "n": {"N": "1"}}


def test_cloudwatch_has_the_metrics_of_tables_unless_they_are_turned_off() -> None:
    def listed(server: Serving) -> object:
        create = (
            "create-table --table-name orders --billing-mode PAY_PER_REQUEST"
            " --attribute-definitions AttributeName=pk,AttributeType=S"
            " --key-schema AttributeName=pk,KeyType=HASH"
        )
        put = """put-item --table-name orders --item '{"pk": {"S": "a"}}'"""
        keys = "AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"
        address = f"--region us-east-1 --endpoint-url {server.facts['url']}"
        metric = "cloudwatch list-metrics --metric-name ConsumedWriteCapacityUnits"
        for command in (f"dynamodb {create}", f"dynamodb {put}", metric):
            done = run_shell(f"{keys} aws {command} {address}")
            assert done.returncode == 0, done.stderr
        return [each["Dimensions"] for each in json.loads(done.stdout)["Metrics"]]

    with Serving() as server:
        assert listed(server) == [[{"Name": "TableName", "Value": "orders"}]]
    with Serving("--no-metrics") as server:
        assert listed(server) == []


def test_the_line_to_paste_works_with_credentials_too(tmp_path: Path) -> None:
    path = tmp_path / "my credentials"
    path.write_text("[alice]\naws_access_key_id = AKIAALICE\naws_secret_access_key = secret\n")
    with Serving("--credentials", str(path)) as server:
        assert server.facts["verifies_signatures"] is True
        pasted = run_shell(server.facts["try"])
        guessed = run_shell(
            "AWS_ACCESS_KEY_ID=AKIAALICE AWS_SECRET_ACCESS_KEY=guess "
            f"aws dynamodb list-tables --region us-east-1 --endpoint-url {server.facts['url']}"
        )
    assert pasted.returncode == 0, pasted.stderr
    assert "InvalidSignatureException" in guessed.stderr


def test_the_json_line_says_where_and_what(tmp_path: Path) -> None:
    with Serving("--data", str(tmp_path / "data"), "--durability", "process") as server:
        facts = server.facts
    assert facts["url"] == f"http://127.0.0.1:{facts['port']}"
    assert facts["data"] == str(tmp_path / "data")
    assert facts["durability"] == "process"
    assert facts["verifies_signatures"] is False


def test_exports_go_to_the_folder_of_buckets(tmp_path: Path) -> None:
    (tmp_path / "buckets" / "lake").mkdir(parents=True)
    with Serving("--buckets", str(tmp_path / "buckets")) as server:
        assert server.facts["buckets"] == str(tmp_path / "buckets")
        dynamodb = botocore.session.get_session().create_client(
            "dynamodb",
            region_name="us-east-1",
            endpoint_url=server.facts["url"],
            aws_access_key_id="x",
            aws_secret_access_key="x",
        )
        dynamodb.create_table(
            TableName="orders",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.put_item(TableName="orders", Item={"pk": {"S": "a"}})
        recovery = {"PointInTimeRecoveryEnabled": True}
        dynamodb.update_continuous_backups(
            TableName="orders", PointInTimeRecoverySpecification=recovery
        )
        arn = dynamodb.describe_table(TableName="orders")["Table"]["TableArn"]
        export = dynamodb.export_table_to_point_in_time(TableArn=arn, S3Bucket="lake")[
            "ExportDescription"
        ]
        while export["ExportStatus"] == "IN_PROGRESS":
            export = dynamodb.describe_export(ExportArn=export["ExportArn"])["ExportDescription"]
        dynamodb.close()
    assert (export["ExportStatus"], export["ItemCount"]) == ("COMPLETED", 1)
    assert (tmp_path / "buckets" / "lake" / export["ExportManifest"]).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_good_order(number: signal.Signals) -> None:
    with Serving() as server:
        assert server.stop(number) == (0, "", "")


def test_the_banner_tells_a_newcomer_what_to_do() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "stator", "serve", "--port", "0"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    banner = "".join(process.stdout.readline() for _ in range(4))
    process.terminate()
    process.communicate()
    assert "http://127.0.0.1:" in banner
    assert "keep it with --data DIR" in banner
    assert "aws dynamodb list-tables" in banner
    assert "\x1b" not in banner  # no colours into a pipe


def test_a_port_in_use_is_explained() -> None:
    with Serving() as server:
        port = server.facts["port"]
        second = run("serve", "--port", str(port))
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr == (
        f"error: port {port} on 127.0.0.1 is already in use\n"
        "hint: stop the program that listens there, or use another --port (0 takes a free one)\n"
    )


def test_a_folder_in_use_is_explained(tmp_path: Path) -> None:
    with Serving("--data", str(tmp_path / "data")):
        second = run("serve", "--port", "0", "--data", str(tmp_path / "data"))
    assert second.returncode == 1
    assert second.stderr.startswith(
        f"error: the data folder {tmp_path / 'data'} is already open in "
    )
    assert "\nhint: " in second.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--credentials", "missing.ini"], "the credentials file missing.ini does not exist"),
        (["--tls-cert", "missing.pem"], "the certificate or key file missing.pem does not exist"),
        (["--host", "203.0.113.1"], "203.0.113.1 is not an address of this machine"),
        (
            ["--host", "no-such-host.invalid"],
            "no-such-host.invalid is not an address of this machine",
        ),
        (["--data", "README.txt/data"], "README.txt/data"),
        (["--buckets", "missing"], "the folder missing for buckets does not exist"),
        (["--s3-endpoint", "localhost:8333"], "'localhost:8333' is not an S3 endpoint"),
    ],
)
def test_a_mistake_is_an_error_with_a_hint_and_never_a_traceback(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.txt").write_text("a file, not a folder")
    monkeypatch.chdir(tmp_path)
    done = run("serve", "--port", "0", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_is_json_for_who_asked_for_json() -> None:
    done = run("serve", "--json", "--credentials", "missing.ini")
    error = json.loads(done.stderr)["error"]
    assert done.returncode == 1
    assert error["type"] == "ConfigurationError"
    assert error["message"] == "the credentials file missing.ini does not exist"
    assert error["hint"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--memory", "--data", "x"],
        ["--tls-key", "x"],
        ["--buckets", ".", "--s3-endpoint", "http://localhost:8333"],
        ["--port", "70000"],
        ["--durability", "none"],
        ["--no-such-option"],
        ["surplus"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    done = run("serve", *arguments)
    assert done.returncode == 2
    assert "Usage: stator serve" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_way_to_the_first_answer_imports_nothing_heavy() -> None:
    script = """
import sys
from stator.cli.commands import serve
serve.serve = lambda plan, as_json: print(sorted({name.partition(".")[0] for name in sys.modules}))
from stator.cli.main import main
main(["serve", "--port", "0"])
"""
    done = run(script=script)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.replace("'", '"')))
    assert not loaded & {"boto3", "botocore", "pydantic", "rich", "rocksdict"}


def test_metrics_are_on_a_port_of_their_own() -> None:
    with Serving("--metrics-port", "0") as server:
        assert run_shell(server.facts["try"]).returncode == 0
        with urllib.request.urlopen(server.facts["metrics_url"], timeout=10) as page:
            text = page.read().decode()
    counted = 'stator_server_requests_total{operation="ListTables",result="ok",table=""} 1.0'
    assert counted in text

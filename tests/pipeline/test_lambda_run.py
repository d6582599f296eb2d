"""``stator lambda run``: plain Lambda functions on the stream of a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stator import Engine
from stator.cli.main import main

HANDLERS = "tests.pipeline.lambda_handlers"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    data = tmp_path / "data"
    with Engine.open(data) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "orders",
                "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {
                    "StreamEnabled": True,
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                },
            },
        )
        for number in range(4):
            put(engine, number)
    return data


def put(engine: Engine, number: int, key: str = "") -> None:
    item = {"PK": {"S": key or f"o{number}"}, "n": {"N": str(number)}}
    engine.call("PutItem", {"TableName": "orders", "Item": item})


def run(folder: Path, function: str, *options: str) -> int:
    target = f"{HANDLERS}:{function}"
    place = ["--stream", "orders", "--at", str(folder), "--from", "oldest", "--catch-up"]
    return called("lambda", "run", target, *place, *options)


def called(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def notes(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder.parent / "notes").read_text().splitlines()]


def test_a_plain_handler_gets_every_kind_of_change(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Engine.open(folder) as engine:
        put(engine, 9, "o1")
        engine.call("DeleteItem", {"TableName": "orders", "Key": {"PK": {"S": "o3"}}})
    assert run(folder, "lambda_handler", "--batch", "4", "--json") == 0
    inserts = [["INSERT", str(number)] for number in range(4)]
    assert sorted(notes(folder)) == sorted([*inserts, ["MODIFY", "1", "9"], ["REMOVE", "3"]])
    counts = json.loads(capsys.readouterr().out)
    assert (counts["read"], counts["given_up"], counts["errors"]) == (6, 0, 0)
    assert 2 <= counts["invocations"] <= 6  # each shard has batches of its own


def test_what_is_given_up_goes_to_the_destination(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "failures"
    assert run(folder, "refusing", "--retries", "0", "--bisect", "--on-failure", str(file)) == 0
    assert sorted(notes(folder)) == [["INSERT", "0"], ["INSERT", "1"], ["INSERT", "3"]]
    [failure] = map(json.loads, file.read_text().splitlines())
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    info = failure["DDBStreamBatchInfo"]
    assert info["batchSize"] == 1
    assert info["startSequenceNumber"] == info["endSequenceNumber"]


def test_a_function_that_takes_too_long_has_failed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "slow", "--retries", "0", "--timeout", "0.2", "--json") == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["errors"] == counts["invocations"] > 0
    assert counts["given_up"] == 4


@pytest.mark.parametrize(
    ("function", "stream", "message"),
    [("nothing", "orders", "has no function nothing"), ("slow", "other", "no table other")],
)
def test_wrong_names_are_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], function: str, stream: str, message: str
) -> None:
    target = f"{HANDLERS}:{function}"
    assert called("lambda", "run", target, "--stream", stream, "--at", str(folder)) == 1
    assert message in capsys.readouterr().err

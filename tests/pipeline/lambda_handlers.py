"""Plain Lambda functions, as people write them for AWS, for ``stator lambda run``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


def lambda_handler(event: dict[str, Any], context: Any) -> None:
    """Dispatch on the kind of change, and note what arrived in the file NOTES."""
    for record in event["Records"]:
        kind, body = record["eventName"], record["dynamodb"]
        if kind == "INSERT":
            note(kind, body["NewImage"])
        elif kind == "MODIFY":
            note(kind, body["OldImage"], body["NewImage"])
        elif kind == "REMOVE":
            note(kind, body["OldImage"])


def note(kind: str, *images: dict[str, Any]) -> None:
    line = [kind, *(image["n"]["N"] for image in images)]
    with Path(os.environ["NOTES"]).open("a") as opened:
        opened.write(json.dumps(line) + "\n")


def refusing(event: dict[str, Any], context: Any) -> None:
    """Fail for the batch that has the item 2."""
    for record in event["Records"]:
        if record["dynamodb"]["NewImage"]["n"]["N"] == "2":
            raise ValueError("no twos")
    for record in event["Records"]:
        note("INSERT", record["dynamodb"]["NewImage"])


def slow(event: dict[str, Any], context: Any) -> None:
    assert 0 < context.get_remaining_time_in_millis() <= 200
    assert context.aws_request_id and context.function_name == "slow"
    time.sleep(1.0)

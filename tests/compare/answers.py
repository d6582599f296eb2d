"""Asks two targets the same, and makes their answers comparable."""

from __future__ import annotations

import http.client
import json
from typing import Any

from stator.engine import Engine
from stator.errors import ServiceError

Answer = tuple[str, Any]
_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
    "X-Amz-Date": "20260101T000000Z",
}


class Remote:
    """A DynamoDB endpoint spoken to in plain JSON: no client in between that would check or change
    anything.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        self._connection = http.client.HTTPConnection(host, int(port), timeout=60)

    def close(self) -> None:
        self._connection.close()

    def ask(self, operation: str, request: dict[str, Any]) -> Answer:
        headers = {**_HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        self._connection.request("POST", "/", json.dumps(request), headers)
        reply = self._connection.getresponse()
        body = json.loads(reply.read() or b"{}")
        if reply.status == 200:
            return "ok", body
        return str(body["__type"]).rpartition("#")[2], body


class Local:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ask(self, operation: str, request: dict[str, Any]) -> Answer:
        try:
            return "ok", self._engine.call(operation, request)
        except ServiceError as error:
            return error.code, error.wire()


def comparable(operation: str, answer: Answer) -> Answer:
    """What must be equal in two answers: outcome and data, in any order of sets and scans."""
    kind, body = answer
    if kind == "TransactionCanceledException":
        return kind, [
            _plain({k: v for k, v in r.items() if k != "Message"})
            for r in body["CancellationReasons"]
        ]
    if kind != "ok":
        return kind, None
    data = {name: _plain(value) for name, value in body.items() if name != "ConsumedCapacity"}
    if operation == "Scan":
        data["Items"] = sorted(data.get("Items", []), key=json.dumps)
    return kind, data


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1:
            [(kind, content)] = value.items()
            if kind in ("SS", "NS", "BS") and isinstance(content, list):
                return {kind: sorted(content)}
        return {name: _plain(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value

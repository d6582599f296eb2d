"""Helpers that run statements and inspect the results, and the tables they run on."""

from __future__ import annotations

from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ServiceError, ValidationFailed

NWF = "Statement wasn't well formed, can't be processed: "
POVI = "One or more parameter values were invalid: "
LEFTOVER = NWF + "Unexpected token after expression"


def _index(name: str, keys: list[str], projection: str, *extra: str) -> dict[str, Any]:
    schema = [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))]
    details: dict[str, Any] = {"ProjectionType": projection}
    if extra:
        details["NonKeyAttributes"] = list(extra)
    return {"IndexName": name, "KeySchema": schema, "Projection": details}


def create_tables(engine: Engine) -> None:
    """``things`` (pk), ``numbers`` (pk, a number), ``orders`` (pk, sk and six indexes)."""
    for name, kind in (("things", "S"), ("numbers", "N")):
        engine.call(
            "CreateTable",
            {
                "TableName": name,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": kind}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            },
        )
    names = ("pk", "sk", "gsiPk", "gsiPk2", "lsiSk", "lsiSk2", "lsiSk3")
    engine.call(
        "CreateTable",
        {
            "TableName": "orders",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in names
            ],
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "GlobalSecondaryIndexes": [
                _index("gsi-all", ["gsiPk", "sk"], "ALL"),
                _index("gsi-keys", ["gsiPk2"], "KEYS_ONLY"),
                _index("gsi-inc", ["gsiPk2"], "INCLUDE", "projattr"),
            ],
            "LocalSecondaryIndexes": [
                _index("lsi-all", ["pk", "lsiSk"], "ALL"),
                _index("lsi-keys", ["pk", "lsiSk2"], "KEYS_ONLY"),
                _index("lsi-inc", ["pk", "lsiSk3"], "INCLUDE", "projattr"),
            ],
        },
    )


class Statements:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def run(self, statement: str, *parameters: dict[str, Any], **options: Any) -> dict[str, Any]:
        request: dict[str, Any] = {"Statement": statement, **options}
        if parameters:
            request["Parameters"] = list(parameters)
        return self.engine.call("ExecuteStatement", request)

    def items(
        self, statement: str, *parameters: dict[str, Any], **options: Any
    ) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.run(statement, *parameters, **options)["Items"]
        return items

    def all_items(
        self, statement: str, *, limit: int, **options: Any
    ) -> list[list[dict[str, Any]]]:
        """Every page of a SELECT."""
        pages = []
        token: dict[str, Any] = {}
        while True:
            answer = self.run(statement, Limit=limit, **token, **options)
            pages.append(answer["Items"])
            if "NextToken" not in answer:
                return pages
            token = {"NextToken": answer["NextToken"]}

    def refused(self, statement: str, *parameters: dict[str, Any], **options: Any) -> str:
        """The message of the ValidationException a statement gets."""
        with pytest.raises(ValidationFailed) as caught:
            self.run(statement, *parameters, **options)
        assert caught.value.code == "ValidationException"
        return caught.value.message

    def put(self, table: str, **item: Any) -> None:
        self.engine.call("PutItem", {"TableName": table, "Item": item})

    def get(self, table: str, **key: Any) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.engine.call(
            "GetItem", {"TableName": table, "Key": key}
        ).get("Item")
        return found

    def batch(self, *statements: str | dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.engine.call(
            "BatchExecuteStatement", {"Statements": _members(statements), **options}
        )

    def transact(self, *statements: str | dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.engine.call(
            "ExecuteTransaction", {"TransactStatements": _members(statements), **options}
        )


def _members(statements: tuple[str | dict[str, Any], ...]) -> list[dict[str, Any]]:
    return [{"Statement": member} if isinstance(member, str) else member for member in statements]


def message_of(error: pytest.ExceptionInfo[ServiceError]) -> str:
    return error.value.message


def s(text: str) -> dict[str, str]:
    return {"S": text}


def n(number: float | str) -> dict[str, str]:
    return {"N": str(number)}

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stator.engine import Engine
from stator.errors import ServiceError


class Answers:
    """An engine asked the way the conformance suite asks AWS: each request is answered, or refused
    with a text.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def __call__(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        return self.engine.call(operation, request)

    def refusal(
        self, operation: str, request: dict[str, Any], code: str = "ValidationException"
    ) -> str:
        with pytest.raises(ServiceError) as refused:
            self.engine.call(operation, request)
        assert refused.value.code == code
        return refused.value.message

    def create(
        self, name: str, *keys: str, index: tuple[str, list[str], int] | None = None
    ) -> None:
        """A table of string keys; ``index`` is a global one: its name, its attributes, how many of
        them are HASH.
        """

        def schema(names: list[str], hashes: int) -> list[dict[str, str]]:
            return [
                {"AttributeName": n, "KeyType": "HASH" if at < hashes else "RANGE"}
                for at, n in enumerate(names)
            ]

        declared = {*keys, *(index[1] if index else ())}
        request: dict[str, Any] = {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": schema(list(keys), 1),
            "AttributeDefinitions": [
                {"AttributeName": n, "AttributeType": "S"} for n in sorted(declared)
            ],
        }
        if index:
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": index[0],
                    "KeySchema": schema(index[1], index[2]),
                    "Projection": {"ProjectionType": "ALL"},
                }
            ]
        self.engine.call("CreateTable", request)


@pytest.fixture
def aws() -> Iterator[Answers]:
    with Engine.open() as engine:
        answers = Answers(engine)
        answers.create("hash", "pk")
        yield answers

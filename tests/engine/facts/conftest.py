from __future__ import annotations

from collections.abc import Iterator

import pytest

from stator.engine import Engine

from .subject import Subject


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open() as opened:
        yield opened


@pytest.fixture
def subject(engine: Engine) -> Subject:
    engine.call(
        "CreateTable",
        {
            "TableName": "facts",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        },
    )
    return Subject(engine)

"""Lines of DynamoDB JSON that cannot hold an item. ``tests/engine/recovery`` tests the others."""

from __future__ import annotations

from io import BytesIO

import pytest

from stator.errors import DataDamaged
from stator.formats import dynamodb_json

GOOD = b'{"Item":{"pk":{"S":"a"}}}\n'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"Item":' + b'{"M":' * 3_000 + b"{}" + b"}" * 3_001, "line 2 is nested too deeply"),
        (b"[" * 200_000, "line 2 is nested too deeply"),
        (b"x" * (dynamodb_json.LINE_BYTES + 1), "line 2 is longer than 8,388,608 bytes"),
        (b"x" * dynamodb_json.LINE_BYTES * 4, "line 2 is longer than 8,388,608 bytes"),
    ],
)
def test_a_line_that_is_no_item_is_damage(line: bytes, problem: str) -> None:
    stream = BytesIO(GOOD + line + b"\n" + GOOD)
    items = dynamodb_json.read_items(stream)
    assert next(items) == {"pk": {"S": "a"}}
    with pytest.raises(DataDamaged, match=problem):
        next(items)
    assert stream.tell() <= len(GOOD) + dynamodb_json.LINE_BYTES + 1


def test_a_line_of_the_longest_length_is_read() -> None:
    padding = b" " * (dynamodb_json.LINE_BYTES - len(GOOD))
    stream = BytesIO(padding + GOOD + GOOD)
    assert list(dynamodb_json.read_items(stream)) == [{"pk": {"S": "a"}}] * 2

from __future__ import annotations

from dataclasses import dataclass

import pytest

from stator import connect
from stator.coordination.position import (
    AppliedPosition,
    ShardPositions,
    applied_marker,
    sequence_text,
    unapplied,
)
from stator.errors import ConditionFailed, TransactionCanceled
from stator.tables.writes.expressions import Expressions
from tests.tables.shop import shop


@dataclass(frozen=True)
class Change:
    sequence: str


def test_sequence_numbers_of_any_length_sort_as_text() -> None:
    numbers = ["9", "10", "1" * 38, "9" * 40, ""]
    assert sorted(numbers, key=sequence_text) == ["", "9", "10", "1" * 38, "9" * 40]


def test_changes_up_to_the_position_are_left_out() -> None:
    changes = [Change(sequence_text(str(number))) for number in (8, 9, 10, 11)]
    assert unapplied(changes, sequence_text("9")) == changes[2:]
    assert unapplied(changes, "") == changes


def test_a_replay_of_an_applied_change_has_no_effect() -> None:
    db = connect(shop())
    place = db.context.schema.place
    position = AppliedPosition("applied")
    key = place.key("SUM#1", "SUM")

    def add(sequence: str) -> None:
        written = Expressions()
        total, one = written.name("n"), written.value({"N": "1"})
        request = {
            "TableName": place.table,
            "Key": key,
            "UpdateExpression": f"SET {position.assignment(written, sequence)} ADD {total} {one}",
            "ConditionExpression": position.below(written, sequence),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        db.call("UpdateItem", written.into(request))

    add(sequence_text("7"))
    add(sequence_text("12"))
    with pytest.raises(ConditionFailed) as refused:
        add(sequence_text("7"))
    assert position.read(refused.value.item) == sequence_text("12")
    assert db.call("GetItem", {"TableName": place.table, "Key": key})["Item"]["n"] == {"N": "2"}


def test_positions_of_shards_are_kept_apart_and_forgotten_after_two_days() -> None:
    positions = ShardPositions().moved("a", "0007", 1000.0).moved("b", "0003", 2000.0)
    assert (positions.of("a"), positions.of("b"), positions.of("c")) == ("0007", "0003", "")
    stored = positions.attributes("_applied")
    assert ShardPositions.read(stored, "_applied") == positions
    later = positions.moved("b", "0004", 1000.0 + 48 * 3600 + 1)
    assert (later.of("a"), later.of("b")) == ("", "0004")
    assert ShardPositions().attributes("_applied") == {}


def test_a_named_batch_is_applied_once() -> None:
    db = connect(shop())
    marker = applied_marker(db.context.schema.place, "batch-1", 2_000_000_000.0)
    request = {"TransactItems": [{marker.kind: marker.request}]}
    db.call("TransactWriteItems", request)
    with pytest.raises(TransactionCanceled, match="ConditionalCheckFailed"):
        db.call("TransactWriteItems", request)

"""What is counted of a call: its entity, its keys, and a sampled size."""

from __future__ import annotations

import pytest

from stator.design.design import Design
from stator.design.plan.own_table import own_table
from stator.tables.metrics.call_facts import UNPROCESSED, FactReader
from stator.tables.observers import CallRecord
from stator.throttle_reason import ThrottleReason

from ..shop import shop


@pytest.fixture
def design() -> Design:
    return shop()


def record(operation: str, label: str, **facts: object) -> CallRecord:
    return CallRecord(operation, label, "shop", 0.0, 0.01, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("label", "entity"),
    [("orders_of_user", "Order"), ("put Product", "Product"), ("batch", ""), ("series t", "")],
)
def test_the_entity_comes_from_the_plan_or_the_label(
    design: Design, label: str, entity: str
) -> None:
    assert FactReader(design.plan()).of(record("PutItem", label)).entity == entity


def test_parts_of_items_are_not_measured(design: Design) -> None:
    item = {"PK": {"S": "x" * 100}}
    reader = FactReader(design.plan())
    reply = {"Items": [item], "Count": 1, "ScannedCount": 1}
    whole = record("Query", "q", request={"TableName": "shop"}, reply=reply)
    assert reader.of(whole).item_bytes == 102
    for part in ({"IndexName": "GSI1"}, {"ProjectionExpression": "a"}):
        partial = record("Query", "q", request={"TableName": "shop", **part}, reply=reply)
        assert reader.of(partial).item_bytes is None


def test_a_refusal_that_names_no_reason_is_unnamed(design: Design) -> None:
    sentence = ThrottleReason(None, text="The level of configured throughput was exceeded.")
    facts = FactReader(design.plan()).of(record("PutItem", "put Product", throttles=(sentence,)))
    assert facts.throttles == (("", "Unnamed"),)


def test_unprocessed_items_of_a_batch_are_a_refusal(design: Design) -> None:
    put = {"PutRequest": {"Item": {"PK": {"S": "a"}}}}
    batch = {"RequestItems": {"shop": [put]}}
    facts = FactReader(design.plan()).of(
        record(
            "BatchWriteItem", "batch", request=batch, reply={"UnprocessedItems": {"shop": [put]}}
        )
    )
    assert facts.throttles == (("", UNPROCESSED),)


def test_the_table_of_pattern_objects_has_keys_too(design: Design) -> None:
    own = own_table(design.name)
    request = {"TableName": own.name, "Key": {own.partition: {"S": "lease"}}}
    call = CallRecord(
        "UpdateItem", "stream lease", own.name, 0.0, 0.01, write_units=1.0, request=request
    )
    assert FactReader(design.plan(), show_keys=True).of(call).keys == (("lease", 1.0),)

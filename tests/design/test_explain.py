"""One call of a pattern, explained."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stator.design.patterns.query import find
from stator.engine.engine import Engine
from stator.errors import DesignError

from . import models


def test_the_request_is_the_one_to_send() -> None:
    design = models.shop()
    start, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    told = models.purchases_between("u1", start, end=end).explain()
    with Engine.open() as engine:
        for request in design.plan().create_table_requests():
            engine.call("CreateTable", request)
        for request in told.requests:
            assert engine.call(told.pattern.operation, request)["Count"] == 0


def test_it_reads_well() -> None:
    models.shop()
    text = str(models.customer_by_id("u1").explain())
    assert text.startswith("customer_by_id: GetItem on shop\n")
    assert "read units a call" in text
    assert '"USER#u1"' in text or "u1" in text


def test_a_query_without_a_pattern_cannot_be_explained() -> None:
    with pytest.raises(DesignError, match="access pattern") as caught:
        find(models.Customer).explain()
    assert "@read" in str(caught.value.hint)

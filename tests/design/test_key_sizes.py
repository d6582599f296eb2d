"""Keys that DynamoDB would refuse are refused before, with the field that makes them so."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stator.design.design import Design
from stator.design.entities.entity import Entity, info
from stator.design.entities.markers import ident
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.plan.key_sizes import bounds
from stator.engine.engine import Engine
from stator.errors import DesignError, StatorError


class Level(Enum):
    LOW = "low # ä"
    HIGH = "high" * 10


class Page(Entity):
    site: str = ident()
    path: str = ident()
    topic: str = ""
    level: Level = Level.LOW


class Sized(Entity):
    number: int = ident()
    amount: Decimal = ident()
    share: float = ident()
    at: datetime = ident()
    mark: UUID = ident()
    level: Level = ident()
    flag: bool = ident()


@read(rps=5, returns=5)
def pages(site: str) -> Query[Page]:
    return find(Page).where(Page.site == site)


@read(rps=5, returns=5)
def about(topic: str) -> Query[Page]:
    return find(Page).where(Page.topic == topic)


PLAN = Design("web", [Page, Sized], [pages, about]).plan()


@pytest.mark.parametrize(
    ("values", "field", "limit"),
    [
        ({"site": "s" * 2050, "path": "p"}, "site", 2048),
        ({"site": "s", "path": "p" * 1100}, "path", 1024),
        ({"site": "s", "path": "ä" * 600}, "path", 1024),
        ({"site": "s", "path": "#" * 400}, "path", 1024),
        ({"site": "s", "path": "p", "topic": "t" * 3000}, "topic", 2048),
    ],
)
def test_an_item_with_a_key_too_long_is_refused_by_name(
    values: dict[str, Any], field: str, limit: int
) -> None:
    page = Page(**values)
    with pytest.raises(
        DesignError, match=rf"Page\.{field} is too long for a key: .* DynamoDB allows {limit}"
    ) as raised:
        PLAN.entity(Page).item(page)
    assert field in str(raised.value.hint)


def test_base_key_checks_too() -> None:
    with pytest.raises(DesignError, match=r"Page\.path is too long"):
        PLAN.entity(Page).base_key(site="s", path="p" * 1100)


def test_the_longest_that_is_let_through_is_the_longest_that_is_stored() -> None:
    plan = PLAN.entity(Page)
    fixed = len(str(plan.base_key(site="s", path="")["SK"]["S"]))
    engine = Engine.open()
    for request in PLAN.create_table_requests():
        engine.call("CreateTable", request)
    with engine:
        longest = Page(site="s", path="p" * (1024 - fixed), topic="x")
        engine.call("PutItem", plan.put_request(longest))
        request = plan.put_request(longest)
        request["Item"]["SK"]["S"] += "p"
        with pytest.raises(StatorError):
            engine.call("PutItem", request)
        with pytest.raises(DesignError):
            plan.put_request(Page(site="s", path="p" * (1025 - fixed)))


@given(
    st.builds(
        Sized,
        number=st.integers(-(10**37), 10**37),
        amount=st.decimals(
            allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=6
        ),
        share=st.floats(allow_nan=False, allow_infinity=False, width=32),
        at=st.datetimes(timezones=st.just(UTC)),
        mark=st.uuids(),
        level=st.sampled_from(Level),
        flag=st.booleans(),
    )
)
def test_every_key_is_within_the_bounds_of_its_types(sized: Sized) -> None:
    plan = PLAN.entity(Sized)
    shapes = {name: field.shape for name, field in info(Sized).fields.items()}
    filled = plan.item_keys(sized)
    for key in plan.keys:
        least, most = bounds(key.template, shapes)
        assert most is not None
        assert least <= len(filled[key.name]["S"].encode()) <= most

"""Quantities, roles and decorators that make no sense are refused where they are written."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    Query,
    connect,
    counter,
    created,
    find,
    ident,
    per,
    read,
    ttl,
    updated,
    version,
    write,
)
from stator.errors import DesignError


class Item(Entity):
    item_id: str = ident()


class Part(Entity):
    part_id: str = ident()


WRONG: list[Any] = [-1, math.nan, math.inf, "many", None, True]


@pytest.mark.parametrize("number", WRONG)
def test_volumes_writes_and_sizes_are_quantities(number: Any) -> None:
    for what in ("volumes", "writes", "sizes"):
        given: dict[str, Any] = {what: {Item: number}}
        with pytest.raises(DesignError, match=r"of Item is .* not a quantity"):
            Design("items", [Item], **given)
    with pytest.raises(DesignError, match="not a quantity"):
        Design("items", [Item, Part], volumes={Part: per(Item, number)})


@pytest.mark.parametrize("number", [each for each in WRONG if each is not None])
def test_rates_and_results_are_quantities(number: Any) -> None:
    for what in ("rps", "returns"):
        given: dict[str, Any] = {what: number}
        with pytest.raises(DesignError, match=r"quantity|positive"):
            read(**given)
    with pytest.raises(DesignError, match="not a quantity"):
        write(rps=number)


def test_a_decorator_without_parentheses_is_named() -> None:
    def items(item_id: str) -> Query[Item]:
        return find(Item).where(Item.item_id == item_id)

    bare: Any = read
    with pytest.raises(DesignError, match=r"test_wrong_quantities\.py:\d+: @read above items"):
        bare(items)
    bare = write
    with pytest.raises(DesignError, match="@write above items"):
        bare(items)


def test_a_design_has_entities() -> None:
    with pytest.raises(DesignError, match="has no entities"):
        Design("empty", [])


@pytest.mark.parametrize(
    ("marker", "right"),
    [(version, "int"), (created, "datetime"), (updated, "datetime"), (counter, "int or float")],
)
def test_a_role_has_its_types(marker: Any, right: str) -> None:
    wrong = type(
        "Wrong",
        (Entity,),
        {
            "__annotations__": {"wrong_id": str, "field": bytes},
            "wrong_id": ident(),
            "field": marker(),
        },
    )
    with pytest.raises(DesignError, match="cannot be a bytes") as refused:
        Design("wrong", [wrong]).plan()
    assert right in (refused.value.hint or "")


def test_an_expiry_is_a_time() -> None:
    class Wrong(Entity):
        wrong_id: str = ident()
        expires: str = ttl(default="")

    class Right(Entity):
        right_id: str = ident()
        expires: datetime | None = ttl(default=None)

    with pytest.raises(DesignError, match="cannot be a str"):
        Design("wrong", [Wrong]).plan()
    Design("right", [Right]).plan()


def test_a_misspelt_argument_names_the_method() -> None:
    db: Any = connect(Design("items", [Item]))
    with pytest.raises(TypeError, match=r"^create\(\) got an unexpected keyword argument 'whn'"):
        db.create(Item(item_id="1"), whn=3)

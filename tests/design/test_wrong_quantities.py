"""Quantities, roles and decorators that make no sense are refused where they are written."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import pytest

from stator import (
    Design,
    Entity,
    Query,
    connect,
    counter,
    created,
    creates,
    deletes,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    ttl,
    updated,
    updates,
    version,
    write,
)
from stator.design.cost.report import cost
from stator.design.patterns.quantities import MOST, MOST_A_SECOND, shown_quantity
from stator.errors import DesignError


class Item(Entity):
    item_id: str = ident()


class Part(Entity):
    part_id: str = ident()
    item_id: str
    state: str
    at: datetime


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


# --- every number of the public signatures


def parts(*changes: Any, rps: Any = 1, traffic: Any = None, **given: Any) -> Design:
    @read(**{"rps": 10, **(traffic or {})})
    def parts_of(item_id: str, since: datetime) -> Query[Part]:
        return find(Part).where(Part.item_id == item_id, Part.at >= since)

    @read(rps=3)
    def latest(state: str) -> Query[Part]:
        return find(Part).where(Part.state == state).newest_first(Part.at).limit(10)

    @write(rps=rps)
    def change() -> object:
        return changes or creates(Part)

    given.setdefault("volumes", {Item: 1_000, Part: per(Item, 20)})
    return Design("parts", [Item, Part], [parts_of, latest, change], **given)


CASES: Final[dict[str, Callable[[Any], Design]]] = {
    "read(rps)": lambda number: parts(traffic={"rps": number}),
    "read(returns)": lambda number: parts(traffic={"returns": number}),
    "read(within)": lambda number: parts(traffic={"within": number}),
    "write(rps)": lambda number: parts(rps=number),
    "creates(times)": lambda number: parts(creates(Part, times=number)),
    "updates(times)": lambda number: parts(updates(Part.state, times=number)),
    "deletes(times)": lambda number: parts(deletes(Part, times=number)),
    "per(count)": lambda number: parts(volumes={Item: 1_000, Part: per(Item, number)}),
    "distinct(values)": lambda number: parts(facts=[distinct(Part.state, values=number)]),
    "share(part)": lambda number: parts(facts=[share(Part.state == "new", number)]),
    "largest(part)": lambda number: parts(facts=[largest(Part.state, number)]),
    "Design(volumes)": lambda number: parts(volumes={Part: number}),
    "Design(writes)": lambda number: parts(writes={Part: number}),
    "Design(sizes)": lambda number: parts(sizes={Part: number}),
}
ODD: Final[list[Any]] = [
    math.nan, math.inf, -math.inf, -1, -1e-300, 0, 1e-300, 0.5, 1e300, 10**400, 10**5000, MOST,
    MOST_A_SECOND, True, "3", None, [3], 3j,
]  # fmt: skip


def test_every_number_of_the_public_signatures_has_a_case() -> None:
    named = {
        f"{function.__name__}({name})"
        for function in (read, write, creates, updates, deletes, per, distinct, share, largest)
        for name, parameter in inspect.signature(function).parameters.items()
        if "float" in str(parameter.annotation)
    }
    named |= {
        f"Design({name})"
        for name, parameter in inspect.signature(Design).parameters.items()
        if "float" in str(parameter.annotation) or "int" in str(parameter.annotation)
    }
    assert named == CASES.keys()


@pytest.mark.parametrize("number", ODD, ids=shown_quantity)
@pytest.mark.parametrize("case", CASES)
def test_a_number_is_refused_with_our_error_or_means_something(case: str, number: Any) -> None:
    try:
        design = CASES[case](number)
    except DesignError as error:
        assert error.hint  # noqa: PT017 - only some of the numbers are refused
        return
    planned = design.plan()
    assert isinstance(number, (int, float)) or number is None
    assert not isinstance(number, bool)
    report = design.check(at_least=0)
    totals: list[Any] = [cost(planned).total, planned.dollars_per_month]
    totals += [each.units_per_call for each in planned.patterns]
    totals += [each.dollars for each in report.findings if each.dollars is not None]
    assert all(0 <= float(each) < math.inf for each in totals), (case, number)


@pytest.mark.parametrize("number", [math.nan, math.inf, -1, "3", None])
def test_the_times_of_a_change_are_refused_at_the_line_of_the_pattern(number: Any) -> None:
    for change in (
        lambda: creates(Part, number),
        lambda: updates(Part.state, times=number),
        lambda: deletes(Part, times=number),
    ):

        @write(rps=1)
        def written(change: Any = change) -> object:
            return change()

        with pytest.raises(DesignError, match=r"test_wrong_quantities\.py:\d+: written: times of"):
            Design("parts", [Part], [written])

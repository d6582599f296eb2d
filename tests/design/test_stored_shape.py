"""What a changed class means for stored items, as ``stator check`` compares it with the lock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest

from stator import Design, Entity, Query, find, ident, read, unique, upcast
from stator.cli.main import main as stator
from stator.design.entities.shapes import shape_of
from stator.design.plan.lock_file import compare
from stator.design.plan.plan import Plan
from stator.design.plan.stored_shape import StoredType, reads, stored_type


def plan(entity: type[Any], *patterns: Any) -> Plan:
    """The plan as it comes back from a lock file."""
    return Plan.from_json(Design("shop", [entity], list(patterns)).plan().to_json())


def order(version: int = 1, upcasts: tuple[int, ...] = (), **fields: Any) -> type[Any]:
    """An entity with these annotations; a tuple is an annotation and its default."""
    values = {name: given[1] for name, given in fields.items() if isinstance(given, tuple)}
    hints = {
        name: given[0] if isinstance(given, tuple) else given for name, given in fields.items()
    }
    body = {"__annotations__": {"order_id": str} | hints, "order_id": ident()} | values
    made: Any = type(
        "Order", (Entity,), body, name="Order", key=("ORDER#{order_id}",), version=version
    )
    for start in upcasts:
        upcast(made, start)(lambda values: values)
    return made


def risks(old: type[Any], new: type[Any]) -> list[tuple[str, str]]:
    return [(each.risk, each.subject) for each in compare(plan(old), plan(new))]


BASE: dict[str, Any] = {"total": int, "note": (str | None, None)}


def test_an_unchanged_shape_is_no_change() -> None:
    assert risks(order(**BASE), order(**BASE)) == []


@pytest.mark.parametrize(
    ("change", "risk"),
    [
        ({"extra": str}, "default"),
        ({"extra": (str, "x")}, "safe"),
        ({"extra": (str | None, None)}, "safe"),
        ({"total": str}, "upcast"),
        ({"total": Decimal}, "safe"),
        ({"total": (int | None, None)}, "safe"),
        ({"total": (int, 0)}, "safe"),
        ({"note": str}, "default"),
        ({"note": (str, "")}, "safe"),
    ],
)
def test_a_changed_field_has_a_risk(change: dict[str, Any], risk: str) -> None:
    [name] = change
    assert risks(order(**BASE), order(**(BASE | change))) == [(risk, f"field Order.{name}")]


def test_a_dropped_field_orphans_its_data_or_breaks_deployed_code() -> None:
    optional, required = order(total=int), order(note=(str | None, None))
    [gone] = compare(plan(order(**BASE)), plan(optional))
    assert (gone.risk, gone.subject, gone.is_blocking) == ("orphans", "field Order.note", False)
    [broken] = compare(plan(order(**BASE)), plan(required))
    assert (broken.risk, broken.is_blocking) == ("upcast", True)
    assert "raise the version to 2 and write @upcast(Order, 1)" in broken.do


def test_a_raised_version_with_its_upcasts_makes_any_change_safe() -> None:
    changed = {"total": str, "buyer": str}
    found = risks(order(**BASE), order(version=2, upcasts=(1,), **changed))
    assert {risk for risk, _ in found} == {"safe"}
    assert ("safe", "entity Order") in found


def test_a_missing_link_a_lost_upcast_and_a_lower_version_are_found() -> None:
    old = order(version=2, upcasts=(1,), **BASE)
    found = compare(plan(old), plan(order(version=4, upcasts=(1, 3), **BASE)))
    assert ("upcast", "no upcast leads from version 2 to 3") in [(e.risk, e.what) for e in found]
    [lost] = compare(plan(old), plan(order(version=2, **BASE)))
    assert (lost.risk, lost.what) == ("upcast", "the upcast from version 1 is gone")
    assert risks(old, order(**BASE))[0] == ("upcast", "entity Order")


def test_a_field_that_becomes_unique_needs_guards() -> None:
    found = risks(order(email=str), order(email=(str, unique())))
    assert found == [("backfill", "field Order.email")]


def test_an_index_on_a_new_field_needs_a_backfill() -> None:
    class Order(Entity, key=("ORDER#{order_id}",)):
        order_id: str = ident()
        region: str = "eu"

    @read(rps=10)
    def by_region(region: str) -> Query[Order]:
        return find(Order).where(Order.region == region)

    old, new = plan(order()), plan(Order, by_region)
    [index] = new.tables[0].indexes
    assert index.native
    found = [each for each in compare(old, new) if each.risk == "backfill"]
    assert ["region" in each.what and each.subject for each in found] == ["entity Order"]
    stored = plan(order(region=(str, "eu")))
    assert not [each for each in compare(stored, new) if each.risk == "backfill"]


def test_a_lock_without_fields_says_nothing_about_them() -> None:
    data = json.loads(plan(order(**BASE)).to_json())
    for entity in data["entities"]:
        del entity["fields"]
    old = Plan.from_json(json.dumps(data | {"format": 2}))
    found = compare(old, plan(order(total=str)))
    assert not [each for each in found if each.subject != "design shop"]


class Colour(Enum):
    RED = "red"


class Colours(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Small:
    street: str


@dataclass
class Large:
    street: str
    floor: int = 0


@dataclass
class Strict:
    street: str
    floor: int


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        (int, Decimal, True), (int, float, True), (Decimal, int, False), (bool, int, False),
        (UUID, str, True), (datetime, str, True), (str, UUID, False), (date, datetime, False),
        (Colour, Colours, True), (Colours, Colour, False), (Colour, str, True),
        (Literal["a"], Literal["a", "b"], True), (Literal["a", "b"], Literal["a"], False),
        (list[int], tuple[int, ...], True), (list[int], list[Decimal], True),
        (tuple[int, int], list[int], True), (list[int], tuple[int, int], False),
        (list[int], list[str], False), (set[str], list[str], False), (set[int], set[Decimal], True),
        (dict[str, int], dict[str, Decimal], True), (dict[str, int], dict[str, str], False),
        (Small, Large, True), (Large, Small, True), (Small, Strict, False), (str, Any, True),
        (list[int], list[int | None], True), (list[int | None], list[int], False),
    ],
)  # fmt: skip
def test_types_read_what_other_types_stored(old: Any, new: Any, fits: bool) -> None:
    before, after = (stored_type(shape_of(each, "field")) for each in (old, new))
    assert reads(after, before) is fits
    assert reads(before, before)
    assert str(after)


def test_a_stored_type_is_readable() -> None:
    assert str(stored_type(shape_of(dict[str, list[int | None]], "f"))) == "map[list[int?]]"
    assert str(StoredType("choice", (StoredType("str"),), ("a", "b"))) == "str (a, b)"


DESIGN = """
from stator import Design, Entity, ident

class Order(Entity{options}):
    order_id: str = ident()
    total: {type}

shop = Design("shop", [Order])
"""


def test_check_and_plan_name_a_changed_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as ended:
            stator(list(arguments))
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    Path("design.py").write_text(DESIGN.format(options="", type="int"))
    assert run("plan", "--write")[0] == 0
    assert run("check")[0] == 0
    Path("design.py").write_text(DESIGN.format(options="", type="str"))
    code, shown, _ = run("check", "--json")
    [change] = json.loads(shown)["changes"]
    assert (code, change["risk"], change["subject"]) == (1, "upcast", "field Order.total")
    code, _, shown = run("plan", "--write")
    assert code == 1
    assert "would not find or read stored items" in shown
    assert run("plan", "--write", "--force")[0] == 0
    assert run("check")[0] == 0

"""The lock file keeps a plan, and ``compare`` says what a new plan means for existing data."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stator.design.design import Design
from stator.design.entities.entity import Entity
from stator.design.entities.markers import ident, stored
from stator.design.patterns.pattern import read
from stator.design.patterns.query import Query, find
from stator.design.patterns.write_pattern import updates, write
from stator.design.plan.lock_file import LockChange, compare, lock_path, read_lock, write_lock
from stator.design.plan.plan import FORMAT, Plan
from stator.design.plan.stored_shape import StoredField, StoredType, likely_renames
from stator.errors import ConfigurationError

from . import models

# --- the file -------------------------------------------------------------------------------------


def test_a_lock_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    for design in (models.shop(), models.social("aggregate"), models.routers("table-per-entity")):
        path = lock_path(design.name, tmp_path)
        assert path.name == f"{design.name}.design.json"
        assert write_lock(path, design.plan())
        assert read_lock(path) == design.plan()


def test_writing_the_same_again_leaves_the_file_alone(tmp_path: Path) -> None:
    path = lock_path("shop", tmp_path)
    assert write_lock(path, models.shop().plan())
    before = path.stat().st_mtime_ns
    assert not write_lock(path, models.shop().plan())
    assert path.stat().st_mtime_ns == before
    assert [each.name for each in tmp_path.iterdir()] == ["shop.design.json"]


def test_everybody_may_read_a_lock_and_its_mode_is_kept(tmp_path: Path) -> None:
    path = lock_path("shop", tmp_path)
    write_lock(path, models.shop().plan())
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o640)
    write_lock(path, models.shop("aggregate").plan())
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_old_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lock_path("shop", tmp_path)
    write_lock(path, models.shop().plan())

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(ConfigurationError, match="No space left"):
        write_lock(path, models.shop("aggregate").plan())
    monkeypatch.undo()
    assert read_lock(path) == models.shop().plan()
    assert [each.name for each in tmp_path.iterdir()] == ["shop.design.json"]


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "shop.design.json") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": 99}',
        '{"format": 1}',
        '{"format": 1, "nonsense": 2}',
        "<<<<<<< HEAD\n{}\n",
    ],
)
def test_what_is_not_a_plan_is_an_error_with_a_hint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "shop.design.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_lock(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_lock_of_a_newer_format_is_refused_with_the_advice_to_upgrade(tmp_path: Path) -> None:
    path = lock_path("shop", tmp_path)
    data = json.loads(models.shop().plan().to_json())
    path.write_text(json.dumps(data | {"format": FORMAT + 1, "invented_later": []}))
    with pytest.raises(
        ConfigurationError, match=f"format {FORMAT + 1}.*reads formats 1 to"
    ) as caught:
        read_lock(path)
    assert str(caught.value.hint).endswith("upgrade Stator")


@pytest.mark.parametrize("number", [None, 0, -1, "2", 1.0, True])
def test_a_lock_without_a_valid_format_number_is_refused(tmp_path: Path, number: object) -> None:
    path = lock_path("shop", tmp_path)
    path.write_text(json.dumps(json.loads(models.shop().plan().to_json()) | {"format": number}))
    with pytest.raises(ConfigurationError, match="no valid format number"):
        read_lock(path)


def test_a_lock_has_a_format_and_no_words_in_an_order_of_chance(tmp_path: Path) -> None:
    path = lock_path("shop", tmp_path)
    write_lock(path, models.shop().plan())
    data = json.loads(path.read_text())
    assert data["format"] == 7
    assert list(data) == sorted(data)


# --- comparing ------------------------------------------------------------------------------------


def changes(old: Plan | Design, new: Plan | Design) -> list[tuple[str, str]]:
    plans = [each.plan() if isinstance(each, Design) else each for each in (old, new)]
    found = compare(*plans)
    assert all(isinstance(each, LockChange) and each.what and each.do for each in found)
    return [(each.risk, each.subject) for each in found]


def order(**options: Any) -> type[Entity]:
    """A class of the same name each time, as after an edit of the file."""

    class Order(Entity, **options):
        order_id: str = ident()
        user_id: str
        status: str
        placed_at: datetime

    return Order


def by_id(entity: Any) -> Any:
    @read(rps=10)
    def order_by_id(order_id: Any) -> Query[Any]:
        return find(entity).where(entity.order_id == order_id)

    return order_by_id


def by_user(entity: Any) -> Any:
    @read(rps=10, returns=10)
    def orders_of(user_id: str) -> Query[Any]:
        return find(entity).where(entity.user_id == user_id).newest_first(entity.placed_at)

    return orders_of


def open_ones(entity: Any) -> Any:
    @read(rps=1, returns=10)
    def open_orders() -> Query[Any]:
        return find(entity).where(entity.status == "open").oldest_first(entity.placed_at)

    return open_orders


def change_status(entity: Any) -> Any:
    @write(rps=1)
    def move() -> object:
        return updates(entity.status)

    return move


def designed(
    *patterns: Any,
    entities: tuple[Any, ...] = (),
    options: dict[str, Any] | None = None,
    **rest: Any,
) -> Design:
    made = order(**(options or {}))
    return Design("shop", [made, *entities], [pattern(made) for pattern in patterns], **rest)


class Coupon(Entity):
    code: str = ident()


@pytest.mark.parametrize("layout", ["single-table", "aggregate", "table-per-entity"])
def test_equal_designs_have_no_difference(layout: Any) -> None:
    for make in (models.shop, models.social, models.routers):
        assert changes(make(layout), make(layout)) == []


def test_a_new_entity_and_a_new_pattern_are_safe() -> None:
    before = designed(by_id, entities=(Coupon,))

    @read(rps=1)
    def coupon(code: str) -> Query[Coupon]:
        return find(Coupon).where(Coupon.code == code)

    made = order()
    after = Design("shop", [made, Coupon], [by_id(made), coupon])
    assert changes(before, after) == [("safe", "pattern coupon")]

    class Gift(Entity):
        gift_id: str = ident()

    grown = Design("shop", [made, Coupon, Gift], [by_id(made), coupon])
    assert changes(after, grown) == [("safe", "entity Gift")]


def test_an_index_on_attributes_that_items_have_is_safe() -> None:
    found = changes(designed(by_id), designed(by_id, by_user))
    after = designed(by_id, by_user).plan()
    assert after.tables[0].indexes[0].native
    assert found == [("safe", "index GSI1 of shop"), ("safe", "pattern orders_of")]


def test_an_index_on_attributes_that_must_be_written_needs_a_backfill() -> None:
    index = {"by_user": ("USER#{user_id}", "ORDER#{placed_at}#{order_id}")}
    found = changes(designed(by_id), designed(by_id, by_user, options={"index": index}))
    assert ("backfill", "entity Order") in found
    assert ("safe", "index by_user of shop") in found
    assert found[0][0] == "backfill"  # the gravest first


def test_another_base_key_orphans_data_and_the_old_one_can_be_kept() -> None:
    old = designed(by_id).plan()
    new = designed(by_id, options={"key": ("ORDERS#{order_id}", "ORDER")}).plan()
    [change] = [each for each in compare(old, new) if each.risk == "orphans"]
    assert change.subject == "entity Order"
    assert "ORDER#{order_id}" in change.what and "ORDERS#{order_id}" in change.what
    assert 'key=("ORDER#{order_id}", "ORDER")' in change.do
    kept = designed(by_id, options={"key": ("ORDER#{order_id}", "ORDER")}).plan()
    assert not [each for each in compare(old, kept) if each.risk == "orphans"]
    values = {"order_id": "o1"}
    assert old.entity("Order").base_key(**values) == kept.entity("Order").base_key(**values)
    assert old.entity("Order").base_key(**values) != new.entity("Order").base_key(**values)


def test_another_type_of_a_key_field_orphans_data() -> None:
    class Order(Entity):
        order_id: int = ident()
        user_id: str
        status: str
        placed_at: datetime

    after = Design("shop", [Order], [by_id(Order)])
    assert ("orphans", "entity Order") in changes(designed(by_id), after)


def test_another_table_orphans_data() -> None:
    found = changes(models.shop(), models.shop("table-per-entity"))
    assert ("orphans", "table shop") in found
    assert ("orphans", "entity Customer") in found


def test_an_entity_that_is_gone_leaves_its_items_behind() -> None:
    found = compare(designed(by_id, entities=(Coupon,)).plan(), designed(by_id).plan())
    orphaned = [each for each in found if each.risk == "orphans"]
    assert [each.subject for each in orphaned] == ["entity Coupon"]
    assert 'name="Coupon"' in orphaned[0].do


def test_a_pattern_that_is_gone_and_its_index_are_safe() -> None:
    assert changes(designed(by_id, by_user), designed(by_id)) == [
        ("safe", "index GSI1 of shop"),
        ("safe", "pattern orders_of"),
    ]


def test_other_names_of_key_attributes_orphan_data() -> None:
    found = changes(
        designed(by_id, entities=(Coupon,)), designed(by_id, entities=(Coupon,), names={"PK": "pk"})
    )
    assert ("orphans", "table shop") in found
    assert ("orphans", "entity Order") in found


def test_an_index_key_written_otherwise_needs_a_backfill() -> None:
    old = {"by_user": ("USER#{user_id}", "ORDER#{placed_at}#{order_id}")}
    new = {"by_user": ("CUSTOMER#{user_id}", "ORDER#{placed_at}#{order_id}")}
    before, after = (designed(by_id, by_user, options={"index": each}) for each in (old, new))
    found = changes(before, after)
    assert ("backfill", "entity Order") in found
    assert not [risk for risk, _ in found if risk == "orphans"]


def test_a_new_local_index_needs_a_new_table() -> None:
    with_local = models.social().plan()
    plain = models.social()
    plain.reads = tuple(each for each in plain.reads if each.name != "latest_comments")
    found = compare(plain.plan(), with_local)
    assert [each.subject for each in found if "local index" in each.what] == [
        "index LSI1 of social"
    ]
    assert found[0].risk == "orphans"


def test_a_sparse_index_that_holds_other_items_needs_a_backfill() -> None:
    before = designed(by_id, open_ones, change_status)

    def sent(entity: Any) -> Any:
        @read(rps=1, returns=10)
        def open_orders() -> Query[Any]:
            return find(entity).where(entity.status == "sent").oldest_first(entity.placed_at)

        return open_orders

    found = changes(before, designed(by_id, sent, change_status))
    assert found == [("backfill", "entity Order"), ("safe", "pattern open_orders")]


def test_other_rates_and_volumes_are_a_difference_of_estimates_only() -> None:
    made = order()
    before = Design("shop", [made], [by_id(made)], volumes={made: 1000})
    after = Design("shop", [made], [by_id(made)], volumes={made: 90_000_000})
    found = compare(before.plan(), after.plan())
    assert [(each.risk, each.subject) for each in found] == [("safe", "design shop")]
    assert "a month" in found[0].what


def test_words_are_no_difference() -> None:
    from dataclasses import replace

    plan = models.shop().plan()
    other = replace(
        plan,
        warnings=("beware",),
        patterns=tuple(replace(each, reasons=("because",)) for each in plan.patterns),
    )
    assert compare(plan, other) == []


# --- what was asked -------------------------------------------------------------------------------


def test_a_lock_from_before_there_was_a_workload_in_it_is_still_read(tmp_path: Path) -> None:
    plan = models.shop().plan()
    data = json.loads(plan.to_json())
    del data["demand"]
    path = lock_path("shop", tmp_path)
    path.write_text(json.dumps(data | {"format": 1}))
    old = read_lock(path)
    assert old is not None and old.demand is None
    assert compare(old, plan) == []
    assert models.shop().plan(previous=old) == plan


def test_another_workload_is_a_reason_to_write_the_lock_again() -> None:
    @write(rps=5)
    def change() -> object:
        return updates(models.Review.text)

    @write(rps=5)
    def changed() -> object:
        return updates(models.Review.text, models.Review.stars)

    changed.__name__ = "change"
    plans = [Design("shop", [models.Review], [each]).plan() for each in (change, changed)]
    [told] = compare(*plans)
    assert (told.risk, told.do) == ("safe", "write the lock file again")


# --- renames --------------------------------------------------------------------------------------


class Device(Entity):
    fleet: str = ident()
    serial: str = ident()
    firmware: str


class AnotherField(Entity, name="Device"):
    fleet: str = ident()
    serial: str = ident()
    release: str


class AnotherFieldKept(Entity, name="Device"):
    fleet: str = ident()
    serial: str = ident()
    release: str = stored("firmware")


class AnotherKeyField(Entity, name="Device"):
    fleet: str = ident()
    number: str = ident()
    firmware: str


class AnotherKeyFieldKept(Entity, name="Device"):
    fleet: str = ident()
    number: str = ident(stored="serial")
    firmware: str


class Appliance(Entity):
    fleet: str = ident()
    serial: str = ident()
    firmware: str


class ApplianceKept(Entity, name="Device"):
    fleet: str = ident()
    serial: str = ident()
    firmware: str


def fleet_of(entity: Any) -> Plan:
    @read(rps=5, returns=10)
    def of_fleet(fleet: str) -> Query[Any]:
        return find(entity).where(entity.fleet == fleet)

    return Design("fleet", [entity], [of_fleet]).plan()


@pytest.mark.parametrize(
    ("renamed", "kept", "advice"),
    [
        (AnotherField, AnotherFieldKept, 'release: ... = stored("firmware")'),
        (AnotherKeyField, AnotherKeyFieldKept, 'number: ... = ident(stored="serial")'),
        (Appliance, ApplianceKept, 'class Appliance(Entity, name="Device")'),
    ],
)
def test_a_rename_is_recognised_and_its_remedy_holds(renamed: Any, kept: Any, advice: str) -> None:
    found = compare(fleet_of(Device), fleet_of(renamed))
    assert [each for each in found if advice in each.do]
    assert compare(fleet_of(Device), fleet_of(kept)) == []


def test_of_two_candidates_no_rename_is_guessed() -> None:
    text, number = StoredType("str"), StoredType("int")
    old = [StoredField("a", text)]
    assert likely_renames(old, [StoredField("b", text)]) == {"a": "b"}
    assert likely_renames(old, [StoredField("b", number)]) == {}
    assert likely_renames(old, [StoredField("b", text), StoredField("c", text)]) == {}
    assert likely_renames([*old, StoredField("z", text)], [StoredField("b", text)]) == {}


def test_a_renamed_key_field_is_not_told_to_name_the_old_one_in_key() -> None:
    for change in compare(fleet_of(Device), fleet_of(AnotherKeyField)):
        assert "key=" not in change.do

"""Advice on identities: what a longer base key would save."""

from __future__ import annotations

from datetime import datetime

from stator import Design, Entity, Query, find, ident, read, updates, write
from stator.design.declaration import Per
from stator.design.planner.longer_identity import longer_identities


class Order(Entity):
    order_id: str = ident()
    user_id: str
    at: datetime
    note: str


@read(rps=200, returns=20)
def orders_of(user_id: str) -> Query[Order]:
    return find(Order).where(Order.user_id == user_id).newest_first(Order.order_id)


def design() -> Design:
    return Design("shop", [Order], [orders_of], volumes={Order: 10_000_000}, writes={Order: 400})


def test_a_list_that_the_table_could_serve_is_worth_an_advice() -> None:
    [advice] = longer_identities(design())
    assert (advice.entity, advice.fields) == ("Order", ("user_id",))
    assert "{user_id}" in advice.key[0] and "{order_id}" in advice.key[1]
    assert "would cost $" in str(advice)


def test_the_saving_is_what_the_longer_identity_saves() -> None:
    [advice] = longer_identities(design())

    class Order(Entity):
        user_id: str = ident()
        order_id: str = ident()
        at: datetime
        note: str

    @read(rps=200, returns=20)
    def orders_of(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id).newest_first(Order.order_id)

    written = Design(
        "shop", [Order], [orders_of], volumes={Order: 10_000_000}, writes={Order: 400}
    ).plan()
    before = design().plan()
    saved = before.dollars_per_month - written.dollars_per_month
    assert abs(saved - advice.saved_dollars) < 0.02 * saved
    assert written.tables[0].indexes == ()


def test_cents_are_worth_no_advice() -> None:
    small = Design("shop", [Order], [orders_of], volumes={Order: 1_000})
    assert longer_identities(small) == ()


def test_a_field_that_a_pattern_changes_is_never_proposed() -> None:
    @write(rps=1)
    def hand_over() -> object:
        return updates(Order.user_id)

    volumes: dict[type[Entity], float | Per] = {Order: 10_000_000}
    changing = Design("shop", [Order], [orders_of, hand_over], volumes=volumes, writes={Order: 400})
    assert longer_identities(changing) == ()

"""Wrong options of sinks and pattern objects are refused at once, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stator import Design, Engine, Entity, connect, ident
from stator.errors import DesignError, StatorError
from stator.patterns import Lock, Once, Outbox, Sequence
from stator.pipeline import (
    AuditLog,
    Projection,
    SnsSink,
    SqsSink,
    StreamApp,
    TableSink,
    View,
    WebhookSink,
    count,
)


class Order(Entity):
    order_id: str = ident()


class Stranger(Entity):
    stranger_id: str = ident()


SHOP = Design("shop", [Order])


def add_message(db: Any, body: Any) -> None:
    outbox = Outbox(db, "orders")
    with db.transaction() as tx:
        outbox.add(tx, topic="t", body=body)


def loop() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "start": (lambda db, any_: Sequence(db, "s", start=any_(1.5)), "start is 1.5"),
    "secret": (lambda db, any_: AuditLog("a", secret=any_(5)), "secret is of type int"),
    "who": (lambda db, any_: AuditLog("a", who=5), "who=5 is not a field"),
    "only text": (
        lambda db, any_: WebhookSink("w", "https://a.example/", only=any_("Order")),
        "only='Order' is not an entity class",
    ),
    "only texts": (lambda db, any_: AuditLog("a", only=any_(["Order"])), "not an entity class"),
    "only None": (lambda db, any_: AuditLog("a", only=any_(None)), "not an entity class"),
    "kinds text": (lambda db, any_: AuditLog("a", kinds=any_("INSERT")), "not a list"),
    "expired": (lambda db, any_: AuditLog("a", expired=any_("no")), "not a flag"),
    "transform": (
        lambda db, any_: WebhookSink("w", "https://a.example/", transform=any_(5)),
        "not a function",
    ),
    "errors": (lambda db, any_: Once(db, "o", unknown_errors=any_(("x",))), "exception class"),
    "error list": (lambda db, any_: Once(db, "o", unknown_errors=any_(["x"])), "unknown_errors"),
    "no error": (lambda db, any_: Once(db, "o", unknown_errors=any_((int,))), "exception class"),
    "drift": (lambda db, any_: Lock(db, "l", lease_seconds=1, drift_seconds=5), "drift_seconds=5"),
    "nan": (lambda db, any_: add_message(db, float("nan")), "contains nan"),
    "nan inside": (lambda db, any_: add_message(db, {"a": [1, (float("inf"),)]}), "contains inf"),
    "body in itself": (lambda db, any_: add_message(db, loop()), "must be JSON"),
    "webhook": (lambda db, any_: WebhookSink("w", any_(5)), "url is 5"),
    "queue": (lambda db, any_: SqsSink("w", any_(5)), "queue_url is 5"),
    "topic": (lambda db, any_: SnsSink("w", any_(5)), "topic_arn is 5"),
    "view name": (lambda db, any_: View(any_(5), of=Order, n=count()), "name is 5"),
    "view of None": (lambda db, any_: View("v", of=any_(None), n=count()), "of is None"),
    "view keep": (lambda db, any_: View("v", of=Order, keep=any_(5), n=count()), "keep is 5"),
    "bucket": (lambda db, any_: View("v", of=Order, bucket=any_(5), n=count()), "bucket is 5"),
    "projection": (lambda db, any_: Projection("p", of=any_(5), key=()), "of is 5"),
    "view on None": (
        lambda db, any_: View("v", of=Order, n=count()).on(any_(None)),
        "works on a Db or an AsyncDb, not on a NoneType",
    ),
    "target class": (lambda db, any_: TableSink("t", any_(Engine)), "the class Engine"),
    "target number": (lambda db, any_: TableSink("t", any_(5)), "cannot write to int"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_option_is_refused_when_it_is_declared(name: str) -> None:
    call, message = CALLS[name]
    with connect(SHOP) as db, pytest.raises(StatorError, match=message) as refused:
        call(db, lambda value: value)
    assert refused.value.hint


def test_an_app_refuses_a_sink_of_an_entity_outside_the_design() -> None:
    app = StreamApp(SHOP, "app")
    app.add(AuditLog("mine", only=[Order]))
    with pytest.raises(DesignError, match="Stranger is not in the design"):
        app.add(AuditLog("a", only=Stranger))


@pytest.mark.parametrize("wrong", [None, 5, "view", AuditLog, Order])
def test_an_app_adds_subscribers_only(wrong: Any) -> None:
    with pytest.raises(DesignError, match="cannot add"):
        StreamApp(SHOP, "app").add(wrong)


def test_wrong_apps_and_handlers_are_refused() -> None:
    app: Any = StreamApp
    for call, message in (
        (lambda: app(None, "a"), "needs a Design"),
        (lambda: app(SHOP, 5), "5 cannot name"),
        (lambda: app(SHOP, "a", concurrency=0), "concurrency=0"),
        (lambda: app(SHOP, "a").on.insert(Order)(5), "5 is not a function"),
    ):
        with pytest.raises(DesignError, match=message):
            call()

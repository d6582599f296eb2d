"""What handlers need of a stream: the smallest view type, and identities in all of them."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Db, Engine, TableSettings, connect
from stator.design.table_settings import STREAM_VIEWS, StreamView, shows, smallest_view
from stator.errors import DesignError, DestructiveChange, ImageNotShown, StreamMissing
from stator.pipeline.sinks.table import TableSink
from stator.pipeline.workers.app import StreamApp
from stator.pipeline.workers.handlers.change import Change
from tests.targets import Target

from .shop import Customer, Order, shop
from .test_lambda import event_of
from .test_workers import work

pytestmark = pytest.mark.usefixtures("quiet")
DEFAULTS: dict[str, StreamView] = {
    "insert": "NEW_IMAGE",
    "modify": "NEW_AND_OLD_IMAGES",
    "remove": "OLD_IMAGE",
    "any": "NEW_AND_OLD_IMAGES",
}


def test_the_view_types_are_those_of_the_settings() -> None:
    assert set(STREAM_VIEWS) == set(get_args(StreamView))


@given(st.lists(st.sampled_from(STREAM_VIEWS)))
def test_the_smallest_view_shows_everything_needed_and_no_smaller_one_does(
    needed: list[StreamView],
) -> None:
    smallest = smallest_view(needed)
    enough = [view for view in STREAM_VIEWS if all(shows(view, each) for each in needed)]
    assert smallest in enough
    assert all(shows(view, smallest) for view in enough)


def nothing(change: Any) -> None: ...


def app_of(*decorators: str, **options: Any) -> StreamApp:
    app = StreamApp(shop, "billing")
    for number, decorator in enumerate(decorators):
        getattr(app.on, decorator)(Order, name=f"h{number}", **options)(nothing)
    return app


def stream_of(db: Db, table: str = "shop") -> str | None:
    described = db.call("DescribeTable", {"TableName": table})["Table"]
    view: str | None = described.get("StreamSpecification", {}).get("StreamViewType")
    return view


@settings(max_examples=12)
@given(st.lists(st.sampled_from([*DEFAULTS, "keys"]), min_size=1, max_size=3))
def test_ensure_asks_for_the_smallest_view_and_a_worker_refuses_less(chosen: list[str]) -> None:
    app = StreamApp(shop, "billing")
    for number, decorator in enumerate(chosen):
        if decorator == "keys":
            app.on.any(Order, name=f"h{number}", needs="KEYS_ONLY")(nothing)
        else:
            getattr(app.on, decorator)(Order, name=f"h{number}")(nothing)
    needed = smallest_view(DEFAULTS.get(each, "KEYS_ONLY") for each in chosen)
    with Engine.open() as engine, connect(shop, engine) as db:
        app.ensure(db)
        assert stream_of(db) == needed
        assert stream_of(db, "shop-stator") is None  # no handler follows it
        assert app.ensure(db) == []
        work(app, db)
    for view in STREAM_VIEWS:
        with Engine.open() as engine, connect(shop, engine) as db:
            db.ensure(TableSettings(stream=view))
            if shows(view, needed):
                app.ensure(db)
                assert stream_of(db) == view
                work(app, db)
            else:
                with pytest.raises(DestructiveChange):
                    app.ensure(db)
                with pytest.raises(StreamMissing, match=f"shows {view}; handlers needs {needed}"):
                    work(app, db)


@pytest.mark.parametrize("view", STREAM_VIEWS)
def test_every_change_has_a_typed_identity_on_every_target(
    target: Target, view: StreamView
) -> None:
    db = target.connect(shop)
    db.ensure(TableSettings(stream=view))
    app = StreamApp(shop, "billing")
    orders: list[Any] = []
    customers: list[Any] = []

    @app.on.any(Order, needs="KEYS_ONLY")
    def order(change: Change[Order]) -> None:
        orders.append((change.kind, dict(change.identity)))

    @app.on.any(Customer, needs="KEYS_ONLY")
    def customer(change: Change[Customer]) -> None:
        customers.append((change.kind, dict(change.identity)))

    @app.on.batch(needs="KEYS_ONLY")
    def entities(changes: list[Change[Any]]) -> None:
        assert all(change.entity in ("Order", "Customer") for change in changes)

    db.put(Order(order_id="o#1"))
    db.put(Order(order_id="o#1", total=2))
    db.put(Customer(customer_id="ä$c", name="Anna"))
    db.delete(Order, order_id="o#1")
    work(app, db)
    assert orders == [(kind, {"order_id": "o#1"}) for kind in ("INSERT", "MODIFY", "REMOVE")]
    assert customers == [("INSERT", {"customer_id": "ä$c"})]


@pytest.mark.parametrize("view", ["KEYS_ONLY", "OLD_IMAGE"])
def test_an_image_that_the_handler_did_not_ask_for_is_explained(
    engine: Engine, view: StreamView
) -> None:
    with connect(shop, engine) as db:
        db.ensure(TableSettings(stream=view))
        app = StreamApp(shop, "billing")
        raised: list[Exception] = []

        @app.on.insert(Order, needs="KEYS_ONLY")
        def inserted(change: Any) -> None:
            try:
                _ = change.new
            except ImageNotShown as error:
                raised.append(error)

        db.put(Order(order_id="o1"))
        work(app, db)
        assert len(raised) == 1


def test_lambda_refuses_a_stream_that_shows_less() -> None:
    with Engine.open() as engine, connect(shop, engine) as db:
        db.ensure(TableSettings(stream="KEYS_ONLY"))
        db.put(Order(order_id="o1"))
        event = event_of(engine, db)
        with pytest.raises(StreamMissing, match="shows KEYS_ONLY; handlers needs NEW_IMAGE"):
            app_of("insert").lambda_handler(db)(event, None)
        enough = app_of("insert", needs="KEYS_ONLY")
        assert enough.lambda_handler(db)(event, None) == {"batchItemFailures": []}


def test_a_filter_on_changed_fields_needs_both_images() -> None:
    app = StreamApp(shop, "billing")
    app.on.modify(Order, when_changed=Order.status, needs="NEW_IMAGE")(nothing)
    with Engine.open() as engine, connect(shop, engine) as db:
        app.ensure(db)
        assert stream_of(db) == "NEW_AND_OLD_IMAGES"


def test_sinks_say_what_they_need(engine: Engine) -> None:
    app = StreamApp(shop, "billing")
    app.add(TableSink("copy", "elsewhere"))
    with connect(shop, engine) as db:
        db.ensure(TableSettings(stream="OLD_IMAGE"))
        with pytest.raises(StreamMissing, match="shows OLD_IMAGE; copy needs NEW_IMAGE"):
            work(app, db)


def test_a_need_that_is_no_view_type_is_refused() -> None:
    app = StreamApp(shop, "billing")
    wrong: Any = "IMAGES"
    with pytest.raises(DesignError, match="needs='IMAGES' is not a view type"):
        app.on.insert(Order, needs=wrong)(nothing)

"""Webhooks, against a real HTTP server in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from stator import Db
from stator.errors import ConfigurationError
from stator.pipeline import Change, StreamApp
from stator.pipeline.sinks.webhook import WebhookSink, signature, verify_signature

from ...ports import free_port
from ..shop import Customer, Order
from .worker_steps import (
    QUICK,
    WRITTEN,
    Crashing,
    eventually,
    first_of_each,
    parked,
    totals,
    work,
    write_orders,
)


class Receiver:
    """``answer`` decides about a request by its events; accepted events are recorded."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answer: Callable[[list[Any]], int] = lambda events: 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                events = json.loads(body)["events"]
                status = receiver.answer(events)
                receiver.requests.append((dict(self.headers), body))
                if status == 200:
                    receiver.events += events
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/changes?from=shop"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_all_changes_arrive_in_the_order_of_their_items(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    app.add(WebhookSink("hook", receiver.url, max_messages=7))
    write_orders(db)
    work(app, db)
    assert totals(receiver.events) == WRITTEN
    assert max(len(json.loads(body)["events"]) for _, body in receiver.requests) == 7
    ids = [event["id"] for event in receiver.events]
    assert [
        each for headers, _ in receiver.requests for each in headers["Stator-Events"].split(",")
    ] == ids


def test_an_event_has_the_documented_shape(app: StreamApp, db: Db, receiver: Receiver) -> None:
    app.add(WebhookSink("hook", receiver.url, only=Order))
    db.put(Order(order_id="o1", total=5))
    db.put(Customer(customer_id="c1", name="Anna"))
    db.delete(Order, order_id="o1")
    work(app, db)
    inserted, removed = receiver.events
    order = {"order_id": "o1", "status": "new", "total": 5}
    assert {**inserted, "id": 0, "sequence": 0, "time": 0, "key": 0} == {
        "id": 0,
        "kind": "INSERT",
        "table": "shop",
        "entity": "Order",
        "key": 0,
        "old": None,
        "new": order,
        "sequence": 0,
        "time": 0,
        "expired": False,
    }
    assert (removed["kind"], removed["old"], removed["new"], removed["expired"]) == (
        "REMOVE",
        order,
        None,
        False,
    )
    assert removed["key"] == inserted["key"] and int(removed["sequence"]) > int(
        inserted["sequence"]
    )
    assert inserted["id"] != removed["id"] and inserted["time"].endswith("Z")


def test_images_can_be_dynamodb_json(app: StreamApp, db: Db, receiver: Receiver) -> None:
    app.add(WebhookSink("hook", receiver.url, images="dynamodb", kinds=["MODIFY"]))
    db.put(Order(order_id="o1", total=5))
    db.put(Order(order_id="o1", total=6))
    work(app, db)
    [event] = receiver.events
    assert event["old"]["total"] == {"N": "5"} and event["new"]["total"] == {"N": "6"}


def test_a_transform_determines_the_body(app: StreamApp, db: Db, receiver: Receiver) -> None:
    def shown(change: Change[Order]) -> Any:
        assert change.new is not None
        return None if change.new.total < 2 else f"{change.new.order_id}: {change.new.total}"

    app.add(WebhookSink("hook", receiver.url, transform=shown))
    for total in range(4):
        db.put(Order(order_id="o1", total=total))
    work(app, db)
    assert receiver.events == ["o1: 2", "o1: 3"]


def test_a_failing_transform_parks_its_item_after_its_earlier_changes(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    def shown(change: Change[Order]) -> Any:
        assert change.new is not None
        return {
            "id": change.event_id,
            "new": {"order_id": change.new.order_id, "total": 6 // (2 - change.new.total)},
        }

    app.add(WebhookSink("hook", receiver.url, transform=shown))
    for total in (0, 1, 2, 1):
        db.put(Order(order_id="bad", total=total))
        db.put(Order(order_id=f"good{total}", total=0))
    work(app, db)
    assert totals(receiver.events)["bad"] == [3, 6]
    assert totals(receiver.events)["good1"] == [3]
    [key] = parked(app, db)
    assert "bad" in key.key and key.count == 2 and "ZeroDivisionError" in key.error


def test_requests_are_signed(app: StreamApp, db: Db, receiver: Receiver) -> None:
    app.add(WebhookSink("hook", receiver.url, secret="hush", headers={"X-From": "shop"}))
    db.put(Order(order_id="o1"))
    work(app, db)
    [(headers, body)] = receiver.requests
    given = headers["Stator-Signature"]
    assert headers["X-From"] == "shop"
    assert verify_signature("hush", body, given)
    assert not verify_signature("other", body, given)
    assert not verify_signature("hush", body + b" ", given)
    assert not verify_signature("hush", body, "t=now,v1=00")
    assert not verify_signature("hush", body, given, now=4e9)
    assert verify_signature("hush", b"x", signature(b"hush", b"x", 100), now=110)


@pytest.mark.parametrize("status", [500, 503, 429, 401, 404])
def test_the_sink_waits_during_an_outage(
    app: StreamApp, db: Db, receiver: Receiver, status: int
) -> None:
    asked: list[int] = []

    def answer(events: list[Any]) -> int:
        asked.append(len(events))
        return status if len(asked) < 12 else 200

    receiver.answer = answer
    app.add(WebhookSink("hook", receiver.url, max_messages=20))
    write_orders(db)
    work(app, db)
    assert totals(receiver.events) == WRITTEN
    assert parked(app, db) == []


def test_nothing_is_lost_while_the_receiver_is_down(
    app: StreamApp, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    first = Receiver()
    first.server.shutdown()
    first.server.server_close()
    app.add(WebhookSink("hook", first.url, timeout_seconds=2))
    write_orders(db)
    with app.start(db, QUICK) as running:
        eventually(lambda: "does not respond" in caplog.text)
        server = ThreadingHTTPServer(first.server.server_address, first.server.RequestHandlerClass)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.catch_up()
    server.shutdown()
    server.server_close()
    assert totals(first_of_each(first.events)) == WRITTEN
    assert parked(app, db) == []


def test_a_refused_event_is_parked_and_the_others_continue(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    receiver.answer = lambda events: (
        422 if any(event["new"]["order_id"] == "bad" for event in events) else 200
    )
    app.add(WebhookSink("hook", receiver.url))
    write_orders(db)
    db.put(Order(order_id="bad"))
    work(app, db)
    assert totals(receiver.events) == WRITTEN
    [key] = parked(app, db)
    assert "bad" in key.key and "422" in key.error and key.handler == "hook"


def test_an_outage_beside_a_refusal_parks_only_the_refused_item(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    seen: list[str] = []

    def answer(events: list[Any]) -> int:
        ids = [event["new"]["order_id"] for event in events]
        seen.extend(ids)
        if "bad" in ids:
            return 422
        return 503 if "slow" in ids and seen.count("slow") < 15 else 200

    receiver.answer = answer
    app.add(WebhookSink("hook", receiver.url, max_messages=1))
    for name in ("bad", "slow", "good"):
        db.put(Order(order_id=name))
    work(app, db)
    assert set(totals(receiver.events)) == {"slow", "good"}
    assert ["bad" in key.key for key in parked(app, db)] == [True]


def test_an_event_that_is_too_large_is_parked_after_its_earlier_changes(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    app.add(WebhookSink("hook", receiver.url, max_bytes=2000))
    db.put(Order(order_id="o1", total=1))
    db.put(Order(order_id="o1", total=2, status="x" * 3000))
    db.put(Order(order_id="o1", total=3))
    db.put(Order(order_id="o2", total=1))
    work(app, db)
    assert totals(receiver.events) == {"o1": [1], "o2": [1]}
    [key] = parked(app, db)
    assert key.count == 2 and "bytes" in key.error


def test_after_a_crash_the_same_events_are_repeated(
    app: StreamApp, db: Db, receiver: Receiver
) -> None:
    app.add(Crashing(WebhookSink("hook", receiver.url), crashes=1))
    write_orders(db)
    work(app, db)
    assert len(receiver.events) > len(first_of_each(receiver.events))
    assert totals(first_of_each(receiver.events)) == WRITTEN


def test_invalid_arguments_are_refused_at_once() -> None:
    url = "http://example.com"
    with pytest.raises(ConfigurationError, match="is not an HTTP URL"):
        WebhookSink("hook", "example.com")
    with pytest.raises(ConfigurationError, match="has no option onyl="):
        WebhookSink("hook", url, onyl=Order)  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="kinds="):
        WebhookSink("hook", url, kinds=["DELETE"])
    with pytest.raises(ConfigurationError, match="images="):
        WebhookSink("hook", url, images="raw")  # type: ignore[arg-type]  # wrong on purpose

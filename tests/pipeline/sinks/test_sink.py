"""The behaviour common to all sinks, with a receiver that fails at random."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import Db, connect
from stator.errors import ConfigurationError, LeaseLost, SinkRefused, TryLater
from stator.pipeline import Message, Refusal, Sink, WebhookSink
from stator.pipeline.sinks.aws import AwsSink
from stator.pipeline.sinks.change_sink import ChangeSink
from stator.pipeline.sinks.kafka import KafkaSink
from stator.pipeline.sinks.waves import WaveSink
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerScope

from ..shop import Order, shop


@pytest.fixture(scope="module")
def opened() -> Iterator[Db]:
    with connect(shop) as db:
        db.ensure()
        yield db


def record(db: Db, name: str, sequence: int) -> Record:
    of = db.context.schema.of(Order)
    item = of.item(Order(order_id=name, total=sequence))
    keys = of.stored_key(item)
    return Record(
        "shop", "INSERT", keys, None, item, str(sequence), f"e{sequence}", 0.0, False, "s", {}
    )


def scope(db: Db) -> HandlerScope:
    return HandlerScope(db.context, "group", "s", 1, lambda: None)


class Receiver:
    """Delivers messages at random, but never the changes in ``poison``."""

    def __init__(self, data: st.DataObject, poison: set[str], patience: int) -> None:
        self.data = data
        self.poison = poison
        self.patience = patience
        self.taken: list[str] = []

    def take_all_or_nothing(self, messages: Sequence[Message]) -> None:
        self._perhaps_away()
        if any(message.event_id in self.poison for message in messages):
            raise ValueError("something in there is bad")
        self.taken += [message.event_id for message in messages]

    def take_some(self, messages: Sequence[Message]) -> list[Refusal]:
        self._perhaps_away()
        refusals = []
        for message in messages:
            if message.event_id in self.poison:
                refusals.append(Refusal(message, SinkRefused("bad")))
            elif self.patience and self.data.draw(st.booleans()):
                self.patience -= 1
                refusals.append(Refusal(message, TryLater("throttled")))
            else:
                self.taken.append(message.event_id)
        return refusals

    def _perhaps_away(self) -> None:
        if self.patience and self.data.draw(st.booleans()):
            self.patience -= 1
            raise TryLater("away")


class Whole(Sink):
    max_messages = 4

    def __init__(self, receiver: Receiver) -> None:
        super().__init__("sink")
        self.receiver = receiver

    def send(self, messages: Sequence[Message]) -> None:
        self.receiver.take_all_or_nothing(messages)


class Partial(WaveSink):
    max_messages = 4

    def __init__(self, receiver: Receiver) -> None:
        super().__init__("sink")
        self.receiver = receiver

    def send_wave(self, messages: Sequence[Message]) -> list[Refusal]:
        return self.receiver.take_some(messages)


@pytest.mark.parametrize("kind", [Whole, Partial])
@settings(max_examples=150)
@given(data=st.data())
def test_deliveries_are_ordered_and_complete_whatever_the_receiver_does(
    kind: type[Any], opened: Db, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=14))
    records = [record(opened, name, number) for number, name in enumerate(names, 1)]
    poison = {f"e{number}" for number in data.draw(st.sets(st.integers(1, len(names)), max_size=2))}
    receiver = Receiver(data, poison, patience=6)
    sink = kind(receiver)
    left = records
    for _ in range(40):
        failures = opened.run(sink.handle(left, scope(opened)))
        start = {failure.record.key: int(failure.record.sequence) for failure in failures}
        assert len(start) == len(failures)
        left = [
            each for each in left if each.key in start and int(each.sequence) >= start[each.key]
        ]
        if not any(isinstance(failure.error, TryLater) for failure in failures):
            break
    wanted: dict[str, list[str]] = {}
    for name, each in zip(names, records):
        wanted.setdefault(name, []).append(each.event_id)
    for name, ids in wanted.items():
        bad = next((number for number, each in enumerate(ids) if each in poison), len(ids))
        first = list(dict.fromkeys(each for each in receiver.taken if each in ids))
        assert first == ids[:bad]
        assert (
            [each.event_id for each in left if each.key == records[names.index(name)].key]
        ) == ids[bad:]


def test_a_lost_lease_ends_the_delivery(opened: Db) -> None:
    sent: list[int] = []

    class Counting(Sink):
        max_messages = 1

        def send(self, messages: Sequence[Message]) -> None:
            sent.append(len(messages))

    def check() -> None:
        if len(sent) == 2:
            raise LeaseLost("gone")

    records = [record(opened, name, number) for number, name in enumerate("abcd", 1)]
    with pytest.raises(LeaseLost):
        opened.run(
            Counting("sink").handle(records, HandlerScope(opened.context, "group", "s", 1, check))
        )
    assert sent == [1, 1]


def test_an_outage_is_noticed_once_per_batch(opened: Db) -> None:
    """Other halves and batches do not wait for the same outage."""
    asked: list[int] = []

    class Away(Sink):
        max_messages = 2

        def send(self, messages: Sequence[Message]) -> None:
            asked.append(len(messages))
            raise TryLater("away")

    records = [record(opened, name, number) for number, name in enumerate("abcdabcd", 1)]
    failures = opened.run(Away("sink").handle(records, scope(opened)))
    assert asked == [2] and sorted(failure.record.sequence for failure in failures) == [
        "1",
        "2",
        "3",
        "4",
    ]


def test_the_error_names_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigurationError) as raised:
        KafkaSink("events", "127.0.0.1:1", "topic")
    assert raised.value.hint == "pip install 'stator[kafka]'"


def test_a_sink_needs_a_name() -> None:
    with pytest.raises(ConfigurationError, match="needs a name"):
        WebhookSink("", "https://example.com/hook")


def test_a_sink_without_a_way_to_deliver_cannot_be_created() -> None:
    class Mute(Sink):
        pass

    class Waveless(WaveSink):
        pass

    kinds: tuple[tuple[Any, str], ...] = (
        (Mute, "send"),
        (Waveless, "send_wave"),
        (AwsSink, "send_request"),
        (ChangeSink, "deliver"),
    )
    for kind, missing in kinds:
        with pytest.raises(TypeError, match=missing):
            kind("mute")

"""``KafkaSink``: changes as messages of a Kafka topic (``pip install 'stator[kafka]'``).

The message's key is the item's key, so all changes to an item are in one partition, in order. The
sink chooses the partition of a key as Kafka's Java producer does by default. The value is the
event, the headers are ``id``, ``kind`` and ``table``, and the timestamp is the time of the change.
A batch counts as delivered when all in-sync replicas have every message in it.

Order despite failures: a change is sent only after the previous change to the same item has been
acknowledged. So a batch goes out in *waves* (``waves``). Without waves order could be lost, because
a broker that refuses one message refuses all messages that librdkafka packed with it, yet accepts
the messages behind them. A batch of many items is therefore fast, while a series of changes to a
single item takes a round trip for each. A message that was written but not acknowledged appears
twice after a retry, with the same ``id``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Unpack

from stator.errors import ConfigurationError, SinkRefused, TryLater
from stator.model.seconds import check_seconds
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import LazyResource, Refusal
from stator.pipeline.sinks.waves import WaveSink
from stator.pipeline.workers.handlers.change import Change

log = logging.getLogger("stator.sinks.kafka")

# Codes of Kafka's protocol, and of librdkafka, for a message that will never be accepted.
_REFUSALS: Final = (
    "MSG_SIZE_TOO_LARGE",
    "INVALID_MSG_SIZE",
    "INVALID_RECORD",
    "INVALID_TIMESTAMP",
    "INVALID_MSG",
)
_POLL_SECONDS: Final = 0.05
_OURS: Final = frozenset({"bootstrap.servers", "enable.idempotence", "acks", "message.timeout.ms"})


class KafkaSink(WaveSink):
    """Sends changes to a Kafka topic. The changes to each item keep their order."""

    max_messages = 10_000
    max_bytes = 64 << 20

    def __init__(
        self,
        name: str,
        servers: str,
        topic: str | Callable[[Change[Any]], str],
        *,
        config: Mapping[str, Any] | None = None,
        timeout_seconds: float = 30.0,
        **options: Unpack[SinkOptions],
    ) -> None:
        """Create the sink. ``topic`` is one topic, or a function from a change to its topic.

        ``servers`` are the bootstrap servers: ``"host1:9092,host2:9092"``. ``config`` holds further
        settings of librdkafka, for example for TLS and SASL. A message that is not acknowledged
        within ``timeout_seconds`` is sent again later.
        """
        super().__init__(name, options)
        taken = sorted(_OURS & (config or {}).keys())
        if taken:
            raise ConfigurationError(
                f"config= of sink {name!r} must not set {taken[0]!r}",
                hint="remove it: the sink sets it, and its delivery guarantees depend on the value",
            )
        self._kafka = _library()
        self._refusals = {
            getattr(self._kafka.KafkaError, code)
            for code in _REFUSALS
            if hasattr(self._kafka.KafkaError, code)
        }
        self._topic = topic
        check_seconds(f"sink {name}", timeout_seconds=timeout_seconds)
        self._timeout_seconds = timeout_seconds
        self._config = {
            "partitioner": "murmur2_random",
            "linger.ms": 1,
            **(config or {}),
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            "acks": "all",
            "message.timeout.ms": int(timeout_seconds * 1000),
        }
        self._producer = LazyResource[Any](self._new_producer)

    def _new_producer(self) -> Any:
        try:
            return self._kafka.Producer(self._config, logger=log)
        except self._kafka.KafkaException as error:
            raise ConfigurationError(
                f"the Kafka client refuses its configuration: {error}",
                hint="check config= and the server addresses",
            ) from error

    def send_wave(self, messages: Sequence[Message]) -> list[Refusal]:
        """Send messages, at most one of each item. Return a refusal for each that failed.

        A broker refuses messages that were packed together, even if only one is at fault. So each
        refused message is sent once more on its own.
        """
        found: list[Refusal] = []
        for refusal in self._send_batch(messages):
            if len(messages) > 1 and isinstance(refusal.error, SinkRefused):
                found += self._send_batch([refusal.message])
            else:
                found.append(refusal)
        return found

    def _send_batch(self, messages: Sequence[Message]) -> list[Refusal]:
        producer = self._producer.get()
        batch = _KafkaBatch(producer, self._kafka, time.monotonic() + 2 * self._timeout_seconds)
        refusals = [
            refusal
            for message in messages
            if (refusal := self._produce(batch, message)) is not None
        ]
        return refusals + [
            Refusal(message, self._error(producer, error)) for message, error in batch.wait()
        ]

    def _produce(self, batch: _KafkaBatch, message: Message) -> Refusal | None:
        try:
            topic = self._topic if isinstance(self._topic, str) else self._topic(message.change)
        except Exception as error:  # the function is the user's
            return Refusal(message, error)
        try:
            batch.add(topic, message)
        except self._kafka.KafkaException as error:
            return Refusal(message, self._error(batch.producer, error.args[0]))
        except TryLater as error:
            return Refusal(message, error)
        return None

    def _error(self, producer: Any, error: Any) -> Exception:
        if error.code() in self._refusals:
            return SinkRefused(f"Kafka refuses the message: {error.str()}")
        if error.fatal() or error.code() == self._kafka.KafkaError._FATAL:
            self._producer.discard(producer)  # it will never work again
        return TryLater(f"Kafka did not accept a message: {error.str()}")

    def close(self) -> None:
        producer = self._producer.take()
        if producer is not None:
            producer.flush(self._timeout_seconds)


class _KafkaBatch:
    """Messages that were handed to the Kafka client and wait for their acknowledgements.

    All batches share one producer. A batch that polls the producer may therefore run the callbacks
    of another batch, in its own thread.
    """

    def __init__(self, producer: Any, kafka: Any, deadline: float) -> None:
        self.producer = producer
        self._kafka = kafka
        self._deadline = deadline
        self._lock = threading.Lock()
        self._waiting: dict[int, Message] = {}
        self._failed: list[tuple[Message, Any]] = []

    def add(self, topic: str, message: Message) -> None:
        record = message.record
        with self._lock:
            self._waiting[id(message)] = message

        def delivered(error: Any, _: Any) -> None:
            with self._lock:
                if self._waiting.pop(id(message), None) is not None and error is not None:
                    self._failed.append((message, error))

        headers = [("id", message.event_id), ("kind", record.kind), ("table", record.table)]
        at = int(record.at * 1000)
        try:
            while True:
                try:
                    self.producer.produce(
                        topic,
                        message.body,
                        message.key,
                        on_delivery=delivered,
                        timestamp=at,
                        headers=headers,
                    )
                    return
                except BufferError:  # the queue is full: Kafka is slower than the stream
                    self.producer.poll(_POLL_SECONDS)
                    if time.monotonic() > self._deadline:
                        raise TryLater(
                            "the queue of the Kafka client stays full: the brokers are too slow"
                        ) from None
        except BaseException:
            with self._lock:
                self._waiting.pop(id(message), None)
            raise

    def wait(self) -> list[tuple[Message, Any]]:
        """Wait until each message is acknowledged or has failed, or the deadline has passed.

        Returns the failed messages with their errors, in the order of the stream.
        """
        while True:
            with self._lock:
                left = list(self._waiting.values())
                if not left:
                    break
            if time.monotonic() > self._deadline:
                timed_out = self._kafka.KafkaError(self._kafka.KafkaError._MSG_TIMED_OUT)
                with self._lock:
                    self._failed += [(message, timed_out) for message in self._waiting.values()]
                    self._waiting.clear()
                break
            self.producer.poll(_POLL_SECONDS)
        return sorted(self._failed, key=lambda each: int(each[0].record.sequence or 0))


def _library() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise ConfigurationError(
            "confluent-kafka is not installed", hint="pip install 'stator[kafka]'"
        ) from None
    return confluent_kafka

"""Kafka as a source: a consumer group that commits what is written (``stator[kafka]``).

The group uses the consumer protocol of KIP-848 if the broker has it, and cooperative-sticky
assignment otherwise. ``protocol`` chooses one of them.

- The client's own commits are off. Offsets are committed when all that they cover is written.
- A full window pauses all partitions. The client is polled on, so it stays in the group.
- When partitions are taken away, what was read of them is written and committed first. When they
  are lost, because this process did not answer for too long, nothing is committed.

All callbacks of the client run inside ``read`` and ``close``, in the thread that calls them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args

from stator.errors import ConfigurationError, StreamError
from stator.model.seconds import check_seconds
from stator.pipeline.ingest.source_record import Lane, SourceRecord

log = logging.getLogger("stator.ingest.kafka")

GroupProtocol = Literal["auto", "consumer", "classic"]
_PATIENCE_SECONDS: Final = 6.0
_BATCH_RECORDS: Final = 1000
_OURS: Final = frozenset(
    {
        "bootstrap.servers",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "auto.offset.reset",
        "partition.assignment.strategy",
    }
)
# Errors after which reading on makes no sense.
_FINAL: Final = (
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "_AUTHENTICATION",
    "UNKNOWN_TOPIC_OR_PART",
    "_UNKNOWN_TOPIC",
    "INVALID_GROUP_ID",
)
_UNSUPPORTED: Final = ("UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE")
# A static member that was killed keeps its name until its session is over. The classic protocol
# gives the name to the newcomer at once.
_INSTANCE_IN_USE: Final = "instance ID is still used"
_REJOIN_SECONDS: Final = 1.0
# librdkafka wraps the broker's refusal of KIP-848 in a fatal error without a code of its own.
_NO_HEARTBEAT: Final = "not supported: ConsumerGroupHeartbeat"


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How to reach Kafka: ``KafkaOptions("host1:9092,host2:9092")``.

    ``group`` is the consumer group; by default the name of the ingest. ``instance`` makes the
    membership static: a process that comes back under the same name within the session timeout
    gets the same partitions, without a rebalance. Each process needs a name of its own.

    ``protocol`` is ``consumer``, ``classic``, or ``auto``: the first one that the broker has.
    ``session_seconds`` is the time after which the partitions of a dead process go to others. With
    the consumer protocol, the broker decides it (``group.consumer.session.timeout.ms``).
    ``config`` holds further settings of librdkafka, for example for TLS and SASL.
    """

    servers: str
    group: str | None = None
    instance: str | None = None
    protocol: GroupProtocol = "auto"
    session_seconds: float = 10.0
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = sorted(_OURS & self.config.keys())
        if taken:
            raise ConfigurationError(
                f"config= must not set {taken[0]!r}",
                hint="remove it: the ingest sets it, and its guarantees depend on the value",
            )
        if self.protocol not in get_args(GroupProtocol):
            raise ConfigurationError(
                f"protocol={self.protocol!r} is unknown", hint="use auto, consumer or classic"
            )
        check_seconds("KafkaOptions", session_seconds=self.session_seconds)


@dataclass(frozen=True, slots=True)
class LaneCallbacks:
    """The functions that a source calls when partitions are assigned or revoked.

    ``assigned`` also gets the offsets at which the partitions begin, as far as they are known.
    """

    assigned: Callable[[Sequence[Lane], Mapping[Lane, int]], None]
    revoked: Callable[[Sequence[Lane]], None]
    lost: Callable[[Sequence[Lane]], None]


class KafkaSource:
    """The partitions that a consumer group gives to this process."""

    def __init__(
        self,
        options: KafkaOptions,
        topics: Sequence[str],
        group: str,
        start: str,
        callbacks: LaneCallbacks,
    ) -> None:
        self._kafka = kafka_library()
        self._options = options
        self._topics = list(topics)
        self._group = group
        self._start = start
        self._callbacks = callbacks
        self._consumer: Any = None
        self.protocol = "consumer" if options.protocol == "auto" else options.protocol
        self.lanes: set[Lane] = set()
        self.lost = 0
        """Records that were deleted from the topics before they were read."""
        self._paused: set[Lane] = set()
        self._error: StreamError | None = None
        self._error_codes = {
            code: name
            for name in (*_FINAL, *_UNSUPPORTED)
            if (code := getattr(self._kafka.KafkaError, name, None)) is not None
        }

    # -- start

    def _client_config(self) -> dict[str, Any]:
        return {**self._options.config, "bootstrap.servers": self._options.servers}

    def check(self) -> None:
        """Check that the broker answers and has the topics.

        Raises ConfigurationError within seconds if not.
        """
        servers = self._options.servers
        try:
            # A consumer, and not an admin client: it needs no further permissions.
            # It logs nothing: what it finds is raised.
            client = self._kafka.Consumer(
                {"log_level": 0, **self._client_config(), "group.id": self._group}, logger=log
            )
        except self._kafka.KafkaException as error:
            raise self._refused_config(error) from error
        try:
            known = client.list_topics(timeout=_PATIENCE_SECONDS).topics
        except self._kafka.KafkaException as error:
            raise ConfigurationError(
                f"no Kafka broker answers at {servers}: {error.args[0].str()}",
                hint="check --kafka, and that the broker's advertised.listeners can be reached",
            ) from None
        finally:
            client.close()
        missing = [topic for topic in self._topics if topic not in known]
        if missing:
            close = get_close_matches(missing[0], known, n=1)
            raise ConfigurationError(
                f"the topic {missing[0]} does not exist at {servers}"
                + (f" (did you mean {close[0]}?)" if close else ""),
                hint="create the topic, name another one in the app, or check the permissions of"
                " the Kafka user",
            )

    def topic_ids(self) -> dict[str, str]:
        """Return Kafka's ids of the topics. A topic that is created again has another id.

        Brokers before 2.8 have none, and a user without permission to describe gets none.
        """
        from confluent_kafka.admin import AdminClient

        admin = AdminClient(self._client_config(), logger=log)
        asked = admin.describe_topics(
            self._kafka.TopicCollection(self._topics), request_timeout=_PATIENCE_SECONDS
        )
        found: dict[str, str] = {}
        for topic, answer in asked.items():
            try:
                described = answer.result(2 * _PATIENCE_SECONDS)
            except self._kafka.KafkaException as error:
                log.warning("topic %s cannot be described: %s", topic, error.args[0].str())
                continue
            if str(described.topic_id).strip("A=0"):  # not the id of all zeros
                found[topic] = str(described.topic_id)
        return found

    def _refused_config(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"the Kafka client refuses its configuration: {error}",
            hint="check the configuration and the server addresses",
        )

    def join(self) -> None:
        """Join the group. ``read`` then returns records once partitions are assigned."""
        config: dict[str, Any] = {
            "queued.max.messages.kbytes": 16_384,
            "max.poll.interval.ms": 300_000,
            **self._client_config(),
            "group.id": self._group,
            "group.protocol": self.protocol,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": self._start,
            "allow.auto.create.topics": False,
        }
        if self._options.instance is not None:
            config["group.instance.id"] = self._options.instance
        if self.protocol == "classic":
            config["partition.assignment.strategy"] = "cooperative-sticky"
            config["session.timeout.ms"] = int(self._options.session_seconds * 1000)
        try:
            self._consumer = self._kafka.Consumer(config, logger=log)
            self._consumer.subscribe(
                self._topics, on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose
            )
        except self._kafka.KafkaException as error:
            raise self._refused_config(error) from error

    def _assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        lanes = _lanes(partitions)
        starts: dict[Lane, int] = {}
        try:
            starts = self._start_offsets(consumer, partitions)
        except StreamError as error:
            self._error = error
        except self._kafka.KafkaException as error:
            # The client then asks by itself, as often as it takes.
            log.warning("Kafka did not say where to begin: %s", error.args[0].str())
        for each in partitions:
            each.offset = starts.get(Lane(each.topic, each.partition), each.offset)
        consumer.incremental_assign(partitions)
        self.lanes |= set(lanes)
        self._callbacks.assigned(lanes, starts)

    def _start_offsets(self, consumer: Any, partitions: Sequence[Any]) -> dict[Lane, int]:
        """Return where to begin: at the committed offset, or where the options say.

        Raises StreamError if a topic ends before the committed offset, because it was deleted and
        created again.
        """
        starts: dict[Lane, int] = {}
        for each in consumer.committed(list(partitions), timeout=_PATIENCE_SECONDS):
            lane = Lane(each.topic, each.partition)
            low, high = consumer.get_watermark_offsets(each, timeout=_PATIENCE_SECONDS)
            starts[lane] = each.offset
            if each.offset < 0:
                starts[lane] = low if self._start == "earliest" else high
            elif each.offset > high:
                raise StreamError(
                    f"group {self._group} has committed offset {each.offset} of {lane}, and the"
                    f" topic ends at {high}: it was deleted and created again",
                    hint="pass a new source= to the routes of this topic, because its offsets"
                    " start again, and use a new group",
                )
            elif each.offset < low:
                log.error(
                    "%d records of %s were deleted before they were read: the topic's retention"
                    " is too short",
                    low - each.offset,
                    lane,
                )
                self.lost += low - each.offset
                starts[lane] = low
        return starts

    def _revoke(self, _: Any, partitions: Sequence[Any]) -> None:
        lanes = _lanes(partitions)
        try:
            self._callbacks.revoked(lanes)
        finally:
            self._drop(lanes)

    def _lose(self, _: Any, partitions: Sequence[Any]) -> None:
        lanes = _lanes(partitions)
        self._callbacks.lost(lanes)
        self._drop(lanes)

    def _drop(self, lanes: Sequence[Lane]) -> None:
        self.lanes -= set(lanes)
        self._paused -= set(lanes)

    # -- records

    def read(self, timeout_seconds: float) -> list[SourceRecord]:
        """Return records, or none after ``timeout_seconds``."""
        try:
            messages = self._consumer.consume(_BATCH_RECORDS, timeout_seconds)
        except self._kafka.KafkaException as error:
            self._failed(error.args[0])
            return []
        if self._error is not None:
            raise self._error
        found: list[SourceRecord] = []
        for message in messages:
            if message.error() is not None:
                self._failed(message.error())
                continue
            record = _record(message)
            if record.lane in self.lanes:
                found.append(record)
        return found

    def _failed(self, error: Any) -> None:
        """Handle an error of the Kafka client.

        Most of these errors are temporary, and are only logged.
        """
        name = self._error_codes.get(error.code())
        is_fatal = error.fatal() or error.code() == self._kafka.KafkaError._FATAL
        is_unsupported = name in _UNSUPPORTED or (is_fatal and _NO_HEARTBEAT in error.str())
        if is_unsupported and self._options.protocol == "auto" and self.protocol != "classic":
            log.info("the broker has no consumer protocol; using the classic one")
            self._consumer.close()
            self.protocol = "classic"
            self.join()
            return
        if is_fatal and _INSTANCE_IN_USE in error.str():
            log.warning("waits for its place in the group: a dead process still has it")
            self._consumer.close()
            time.sleep(_REJOIN_SECONDS)
            self.join()
            return
        if is_fatal or is_unsupported or name in _FINAL:
            raise StreamError(
                f"Kafka refuses to go on: {error.str()}",
                hint="check the topic, the group and the permissions of the Kafka user",
            )
        log.warning("Kafka: %s", error.str())

    def pause(self) -> None:
        """Stop fetching records, until ``resume``."""
        self._set_paused(self.lanes - self._paused, paused=True)

    def resume(self) -> None:
        """Fetch records again, after ``pause``."""
        self._set_paused(set(self._paused), paused=False)

    @property
    def is_paused(self) -> bool:
        return bool(self._paused)

    def _set_paused(self, lanes: set[Lane], *, paused: bool) -> None:
        if not lanes:
            return
        partitions = [self._kafka.TopicPartition(*lane) for lane in lanes]
        if paused:
            self._consumer.pause(partitions)
            self._paused |= lanes
        else:
            self._consumer.resume(partitions)
            self._paused -= lanes

    def commit(self, marks: Mapping[Lane, int]) -> bool:
        """Commit offsets, which are the next ones to read.

        Returns whether the broker accepted them.
        """
        wanted = [
            self._kafka.TopicPartition(lane.topic, lane.partition, offset)
            for lane, offset in marks.items()
            if lane in self.lanes
        ]
        if not wanted:
            return False
        try:
            answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except self._kafka.KafkaException as error:
            # A rebalance is under way, or the broker is away. The records may arrive again.
            log.info("offsets were not committed: %s", error.args[0].str())
            return False
        return all(answer.error is None for answer in answers or ())

    def unread(self, positions: Mapping[Lane, int]) -> int | None:
        """Return how many records the lanes have after these positions, or None if unknown.

        No request is sent: the answer is from the last fetch.
        """
        total = 0
        for lane in list(self.lanes):
            partition = self._kafka.TopicPartition(*lane)
            try:
                _, high = self._consumer.get_watermark_offsets(partition, cached=True)
            except (self._kafka.KafkaException, RuntimeError):
                return None
            if lane not in positions or high < 0:
                continue
            total += max(0, high - positions[lane])
        return total

    def close(self) -> None:
        """Leave the group."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class GroupView:
    """A group's offsets, read by a client that is not a member of the group.

    A consumer's own client must not be asked: calls of two threads on it can block each other.
    """

    def __init__(self, options: KafkaOptions, topics: Sequence[str], group: str) -> None:
        self._kafka = kafka_library()
        self._topics = topics
        config = {**options.config, "bootstrap.servers": options.servers, "group.id": group}
        self._client = self._kafka.Consumer(config, logger=log)

    def ends(self) -> dict[Lane, int]:
        """Return the offset after the last record, of every partition that has records."""
        found: dict[Lane, int] = {}
        known = self._client.list_topics(timeout=_PATIENCE_SECONDS).topics
        for topic in self._topics:
            for number in known[topic].partitions:
                partition = self._kafka.TopicPartition(topic, number)
                low, high = self._client.get_watermark_offsets(partition, timeout=_PATIENCE_SECONDS)
                if high > low:
                    found[Lane(topic, number)] = high
        return found

    def committed(self, lanes: Collection[Lane]) -> dict[Lane, int]:
        """Return the offsets that the group has committed for these lanes: the next to read."""
        partitions = [self._kafka.TopicPartition(*lane) for lane in lanes]
        answers = self._client.committed(partitions, timeout=_PATIENCE_SECONDS)
        return {Lane(each.topic, each.partition): each.offset for each in answers}

    def close(self) -> None:
        self._client.close()


def _lanes(partitions: Sequence[Any]) -> list[Lane]:
    return [Lane(each.topic, each.partition) for each in partitions]


def _record(message: Any) -> SourceRecord:
    kind, milliseconds = message.timestamp()
    return SourceRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        milliseconds / 1000 if kind else 0.0,
        tuple(message.headers() or ()),
    )


def kafka_library() -> Any:
    """Import confluent-kafka. Raises ConfigurationError if it is missing or too old."""
    try:
        import confluent_kafka
    except ImportError:
        raise ConfigurationError(
            "confluent-kafka is not installed", hint="pip install 'stator[kafka]'"
        ) from None
    if confluent_kafka.libversion()[1] < 0x020C0000:  # KIP-848 is complete since 2.12
        raise ConfigurationError(
            f"confluent-kafka {confluent_kafka.version()[0]} is too old to ingest",
            hint="pip install 'confluent-kafka>=2.12'",
        )
    return confluent_kafka

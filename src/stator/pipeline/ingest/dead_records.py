"""Dead letters: the records that could not be decoded or written, and where they came from.

    {"topic": "tests", "partition": 3, "offset": 1841, "at": 1791489600.25, "route": "put Reading",
     "reason": "Reading.mbps: expected a number, got 'x'", "key": "r1", "value": {"$base64": "..."},
     "headers": {"trace": "7f"}}

They are stored in the design's own table, in a file with one JSON object per line, or in a topic,
which gets the record's own bytes, and the other members as headers. A letter is stored before the
offset of its record is committed. If the process dies in between, the record arrives again: in the
table the letter replaces itself, in a file or topic it stands twice.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from stator.errors import ConfigurationError, StreamError
from stator.pipeline.bulk.job.dead_letters import encode_content
from stator.pipeline.ingest.kafka_source import KafkaOptions, kafka_library
from stator.pipeline.ingest.source_record import SourceRecord
from stator.tables.db import Db

_KEPT_SECONDS: Final = 30 * 24 * 3600
_MOST_BYTES: Final = 300_000
_PATIENCE_SECONDS: Final = 6.0
_FLUSH_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class DeadRecord:
    """A record that could not be ingested, with its route and the reason."""

    record: SourceRecord
    route: str
    reason: str

    def data(self) -> dict[str, Any]:
        """Return the letter as JSON data. Bytes that are UTF-8 become text."""
        record = self.record
        return {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "at": record.at,
            "route": self.route,
            "reason": self.reason,
            "key": _content(record.key),
            "value": _content(record.value),
            "headers": {name: _content(value) for name, value in record.headers},
        }


def _content(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return encode_content(value.decode())
    except UnicodeDecodeError:
        return encode_content(value)


class DeadRecords(Protocol):
    """A place for dead letters. ``add`` may be called from several threads."""

    def add(self, letter: DeadRecord) -> None:
        """Take a letter. It may be stored later, by ``flush``."""
        ...

    def flush(self) -> None:
        """Return when every letter that was added is stored."""
        ...

    def close(self) -> None:
        """Store the letters that are not stored yet, and close files and connections."""
        ...


class DeadRecordFile:
    """Appends letters to a file. Several processes may append to the same one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._is_changed = False
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be written: {error.strerror}",
                hint="name another file with --dead-letters",
            ) from None

    def add(self, letter: DeadRecord) -> None:
        """Take a letter."""
        text = orjson.dumps(letter.data(), None, orjson.OPT_APPEND_NEWLINE)
        with self._lock:
            while text:  # one write, unless the disk is full: lines of two processes do not mix
                text = text[os.write(self._file, text) :]
            self._is_changed = True

    def flush(self) -> None:
        """Return when every letter that was added is stored."""
        with self._lock:
            changed, self._is_changed = self._is_changed, False
        if changed:
            os.fsync(self._file)

    def close(self) -> None:
        """Store what is left, and close."""
        self.flush()
        os.close(self._file)


class DeadRecordTable:
    """Stores letters in the design's own table for 30 days, under the record's place.

    PK  INGEST#billing#DEAD#tests#3    SK  00000000000000001841#put Reading
    """

    def __init__(self, db: Db, app: str) -> None:
        self._db = db
        self._app = app

    def add(self, letter: DeadRecord) -> None:
        """Take a letter."""
        place, record = self._db.context.schema.place, letter.record
        body = orjson.dumps(letter.data())
        if len(body) > _MOST_BYTES:  # an item has at most 400 KB; the record is still in the topic
            short = {**letter.data(), "value": None, "key": None, "headers": {}, "cut": True}
            body = orjson.dumps(short)
        item = {
            **place.key(
                f"INGEST#{self._app}#DEAD#{record.topic}#{record.partition}",
                f"{record.offset:020d}#{letter.route}",
            ),
            "letter": {"S": body.decode()},
            place.ttl: {"N": str(int(self._db.context.now()) + _KEPT_SECONDS)},
        }
        self._db.call("PutItem", {"TableName": place.table, "Item": item})

    def flush(self) -> None:
        """Return at once: every letter is stored by ``add``."""

    def close(self) -> None:
        """Do nothing: the database belongs to the caller."""


class DeadRecordTopic:
    """Produces letters to a topic, with the record's key, value and headers, and further headers.

    The headers ``dead.topic``, ``dead.partition``, ``dead.offset``, ``dead.route`` and
    ``dead.reason`` say where the record came from, and why it is a dead letter.
    """

    def __init__(self, kafka: KafkaOptions, topic: str) -> None:
        self._topic = topic
        self._library = kafka_library()
        self._lock = threading.Lock()
        self._failed: list[str] = []
        self._producer = self._library.Producer(
            {**kafka.config, "bootstrap.servers": kafka.servers, "enable.idempotence": True}
        )
        try:
            known = self._producer.list_topics(timeout=_PATIENCE_SECONDS).topics
        except self._library.KafkaException as error:
            raise ConfigurationError(
                f"no Kafka broker answers at {kafka.servers}: {error.args[0].str()}",
                hint="check --kafka",
            ) from None
        if topic not in known:
            raise ConfigurationError(
                f"the topic {topic} for dead letters does not exist",
                hint="create it, or name another one with --dead-letters",
            )

    def add(self, letter: DeadRecord) -> None:
        """Take a letter."""
        record = letter.record
        facts = {
            "dead.topic": record.topic,
            "dead.partition": str(record.partition),
            "dead.offset": str(record.offset),
            "dead.route": letter.route,
            "dead.reason": letter.reason,
        }
        headers = [*record.headers, *((name, fact.encode()) for name, fact in facts.items())]
        while True:
            try:
                self._producer.produce(
                    self._topic, record.value, record.key, headers=headers, on_delivery=self._done
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def _done(self, error: Any, _: Any) -> None:
        if error is not None:
            with self._lock:
                self._failed.append(error.str())

    def flush(self) -> None:
        """Return when every letter that was added is stored."""
        left = self._producer.flush(_FLUSH_SECONDS)
        with self._lock:
            failed, self._failed = self._failed, []
        if left or failed:
            reason = failed[0] if failed else "the broker does not answer"
            raise StreamError(
                f"dead letters cannot be stored in the topic {self._topic}: {reason}",
                hint="check the topic and its message.max.bytes; nothing was committed",
            )

    def close(self) -> None:
        """Store what is left, and close."""
        self.flush()


class DeadRecordList:
    """Keeps letters in memory, for tests."""

    def __init__(self) -> None:
        self.letters: list[DeadRecord] = []

    def add(self, letter: DeadRecord) -> None:
        """Take a letter."""
        self.letters.append(letter)

    def flush(self) -> None:
        """Return at once."""

    def close(self) -> None:
        """Do nothing."""

"""Runs a Lambda function for the changes of a table's stream, as an event source mapping does.

Each shard has a thread, which reads it, fills batches, and sends them (``lambda_batch``). A child
starts when its parents are read to the end, so the changes of an item stay in order. Nothing is
stored: each run begins where ``start`` says.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

from stator.backoff import Backoff
from stator.errors import (
    ConnectionTrouble,
    ExpiredIterator,
    ResourceNotFound,
    ServiceError,
    StreamMissing,
    TrimmedDataAccess,
)
from stator.pipeline.workers.lambda_batch import BatchRules, BatchRun, GivenUp, Raw, number_of
from stator.pipeline.workers.shards.iterators import iterator_at, list_shards
from stator.pipeline.workers.shards.leases import OLDEST
from stator.tables.runner import Runner
from stator.tables.work import Call, Work

log = logging.getLogger("stator.workers")

Function = Callable[[Any, Any], Any]
_LABEL: Final = "lambda run"
_RETRIES: Final = Backoff(base_seconds=0.5, cap_seconds=30.0, jitter=0.0)
# AWS: "Lambda polls shards ... at a base rate of four times per second" (with-ddb).
_IDLE_SECONDS: Final = 0.25
_LIST_SECONDS: Final = 1.0
_PAGE_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """The settings of an event source mapping, and of its function."""

    start: Literal["latest", "oldest"] = "latest"
    batch_size: int = 100
    window_seconds: float = 0.0
    timeout_seconds: float = 3.0
    rules: BatchRules = field(default_factory=BatchRules)


class LambdaContext:
    """What a function gets as ``context``: the attributes and the method of AWS's object."""

    function_version = "$LATEST"
    memory_limit_in_mb = "128"
    log_stream_name = "local"
    identity = None
    client_context = None

    def __init__(self, function_name: str, timeout_seconds: float) -> None:
        self.function_name = function_name
        self.aws_request_id = str(uuid.uuid4())
        self.invoked_function_arn = (
            f"arn:aws:lambda:us-east-1:123456789012:function:{function_name}"
        )
        self.log_group_name = f"/aws/lambda/{function_name}"
        self._end = time.monotonic() + timeout_seconds

    def get_remaining_time_in_millis(self) -> int:
        """Return how many milliseconds are left until the function's timeout."""
        return max(0, int((self._end - time.monotonic()) * 1000))


@dataclass(slots=True)
class MappingCounts:
    """What a mapping has done: records read and given up, invocations, and those that failed."""

    read: int = 0
    given_up: int = 0
    invocations: int = 0
    errors: int = 0


class _Stopped(Exception):
    """The mapping is to stop, and a batch waits for its next attempt."""


class FunctionMapping:
    """Invokes a function for the changes of a table until it is stopped."""

    def __init__(
        self,
        runner: Runner,
        table: str,
        function: Function,
        options: MappingOptions,
        given_up: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Create a mapping. ``given_up`` gets AWS's record about each batch that is given up."""
        self._runner = runner
        self._table = table
        self._function = function
        self._options = options
        self._given_up = given_up
        self._name = getattr(function, "__name__", "function")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._shards: dict[str, _ShardThread] = {}
        self._ended: set[str] = set()
        self._errors: list[BaseException] = []
        self.counts = MappingCounts()
        self.stream = runner.run(_stream_of(table))
        self._begun_at = runner.clock.now()
        self._known: set[str] = set()
        self._skipped: set[str] = set()
        if options.start == "latest":
            shards = runner.run(list_shards(self.stream, _LABEL))
            self._known = {shard.id for shard in shards if shard.is_open}
            self._skipped = {shard.id for shard in shards if not shard.is_open}

    def turn(self) -> None:
        """Start a thread for each shard that can be read now. Raises what ended a thread."""
        if self._errors:
            raise self._errors[0]
        try:
            shards = self._runner.run(list_shards(self.stream, _LABEL))
        except (ServiceError, ConnectionTrouble) as error:
            log.warning("the shards of %s could not be listed: %s", self._table, error)
            return
        ids = {shard.id for shard in shards}
        over = self._ended | self._skipped
        for shard in shards:
            is_ready = shard.parent is None or shard.parent in over or shard.parent not in ids
            if shard.id in over or shard.id in self._shards or not is_ready:
                continue
            position = f"AT:{self._begun_at!r}" if shard.id in self._known else OLDEST
            thread = _ShardThread(self, shard.id, position)
            self._shards[shard.id] = thread
            thread.start()

    def has_caught_up(self, since: float) -> bool:
        """Whether every change made before ``since`` was handled or given up."""
        shards = self._runner.run(list_shards(self.stream, _LABEL))
        return all(
            shard.id in self._ended
            or shard.id in self._skipped
            or (shard.id in self._shards and self._shards[shard.id].caught_up_at >= since)
            for shard in shards
        )

    def run(self, wait: Callable[[float], bool], *, catch_up: bool = False) -> None:
        """Work until ``wait`` returns True, or with ``catch_up`` until all changes are handled.

        ``wait`` waits for some seconds and says whether to stop. Batches in flight are finished.
        """
        since = self._runner.clock.now()
        try:
            self.turn()
            while not wait(_IDLE_SECONDS if catch_up else _LIST_SECONDS):
                self.turn()
                if catch_up and self.has_caught_up(since):
                    break
        finally:
            self._stop.set()
            for thread in list(self._shards.values()):
                thread.join()
        if self._errors:
            raise self._errors[0]

    # -- a shard

    def read(self, shard: _ShardThread) -> None:
        options, clock = self._options, self._runner.clock
        position, buffer, since = shard.position, list[Raw](), 0.0
        following: str | None = None
        skip_before = 0.0
        while not self._stop.is_set():
            asked_at = clock.now()
            try:
                if following is None:
                    cursor = self._runner.run(
                        iterator_at(self.stream, shard.shard, position, _LABEL)
                    )
                    following, skip_before = cursor.text, cursor.skip_before
                page = self._runner.run(_page(following))
            except TrimmedDataAccess:
                log.error("%s: changes after %s were trimmed unread", shard.shard, position)
                following, position = None, OLDEST
                continue
            except ExpiredIterator:
                following = None
                continue
            except ResourceNotFound:
                break
            except (ServiceError, ConnectionTrouble) as error:
                log.warning("%s could not be read: %s", shard.shard, error)
                self._stop.wait(1.0)
                continue
            records = page["Records"]
            if records:
                position = number_of(records[-1])
            events = [self._event(raw) for raw in records]
            since = since if buffer else asked_at
            buffer += [each for each in events if _made(each) >= skip_before]
            following = page.get("NextShardIterator")
            is_due = following is None or asked_at - since >= options.window_seconds
            while len(buffer) >= options.batch_size or (buffer and is_due):
                batch, buffer = buffer[: options.batch_size], buffer[options.batch_size :]
                self._send(shard.shard, batch)
                if self._stop.is_set():
                    return
            if following is None:
                break
            if not records:
                if not buffer:
                    shard.caught_up_at = asked_at
                self._stop.wait(_IDLE_SECONDS)
        if not self._stop.is_set():
            self._ended.add(shard.shard)

    def fail(self, error: BaseException) -> None:
        self._errors.append(error)

    def _event(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        event: dict[str, Any] = orjson.loads(orjson.dumps(raw))
        event["eventSourceARN"] = self.stream
        identity = event.get("userIdentity")
        if identity:
            event["userIdentity"] = {
                "principalId": identity.get("PrincipalId"),
                "type": identity.get("Type"),
            }
        return event

    def _send(self, shard: str, batch: Sequence[Raw]) -> None:
        with self._lock:
            self.counts.read += len(batch)
        run = BatchRun(
            self._options.rules,
            self._invoke,
            self._runner.clock.now,
            self._pause,
            lambda given: self._give_up(shard, given),
        )
        try:
            run.run(batch)
        except _Stopped:
            return

    def _pause(self, retry: int) -> None:
        if self._stop.wait(_RETRIES.delay(retry, 0.0)):
            raise _Stopped

    def _invoke(self, records: Sequence[Raw]) -> Any:
        """Call the function in a thread of its own. Raises what it raises, or TimeoutError."""
        with self._lock:
            self.counts.invocations += 1
        seconds = self._options.timeout_seconds
        context = LambdaContext(self._name, seconds)
        event = orjson.loads(orjson.dumps({"Records": list(records)}))
        answers: list[Any] = []
        errors: list[BaseException] = []

        def call() -> None:
            try:
                answers.append(self._function(event, context))
            except BaseException as error:  # user code: whatever it raises, the invocation failed
                errors.append(error)

        thread = threading.Thread(target=call, name="stator-function", daemon=True)
        thread.start()
        thread.join(seconds)
        if not errors and not answers:
            errors.append(TimeoutError(f"{self._name} did not end within {seconds:g} seconds"))
        if errors:
            with self._lock:
                self.counts.errors += 1
            first = number_of(records[0])
            log.error(
                "%s failed for %d records from %s on: %s: %s",
                self._name,
                len(records),
                first,
                type(errors[0]).__name__,
                errors[0],
            )
            raise RuntimeError(str(errors[0])) from errors[0]
        return answers[0]

    def _give_up(self, shard: str, given: GivenUp) -> None:
        with self._lock:
            self.counts.given_up += len(given.records)
            self._given_up(self._failure_record(shard, given))

    def _failure_record(self, shard: str, given: GivenUp) -> dict[str, Any]:
        """Return what AWS sends to the destination for failures: where the records are."""
        context = LambdaContext(self._name, 0.0)
        times = [_text(_made(each)) for each in given.records]
        return {
            "requestContext": {
                "requestId": context.aws_request_id,
                "functionArn": context.invoked_function_arn,
                "condition": given.condition,
                "approximateInvokeCount": given.invocations,
            },
            "responseContext": {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                "functionError": "Unhandled",
            },
            "version": "1.0",
            "timestamp": _text(self._runner.clock.now()),
            "DDBStreamBatchInfo": {
                "shardId": shard,
                "startSequenceNumber": number_of(given.records[0]),
                "endSequenceNumber": number_of(given.records[-1]),
                "approximateArrivalOfFirstRecord": times[0],
                "approximateArrivalOfLastRecord": times[-1],
                "batchSize": len(given.records),
                "streamArn": self.stream,
            },
        }


class _ShardThread(threading.Thread):
    def __init__(self, mapping: FunctionMapping, shard: str, position: str) -> None:
        super().__init__(name=f"stator-{shard}", daemon=True)
        self._mapping = mapping
        self.shard = shard
        self.position = position
        self.caught_up_at = float("-inf")

    def run(self) -> None:
        try:
            self._mapping.read(self)
        except Exception as error:  # a thread has no caller to raise to
            self._mapping.fail(error)


def _stream_of(table: str) -> Work[str]:
    try:
        reply = yield Call("DescribeTable", {"TableName": table}, _LABEL)
    except ResourceNotFound:
        raise StreamMissing(f"there is no table {table}", hint="check --stream and --at") from None
    described = reply["Table"]
    is_on = described.get("StreamSpecification", {}).get("StreamEnabled")
    if not is_on or "LatestStreamArn" not in described:
        raise StreamMissing(
            f"table {table} has no stream",
            hint="enable it: UpdateTable with a StreamSpecification, or app.ensure(db)",
        )
    return str(described["LatestStreamArn"])


def _page(iterator: str) -> Work[dict[str, Any]]:
    request = {"ShardIterator": iterator, "Limit": _PAGE_RECORDS}
    reply: dict[str, Any] = yield Call("GetRecords", request, _LABEL)
    return reply


def _made(record: Raw) -> float:
    return float(record["dynamodb"]["ApproximateCreationDateTime"])


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"

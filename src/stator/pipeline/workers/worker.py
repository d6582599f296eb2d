"""A worker: finds shards, takes leases, and runs a consumer for each.

``coordinate`` and ``renew`` are pieces of work that run until the worker stops. The worker starts
further pieces through ``spawn``: the consumers, and the retries of items that are set aside. The
runner (threads, or the loop of a test) provides ``spawn`` and ends the worker with ``stop``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from stator.backoff import Backoff, BackoffTimer
from stator.errors import (
    AccessDenied,
    ConfigurationError,
    ConnectionTrouble,
    IncompleteSignature,
    InvalidSignature,
    LeaseLost,
    MissingAuthenticationToken,
    ResourceNotFound,
    ServiceError,
    StatorError,
    StreamError,
    StreamMissing,
    UnrecognizedClient,
)
from stator.pipeline.workers.handlers.parking import Parking
from stator.pipeline.workers.handlers.set_aside_retry import SetAsideRetry
from stator.pipeline.workers.handlers.subscribers import (
    exact_subscribers,
    refuse_small_stream,
    tables_of,
)
from stator.pipeline.workers.options import WorkerOptions
from stator.pipeline.workers.shards.balance import moves
from stator.pipeline.workers.shards.consumer import Consumer
from stator.pipeline.workers.shards.iterators import list_shards
from stator.pipeline.workers.shards.lease_holder import HolderTools, LeaseHolder, ShardProgress
from stator.pipeline.workers.shards.leases import (
    SNAPSHOT,
    Beginning,
    LeaseTable,
    ShardLease,
    WorkerGroup,
)
from stator.pipeline.workers.shards.lineage import (
    StreamInfo,
    first_beginning,
    forgettable,
    is_ready,
    new_leases,
)
from stator.pipeline.workers.shards.snapshot import SnapshotConsumer
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Pause, Work
from stator.throttle_reason import throttle_reasons

if TYPE_CHECKING:
    from stator.pipeline.workers.app import StreamApp

log = logging.getLogger("stator.workers")

Spawn = Callable[[Work[None], str], None]
_LABEL: Final = "stream"
_TURN_SECONDS: Final = 1.0
_RESTARTS: Final = Backoff(base_seconds=1.0, cap_seconds=30.0, jitter=0.5)
# DynamoDB refuses the caller itself: no retry helps.
_REFUSED_CALLERS: Final = (
    AccessDenied,
    IncompleteSignature,
    InvalidSignature,
    MissingAuthenticationToken,
    UnrecognizedClient,
)


class Worker:
    def __init__(
        self, context: Context, app: StreamApp, name: str, options: WorkerOptions, spawn: Spawn
    ) -> None:
        if not app.subscribers:
            raise ConfigurationError(
                f"{app.name} has no handlers", hint="register some with @app.on.insert(...)"
            )
        exact = exact_subscribers(app.subscribers)
        if exact and options.start == "snapshot":
            raise ConfigurationError(
                f"{exact[0].name} cannot start from a snapshot: some changes would count twice",
                hint="start from latest, then add the existing items with `stator views rebuild`",
            )
        for each in exact:
            each.prepare(context)
        self._context = context
        self._app = app
        self.name = name
        self._options = options
        self._spawn = spawn
        self._leases = LeaseTable(context, app.name, options.lease_seconds, options.drift_seconds)
        parking = Parking(context, app.name, self._leases)
        self._retries = SetAsideRetry(context, app.name, app.subscribers, parking, options)
        self._tools = HolderTools(
            context, app.name, self._leases, parking, app.subscribers, options, self._retries
        )
        self._streams: dict[str, StreamInfo] = {}
        self._next_listing = 0.0
        self._is_stale = True
        self._is_stopping = False
        self.consumers: dict[str, LeaseHolder] = {}
        self._past = ShardProgress()
        # By the name of a lease whose consumer failed: its back-off, and when it starts again.
        self._restarts: dict[str, BackoffTimer] = {}
        self._restart_at: dict[str, float] = {}
        self._fatal: StatorError | None = None
        # The leases this worker could read when it last looked, and when that was.
        self._to_do: frozenset[str] = frozenset()
        self._looked_at = 0.0

    # -- from outside

    def stop(self) -> None:
        """Begin the shutdown, and return at once.

        Consumers finish the batches in flight and release the leases.
        """
        self._is_stopping = True
        self._retries.stop()
        for consumer in list(self.consumers.values()):
            consumer.stop()

    def look_again(self) -> None:
        """List the shards again in the next turn, even before ``sync_seconds`` have passed."""
        self._is_stale = True

    @property
    def is_idle(self) -> bool:
        return not self.consumers and self._retries.is_idle

    def progress(self) -> ShardProgress:
        """Return the counters of all shards, added up, and the lag of the slowest shard.

        The lag is None if the lag of any shard is unknown.
        """
        total = ShardProgress()
        total.add(self._past)
        total.add_count(self._retries.count)
        consumers = list(self.consumers.values())
        for consumer in consumers:
            total.add(consumer.progress)
        lags = [consumer.lag_seconds() for consumer in consumers]
        known = [lag for lag in lags if lag is not None]
        if known and len(known) == len(lags) and not self._restart_at:
            total.lag_seconds = max(known)
        return total

    def has_caught_up(self, since: float) -> bool:
        """Whether this worker has handled all changes in its shards from before ``since``.

        The worker must also have listed the shards since then, and be reading all that it can read.
        """
        if self._looked_at < since or any(lease not in self.consumers for lease in self._to_do):
            return False
        return all(consumer.caught_up_at >= since for consumer in list(self.consumers.values()))

    # -- renewing

    def renew(self) -> Work[None]:
        while not (self._is_stopping and self.is_idle):
            consumers = [
                consumer for consumer in list(self.consumers.values()) if not consumer.is_done
            ]
            yield Gather([self._renew_one(consumer) for consumer in consumers])
            yield from self._retries.renew()
            yield Pause(self._options.lease_seconds / 3)

    def _renew_one(self, consumer: LeaseHolder) -> Work[None]:
        try:
            renewed = yield from self._leases.renew(consumer.held())
        except LeaseLost:
            return  # too late: another worker may be about to take it
        except (ServiceError, ConnectionTrouble) as error:
            # If this continues, the lease expires, which the consumer sees by its own clock.
            log.warning("the lease on %s was not renewed: %s", consumer.lease.name, error)
            return
        if renewed is None:
            consumer.lose()
        else:
            consumer.see(renewed)

    # -- coordinating

    def coordinate(self) -> Work[None]:
        self._spawn(self._retries.run(), "retry")
        while not self._is_stopping:
            try:
                yield from self._turn()
            except (ServiceError, ConnectionTrouble) as error:
                if isinstance(error, _REFUSED_CALLERS):
                    raise self._refused(error) from error
                log.warning("worker %s could not check its leases: %s", self.name, error)
            if self._fatal is not None:
                raise self._fatal
            yield Pause(_TURN_SECONDS)

    def _refused(self, error: StatorError) -> StatorError:
        return StreamError(
            f"DynamoDB refuses the requests of {self._app.name}: {error}",
            hint="check the credentials and their permissions; the worker does not try again",
        )

    def _turn(self) -> Work[None]:
        now = self._context.now()
        lists = self._is_stale or now >= self._next_listing
        if lists:
            self._is_stale = False
            yield from self._list_streams()
            self._next_listing = self._context.now() + self._options.sync_seconds
        try:
            group = yield from self._leases.load()
        except ResourceNotFound:
            raise _no_table(self._context.schema.place.table) from None
        if group.runner != "workers" and exact_subscribers(self._app.subscribers):
            yield from self._claim()
        group = yield from self._make_leases(group)
        yield from self._balance(group)
        if lists:
            self._looked_at = now

    def _claim(self) -> Work[None]:
        if (yield from self._leases.claim("workers")) == "lambda":
            name = exact_subscribers(self._app.subscribers)[0].name
            raise ConfigurationError(
                f"{self._app.name} runs on AWS Lambda: workers would count its changes again in"
                f" {name}",
                hint="give the app and its views other names here, or run it on Lambda only",
            )

    def _list_streams(self) -> Work[None]:
        for table in self._tables():
            try:
                described = yield Call("DescribeTable", {"TableName": table}, _LABEL)
            except ResourceNotFound:
                raise _no_table(table) from None
            arn = described["Table"].get("LatestStreamArn")
            if arn is None or not described["Table"].get("StreamSpecification", {}).get(
                "StreamEnabled"
            ):
                raise StreamMissing(
                    f"table {table} has no stream",
                    hint="create one with `stator work --ensure` or app.ensure(db)",
                )
            shown = described["Table"]["StreamSpecification"].get("StreamViewType")
            refuse_small_stream(str(shown), table, self._app.subscribers, self._context)
            self._streams[table] = StreamInfo(table, arn, (yield from list_shards(arn, _LABEL)))

    def _tables(self) -> list[str]:
        """Return the tables whose changes at least one subscriber wants."""
        wanted = {
            table for each in self._app.subscribers for table in tables_of(each, self._context)
        }
        schema = self._context.schema
        return [table for table in (*schema.tables, schema.place.table) if table in wanted]

    def _make_leases(self, group: WorkerGroup) -> Work[WorkerGroup]:
        changed = False
        for stream in self._streams.values():
            beginning = group.beginnings.get(stream.table)
            if beginning is None:
                beginning = yield from self._begin(stream)
                changed = True
            elif beginning.stream != stream.arn:
                yield from self._leases.follow_new_stream(
                    Beginning(stream.table, stream.arn, beginning.start, beginning.at)
                )
                changed = True
                continue  # the next turn uses what is stored now
            for lease in new_leases(stream, beginning, group):
                yield from self._leases.create(lease)
                changed = True
        for lease in forgettable(group, self._streams, self._context.now()):
            yield from self._leases.delete(lease)
            changed = True
        return (yield from self._leases.load()) if changed else group

    def _begin(self, stream: StreamInfo) -> Work[Beginning]:
        """Store where this group begins to read a stream, and return what is stored.

        If another worker has already stored a beginning, return that one.
        """
        at = self._context.now()
        fresh = StreamInfo(stream.table, stream.arn, (yield from list_shards(stream.arn, _LABEL)))
        self._streams[stream.table] = fresh
        begun = yield from self._leases.begin(first_beginning(fresh, self._options.start, at))
        group = yield from self._leases.load()
        found = group.beginnings[stream.table]
        if begun:
            log.info("%s starts to read %s from %s", self._app.name, stream.table, found.start)
        return found

    # -- who works on what

    def _balance(self, group: WorkerGroup) -> Work[None]:
        working = frozenset(
            name for name, consumer in list(self.consumers.items()) if not consumer.is_done
        )
        self._to_do = frozenset(
            lease.name
            for lease in group.leases.values()
            if is_ready(lease, group, self._streams)
            and (
                lease.owner == self.name
                or lease.is_free(self._context.now(), self._options.drift_seconds)
            )
        )
        found = moves(
            group,
            self._streams,
            self.name,
            working,
            self._context.now(),
            self._options,
            self._context.random,
        )
        for lease in [*found.take, *found.resume]:
            if self._is_stopping:
                return
            if self._restart_at.get(lease.name, 0.0) > self._context.now():
                continue
            # A lease that was handed over is also taken, to get a new fence.
            taken = yield from self._leases.take(lease, self.name)
            if taken is not None and lease.name not in self.consumers:
                self._start(taken, self._former_end(lease))
        for lease in found.ask:
            yield from self._leases.ask(lease, self.name)

    def _former_end(self, lease: ShardLease) -> float:
        """Return the time until which a lease's former owner may believe that it holds the lease.

        Returns 0 if no other worker held it.
        """
        if lease.owner in (None, self.name):
            return 0.0
        return lease.until + self._options.drift_seconds

    def _start(self, lease: ShardLease, not_before: float) -> None:
        kind = SnapshotConsumer if lease.shard == SNAPSHOT else Consumer
        consumer = kind(self._tools, lease, self._ended, not_before)
        self.consumers[lease.name] = consumer
        self._restart_at.pop(lease.name, None)
        if self._is_stopping:
            consumer.stop()  # taken during shutdown: give it back
        self._spawn(self._consume(consumer), lease.name)

    def _consume(self, consumer: LeaseHolder) -> Work[None]:
        name = consumer.lease.name
        try:
            yield from consumer.run()
        except (ServiceError, ConnectionTrouble) as error:
            if isinstance(error, _REFUSED_CALLERS):
                self._fatal = self._refused(error)
                return
            level = logging.WARNING if not isinstance(error, ResourceNotFound) else logging.ERROR
            wait = self._hold_back(consumer)
            log.log(
                level, "%s failed and is restarted in %.1f seconds: %s", name, wait, _told(error)
            )
        except Exception:
            self._hold_back(consumer)
            raise
        else:
            self._restarts.pop(name, None)

    def _hold_back(self, consumer: LeaseHolder) -> float:
        """Choose when to restart a consumer that failed. Return the wait in seconds.

        The waits grow with each failure, and start over once the consumer has handled a batch.
        """
        name = consumer.lease.name
        timer = self._restarts.setdefault(name, self._context.timer(_RESTARTS))
        if consumer.caught_up_at or consumer.progress.batches:
            timer.reset()
        wait = timer.next_delay()
        self._restart_at[name] = self._context.now() + wait
        return wait

    def _ended(self, consumer: LeaseHolder) -> None:
        self._past.add(consumer.progress)
        self.consumers.pop(consumer.lease.name, None)
        self.look_again()  # a shard that ended has children


def _no_table(table: str) -> StreamMissing:
    return StreamMissing(
        f"there is no table {table}",
        hint="create it with `stator work --ensure`, or check the address, the prefix and, for an"
        " http address, the region (AWS_DEFAULT_REGION)",
    )


def _told(error: ServiceError | ConnectionTrouble) -> str:
    """Return an error as text for the log. Of throttling, this is the limit that was reached."""
    limits = dict.fromkeys(
        f"{each.text}{f' of {each.index or each.table}' if each.table else ''}"
        for each in throttle_reasons(error)
    )
    return f"throttled: {', '.join(limits)}" if limits else str(error)

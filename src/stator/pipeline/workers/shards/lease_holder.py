"""Work under a lease: the common base of the consumers of a shard and of a snapshot."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stator.errors import LeaseLost
from stator.pipeline.workers.handlers.batch_delivery import BatchDelivery, DeliveryCount
from stator.pipeline.workers.handlers.parking import Parking
from stator.pipeline.workers.handlers.set_aside_retry import SetAsideRetry
from stator.pipeline.workers.handlers.subscribers import HandlerScope, Subscriber, subscribers_of
from stator.pipeline.workers.options import RETENTION_SECONDS, WorkerOptions
from stator.pipeline.workers.shards.leases import LeaseTable, ShardLease
from stator.tables.context import Context
from stator.tables.work import Pause, Work

log = logging.getLogger("stator.workers")

# A lag of zero is believed for this long after the pause between two reads.
_FRESH_SECONDS = 5.0


@dataclass(slots=True)
class ShardProgress:
    """Counters of one shard, for display.

    ``records`` counts the records read, and ``lost`` how often records were trimmed before they
    were read. ``lag_seconds`` is the age of the oldest unhandled change, or None while that is
    unknown. The other counters are those of ``DeliveryCount``.
    """

    records: int = 0
    handled: int = 0
    set_aside: int = 0
    parked: int = 0
    retried: int = 0
    batches: int = 0
    lost: int = 0
    lag_seconds: float | None = None

    @property
    def trim_seconds(self) -> float | None:
        """Seconds until the stream deletes the oldest unhandled change, or None if unknown."""
        return None if self.lag_seconds is None else RETENTION_SECONDS - self.lag_seconds

    def add_batch(self, handled: DeliveryCount) -> None:
        self.add_count(handled)
        self.batches += 1

    def add_count(self, count: DeliveryCount) -> None:
        self.handled += count.handled
        self.set_aside += count.set_aside
        self.parked += count.parked
        self.retried += count.retried

    def add(self, other: ShardProgress) -> None:
        """Add the counters of another shard to these. ``lag_seconds`` stays as it is."""
        self.records += other.records
        self.handled += other.handled
        self.set_aside += other.set_aside
        self.parked += other.parked
        self.retried += other.retried
        self.batches += other.batches
        self.lost += other.lost


@dataclass(frozen=True, slots=True)
class HolderTools:
    """The objects that all consumers of a worker share, such as its options and its subscribers."""

    context: Context
    group: str
    leases: LeaseTable
    parking: Parking
    subscribers: Sequence[Subscriber]
    options: WorkerOptions
    retries: SetAsideRetry


class LeaseHolder(ABC):
    """The base of work that is done under a lease. ``stop`` ends it after the batch in flight.

    ``when_done`` is called at the end, also after an error.
    """

    def __init__(
        self,
        tools: HolderTools,
        lease: ShardLease,
        when_done: Callable[[LeaseHolder], None],
        not_before: float = 0.0,
    ) -> None:
        """Create a holder that begins its work at ``not_before``, in seconds since the epoch.

        Until then, the former holder of the lease may still be working.
        """
        self.tools = tools
        self.context = tools.context
        self.lease = lease
        self.progress = ShardProgress()
        self.is_done = False
        # Every change made before this moment has been handled.
        self.caught_up_at = 0.0
        self._when_done = when_done
        self._not_before = not_before
        self._is_lost = False
        self._is_stopping = False
        self._lag_at = 0.0
        self._is_handling = False
        label = lease.stream.rpartition("/")[2]
        scope = HandlerScope(
            tools.context,
            tools.group,
            lease.shard,
            lease.fence,
            self.held,
            label,
            lambda: tools.leases.check(self.held()),
        )
        mine = subscribers_of(tools.subscribers, lease.table, tools.context)
        self.delivery = BatchDelivery(
            mine,
            tools.parking,
            tools.options,
            scope,
            self.held,
            lambda: self.is_to_stop,
            tools.retries.expect,
        )

    # -- from outside

    def stop(self) -> None:
        self._is_stopping = True

    def lose(self) -> None:
        """Record that another worker has the lease, so that nothing more is handled."""
        self._is_lost = True

    def see(self, lease: ShardLease) -> None:
        """Replace this holder's copy of the lease with one that was just read from storage.

        The lease just read is ignored if it has another fence, because another worker has taken it.
        """
        if lease.fence == self.lease.fence:
            self.lease = lease

    def lag_seconds(self) -> float | None:
        """Return the age of the oldest unhandled change, or None if it is not known now.

        While a batch is being handled, this is the age of its first change. Otherwise it is the lag
        after the last read of the stream. The lag is unknown if that read is too long ago, for
        example because the connection hangs.
        """
        lag = self.progress.lag_seconds
        if lag is None:
            return None
        since = self.context.now() - self._lag_at
        if self._is_handling:
            return lag + since
        return lag if since <= self.tools.options.idle_seconds + _FRESH_SECONDS else None

    def set_lag(self, seconds: float | None, *, is_handling: bool = False) -> None:
        """Record ``seconds`` as the lag now; None means unknown.

        ``is_handling`` says that a change of this age has been read but not handled. The lag then
        grows with time.
        """
        self.progress.lag_seconds = seconds
        self._lag_at = self.context.now()
        self._is_handling = is_handling

    def held(self) -> ShardLease:
        """Return the lease. Raises LeaseLost if this worker no longer holds it.

        That is so if the lease has ended by this process's own clock, or is known to be lost.
        """
        if self._is_lost or self.context.now() >= self.lease.until:
            raise LeaseLost(
                f"the lease on shard {self.lease.name} was lost",
                hint="another worker continues from its checkpoint",
            )
        return self.lease

    @property
    def is_to_stop(self) -> bool:
        return self._is_stopping or self.lease.wanted is not None

    # -- the work

    def run(self) -> Work[None]:
        try:
            while (wait := self._not_before - self.context.now()) > 0:
                yield Pause(min(wait, 1.0))
            yield from self.work()
        except LeaseLost:
            log.warning("the lease on %s was lost to another worker", self.lease.name)
        finally:
            self.is_done = True
            self._when_done(self)

    @abstractmethod
    def work(self) -> Work[None]:
        """Do the work for which the lease was taken, until it is done or the holder is stopped."""

    def move(self, position: str, lag_seconds: float = 0.0) -> Work[None]:
        """Write a checkpoint and renew the lease. Everything up to ``position`` has been handled.

        Raises LeaseLost if another worker has taken the lease.
        """
        moved = yield from self.tools.leases.move(self.held(), position, lag_seconds)
        if moved is None:
            self.lose()
            self.held()
        else:
            self.see(moved)

    def give(self) -> Work[None]:
        yield from self.tools.leases.give(self.held())

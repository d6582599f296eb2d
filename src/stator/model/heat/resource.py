"""A table or a global index as DynamoDB limits it: partitions, buckets, growth and splits.

The idea. A request is admitted while everything that limits it has units left, and is then charged
in full: the partition of its key, the provisioned units with their burst, the maximum that a user
set, and the account's quota. Adaptive capacity needs no code: a partition has no share of the
table's units, so a hot one may use all of them up to its own limit. The capacity of an on-demand
table is the sum of the limits of its partitions.

Partitions are only added, never merged. They are added if the settings ask for more, if an
on-demand table reaches a new peak, if the data outgrow them, and if one is hot for two minutes.

Time. Nothing happens by itself. Each call receives the time, and first carries out what was due by
then. A minute of a partition begins with its first request.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import ceil
from typing import Any

from stator.model.heat import splits
from stator.model.heat.bucket import TokenBucket
from stator.model.heat.limits import (
    BURST_SECONDS,
    EVENTS_KEPT,
    GROWTH_SECONDS,
    INITIAL_BURST_SECONDS,
    MINUTE_SECONDS,
    ON_DEMAND_PARTITIONS,
    PARTITION_BYTES,
    PARTITION_UNITS,
    QUOTA_UNITS,
    READ,
    SPLIT_SECONDS,
    WRITE,
)
from stator.model.heat.partition import Partition
from stator.model.heat.splits import PartitionEvent
from stator.model.heat.throttle_cause import (
    ACCOUNT_LIMIT,
    KEY_RANGE,
    MAXIMUM,
    PROVISIONED,
    ThrottleCause,
)


@dataclass(frozen=True, slots=True)
class ThroughputSettings:
    """The settings of a table or index that decide what it admits. Pairs are (read, write).

    ``units`` are the provisioned units, or None for on-demand capacity. ``maxima`` are the
    on-demand maxima that a user may set. ``warm`` is the requested warm throughput. ``quota`` is
    the account's limit for each on-demand table or index.
    """

    units: tuple[float, float] | None = None
    maxima: tuple[float | None, float | None] = (None, None)
    warm: tuple[float, float] = (0.0, 0.0)
    quota: tuple[float, float] = (QUOTA_UNITS, QUOTA_UNITS)
    has_local_index: bool = False
    initial_burst_seconds: float = INITIAL_BURST_SECONDS

    @property
    def on_demand(self) -> bool:
        return self.units is None

    def partitions(self) -> int:
        """Return how many partitions the settings ask for."""
        read, write = self.warm
        warm = ceil(max(read / PARTITION_UNITS[READ], write / PARTITION_UNITS[WRITE]))
        if self.units is None:
            return max(ON_DEMAND_PARTITIONS, warm)
        read, write = self.units
        return max(1, warm, ceil(read / PARTITION_UNITS[READ] + write / PARTITION_UNITS[WRITE]))


class ThroughputResource:
    """Admits and charges requests to one table or global index. See the module's header."""

    __slots__ = (
        "_by_first_byte",
        "_growth",
        "_is_on_demand",
        "_maxima",
        "_minute_ends",
        "_minute_reads",
        "_minute_writes",
        "_next_at",
        "_rates",
        "events",
        "generation",
        "highest",
        "index",
        "lows",
        "partitions",
        "peak",
        "refused",
        "settings",
        "stored_generation",
    )

    def __init__(
        self, settings: ThroughputSettings, now: float, *, index: str | None = None
    ) -> None:
        self.settings = settings
        self.index = index
        self.partitions: list[Partition] = []
        # The keys at which the partitions start.
        self.lows: list[bytes] = []
        # The partition of all keys with a first byte, or None if they are in several. It is made
        # when it is first needed, because a new table is cut many times before.
        self._by_first_byte: list[Partition | None] = []
        # Raised whenever partitions change, or what is due for them; and its value when a caller
        # last stored them.
        self.generation = 0
        self.stored_generation = 0
        self.events: list[PartitionEvent] = []
        # Refused requests by kind and limit, such as (WRITE, KEY_RANGE).
        self.refused: dict[tuple[int, str], int] = {}
        # The highest units of a minute, per second: an on-demand table grows to twice of that.
        self.peak = [0.0, 0.0]
        # The most units that were ever provisioned.
        self.highest = [0.0, 0.0]
        # Units of the current minute, for the peak.
        self._minute_ends = 0.0
        self._minute_reads = 0.0
        self._minute_writes = 0.0
        # When an on-demand table has grown to how many partitions; times rise.
        self._growth: list[tuple[float, int]] = []
        # By kind: provisioned units or the account's quota, and the maximum that a user has set.
        self._rates: list[TokenBucket | None] = [None, None]
        self._maxima: list[TokenBucket | None] = [None, None]
        self._is_on_demand = settings.on_demand
        # The time of the next thing that happens by itself.
        self._next_at = float("inf")
        self._replace([Partition(low) for low in even_cuts(settings.partitions())])
        self._set_limits(now)

    # -- requests

    def partition_of(self, key: bytes) -> Partition:
        if key:  # every request: a search costs more than a look into a list
            if not self._by_first_byte:
                self._by_first_byte = [self._of_first_byte(byte) for byte in range(256)]
            partition = self._by_first_byte[key[0]]
            if partition is not None:
                return partition
        return self.partitions[bisect_right(self.lows, key) - 1]

    def _of_first_byte(self, byte: int) -> Partition | None:
        first = bisect_right(self.lows, bytes([byte])) - 1
        end = len(self.lows) if byte == 255 else bisect_left(self.lows, bytes([byte + 1]))
        return self.partitions[first] if first == end - 1 else None

    @property
    def warm(self) -> tuple[int, int]:
        """Return the read and write units a second that the resource can take at once.

        An on-demand resource takes what its partitions take, up to the account's quota. A
        provisioned resource takes the most units that were ever provisioned. Neither takes less
        than the warm throughput in its settings.
        """
        settings, count = self.settings, len(self.partitions)
        if settings.on_demand:
            by_partitions = [count * PARTITION_UNITS[kind] for kind in (READ, WRITE)]
            read, write = (min(settings.quota[kind], by_partitions[kind]) for kind in (READ, WRITE))
        else:
            read, write = self.highest
        return int(max(read, settings.warm[READ])), int(max(write, settings.warm[WRITE]))

    def bounds_of(self, key: bytes) -> tuple[bytes, bytes | None]:
        """Return the keys at which the partition of ``key`` and the next partition start."""
        place = bisect_right(self.lows, key) - 1
        return self.lows[place], self._high(place)

    def room(self, kind: int, key: bytes, now: float) -> float:
        """Return the units that are left now for requests for this key.

        A request passes if any units are left, even if it costs more. ``kind`` is READ or WRITE.
        """
        if now >= self._next_at:
            self.settle(now)
        room = self.partition_of(key).meter(kind).room(now)
        for bucket in (self._rates[kind], self._maxima[kind]):
            if bucket is not None:
                room = min(room, bucket.room(now))
        return room

    def tightest_limit(self, kind: int, now: float) -> tuple[float, str]:
        """Return the tightest limit of the whole resource: the units it leaves now, and its name.

        The limits of single partitions do not count. If there is no other limit, the units are
        infinite and the name is empty.
        """
        if now >= self._next_at:
            self.settle(now)
        rate, maximum = self._rates[kind], self._maxima[kind]
        least, name = float("inf"), ""
        if rate is not None:
            least, name = rate.room(now), ACCOUNT_LIMIT if self.settings.on_demand else PROVISIONED
        if maximum is not None and maximum.room(now) < least:
            least, name = maximum.room(now), MAXIMUM
        return least, name

    def admit(self, kind: int, key: bytes, units: float, now: float) -> bool:
        """Charge a request if every limit has units left. Return whether it was charged.

        Every request runs through this, so it repeats ``room`` and ``charge`` in one pass.
        """
        if now >= self._next_at:
            self.settle(now)
        partition = self.partition_of(key)
        rate, maximum = self._rates[kind], self._maxima[kind]
        if (
            (partition.read_meter if kind == READ else partition.write_meter).room(now) <= 0.0
            or (rate is not None and rate.room(now) <= 0.0)
            or (maximum is not None and maximum.room(now) <= 0.0)
        ):
            return False
        if rate is not None:
            rate.level -= units
        if maximum is not None:
            maximum.level -= units
        partition.take(kind, key, units, now)
        self._counted(kind, partition, units, now)
        return True

    def causes(self, kind: int, key: bytes, now: float) -> list[ThrottleCause]:
        """Return every limit that would refuse a request for this key now, in DynamoDB's order."""
        if now >= self._next_at:
            self.settle(now)
        on_demand = self.settings.on_demand
        limits = []
        rate, maximum = self._rates[kind], self._maxima[kind]
        if rate is not None and rate.room(now) <= 0.0:
            limits.append(ACCOUNT_LIMIT if on_demand else PROVISIONED)
        if maximum is not None and maximum.room(now) <= 0.0:
            limits.append(MAXIMUM)
        if self.partition_of(key).meter(kind).room(now) <= 0.0:
            limits.append(KEY_RANGE)
        return [ThrottleCause(limit, kind, self.index, on_demand) for limit in limits]

    def charge(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Charge an admitted request to every limit: its partition, the rate and the maximum."""
        for bucket in (self._rates[kind], self._maxima[kind]):
            if bucket is not None:
                bucket.take(units, now)
        self._count(kind, self.partition_of(key), key, units, now)

    def count(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Charge a request to its partition alone, and not to the rate or the maximum."""
        self._count(kind, self.partition_of(key), key, units, now)

    def _count(self, kind: int, partition: Partition, key: bytes, units: float, now: float) -> None:
        partition.charge(kind, key, units, now)
        self._counted(kind, partition, units, now)

    def _counted(self, kind: int, partition: Partition, units: float, now: float) -> None:
        """Add a request to the minute, and decide about a split of its partition if it is due."""
        if now >= self._minute_ends:
            self._end_minute(now)
        if kind == READ:
            self._minute_reads += units
        else:
            self._minute_writes += units
        if partition.due_at is not None:
            self._decide(partition, now)

    def refund(self, kind: int, key: bytes, units: float, now: float) -> None:
        """Take back the charge for a part of a request, because another part was refused."""
        for bucket in (self._rates[kind], self._maxima[kind]):
            if bucket is not None:
                bucket.take(-units, now)
        self.partition_of(key).refund(kind, units, now)
        if kind == READ:
            self._minute_reads -= units
        else:
            self._minute_writes -= units

    def refuse(
        self, kind: int, key: bytes, units: float, causes: list[ThrottleCause], now: float
    ) -> None:
        """Count a refused request under the first limit in ``causes``.

        A refusal by the limit of the partition also counts as demand, so the partition may split.
        """
        limit = causes[0].limit
        self.refused[kind, limit] = self.refused.get((kind, limit), 0) + 1
        if any(cause.limit == KEY_RANGE for cause in causes):
            partition = self.partition_of(key)
            partition.refuse(kind, key, units, now)
            if partition.due_at is not None:
                self._decide(partition, now)

    # -- settings and size

    def change(self, settings: ThroughputSettings, now: float) -> None:
        """Apply new settings. Partitions are added if the settings ask for more, never removed."""
        self.settle(now)
        self.settings = settings
        self._set_limits(now)
        self._grow(settings.partitions(), splits.FOR_CAPACITY, now)

    def hold(self, size_bytes: float, now: float) -> None:
        """Add partitions if the present partitions cannot hold this much data."""
        self._grow(ceil(size_bytes / PARTITION_BYTES), splits.FOR_SIZE, now)

    def _set_limits(self, now: float) -> None:
        """Create or resize the token buckets for reads and writes, according to the settings.

        Reads and writes each have a bucket for the rate. They have a second one for the on-demand
        maximum, if the user set it. An existing bucket is resized and keeps its level; a change of
        the capacity mode replaces the bucket of the rate.
        """
        settings = self.settings
        was_on_demand, self._is_on_demand = self._is_on_demand, settings.on_demand
        if settings.units is not None:
            self.highest = [
                max(self.highest[kind], float(settings.units[kind])) for kind in (READ, WRITE)
            ]
        for kind in (READ, WRITE):
            before = self._rates[kind] if was_on_demand == settings.on_demand else None
            if settings.units is None:
                quota, maximum = settings.quota[kind], settings.maxima[kind]
                self._rates[kind] = _bucket(before, quota, 1.0, 1.0, now)
            else:
                rate, burst = float(settings.units[kind]), settings.initial_burst_seconds
                self._rates[kind] = _bucket(before, rate, BURST_SECONDS, burst, now)
                maximum = None
            self._maxima[kind] = (
                None
                if maximum is None
                else _bucket(self._maxima[kind], float(maximum), BURST_SECONDS, 1.0, now)
            )

    # -- the passing of time

    def settle(self, now: float) -> None:
        """Finish the splits and the growth that began earlier and are due by ``now``."""
        while self._next_at <= now:
            at = self._next_at
            if self._growth and self._growth[0][0] <= at:
                _, wanted = self._growth.pop(0)
                self._grow(wanted, splits.FOR_CAPACITY, at)
            for partition in list(self.partitions):
                if partition.split_at is not None and partition.split_at <= at:
                    self._split(partition, partition.split_at)
            self._schedule()

    def _schedule(self) -> None:
        times = [each.split_at for each in self.partitions if each.split_at is not None]
        if self._growth:
            times.append(self._growth[0][0])
        self._next_at = min(times, default=float("inf"))

    def _end_minute(self, now: float) -> None:
        """End the minute of the whole resource. A new peak of an on-demand table makes it grow."""
        ended = self._minute_ends
        is_higher = False
        for kind, units in ((READ, self._minute_reads), (WRITE, self._minute_writes)):
            average = units / MINUTE_SECONDS
            if average > self.peak[kind]:
                self.peak[kind] = average
                is_higher = True
        is_next = now < ended + MINUTE_SECONDS
        self._minute_ends = (ended if is_next else now) + MINUTE_SECONDS
        self._minute_reads = 0.0
        self._minute_writes = 0.0
        if is_higher and self.settings.on_demand:
            wanted = ceil(
                max(2 * self.peak[kind] / PARTITION_UNITS[kind] for kind in (READ, WRITE)) - 1e-9
            )
            known = self._growth[-1][1] if self._growth else 0
            if wanted > max(known, len(self.partitions)):
                self._growth.append((ended + GROWTH_SECONDS, wanted))
                self.generation += 1
                self._schedule()

    def _decide(self, partition: Partition, now: float) -> None:
        """Begin to split a partition that was hot for two minutes, or record why not."""
        due = partition.due_at
        assert due is not None
        place = self.partitions.index(partition)
        why, cuts = splits.decide(
            partition.sample,
            partition.low,
            self._high(place),
            has_local_index=self.settings.has_local_index,
        )
        partition.cool_down()
        if cuts:
            partition.split_at = due + SPLIT_SECONDS
            partition.planned = PartitionEvent(due, partition.split_at, why, partition.low, cuts)
            self.generation += 1
            self._schedule()
        elif why != partition.kept_because:
            partition.kept_because = why
            self._record(PartitionEvent(due, due, why, partition.low))
            self.generation += 1

    # -- changes to the partitions

    def split(self, key: bytes, now: float) -> None:
        """Split the partition that holds this key at the key, at once. For tests.

        Raises ValueError if a partition starts at this key already.
        """
        self.settle(now)
        partition = self.partition_of(key)
        if partition.low == key:
            raise ValueError("a partition starts at this key already")
        self._cut(partition, PartitionEvent(now, now, splits.BY_TEST, partition.low, (key,)))
        self._schedule()

    def _split(self, partition: Partition, at: float) -> None:
        """Carry out a split that was decided earlier, unless growth has made the cut already."""
        planned = partition.planned
        partition.split_at = None
        assert planned is not None
        high = self._high(self.partitions.index(partition))
        cuts = tuple(
            cut for cut in planned.cuts if cut > partition.low and (high is None or cut < high)
        )
        if cuts:
            event = PartitionEvent(planned.began, at, planned.why, partition.low, cuts)
            self._cut(partition, event)

    def _cut(self, partition: Partition, event: PartitionEvent) -> None:
        place = self.partitions.index(partition)
        parts = [self._part(partition, low) for low in (partition.low, *event.cuts)]
        self._replace([*self.partitions[:place], *parts, *self.partitions[place + 1 :]])
        self._record(event)

    def _part(self, parent: Partition, low: bytes) -> Partition:
        """Return the new partition that a cut of ``parent`` at the key ``low`` creates.

        It inherits the units that the parent has used in the current second.
        """
        part = Partition(low)
        for kind in (READ, WRITE):
            before, meter = parent.meter(kind), part.meter(kind)
            meter.used, meter.second = before.used, before.second
        return part

    def _grow(self, wanted: int, why: str, now: float) -> None:
        """Cut the widest partitions in the middle until there are ``wanted`` partitions.

        ``why`` is recorded as the reason.
        """
        while len(self.partitions) < wanted:
            place = max(
                range(len(self.partitions)),
                key=lambda at: (splits.width(self.partitions[at].low, self._high(at)), -at),
            )
            partition = self.partitions[place]
            cut = splits.middle(partition.low, self._high(place))
            if cut is None:
                return
            self._cut(partition, PartitionEvent(now, now, why, partition.low, (cut,)))

    def _high(self, place: int) -> bytes | None:
        """Return the end of a partition's range: the start of the next, or None for the last."""
        return self.lows[place + 1] if place + 1 < len(self.lows) else None

    def _replace(self, partitions: list[Partition]) -> None:
        self.partitions = partitions
        self.lows = [partition.low for partition in partitions]
        self._by_first_byte = []
        self.generation += 1

    def _record(self, event: PartitionEvent) -> None:
        self.events.append(event)
        del self.events[:-EVENTS_KEPT]

    def start_from(self, lows: list[bytes], now: float) -> None:
        """Start with partitions at the given keys, and with one at the lowest possible key.

        Further partitions are added if the settings ask for more.
        """
        self._replace([Partition(low) for low in sorted({b"", *lows})])
        self._grow(self.settings.partitions(), splits.FOR_CAPACITY, now)

    # -- at rest

    def to_json(self, now: float) -> dict[str, Any]:
        """Return what must survive a restart: partitions, their splits, the peak and the burst."""
        self.settle(now)
        return {
            "lows": [partition.low.hex() for partition in self.partitions],
            "planned": [
                [place, *_event_json(partition.planned)]
                for place, partition in enumerate(self.partitions)
                if partition.split_at is not None and partition.planned is not None
            ],
            "peak": self.peak,
            "highest": self.highest,
            "growth": [list(each) for each in self._growth],
            "events": [_event_json(event) for event in self.events],
            "on_demand": self._is_on_demand,
            "levels": [
                None if bucket is None else bucket.level_at(now)
                for bucket in (*self._rates, *self._maxima)
            ],
            "at": now,
        }

    def restore(self, stored: dict[str, Any], now: float) -> None:
        """Restore the state that ``to_json`` returned. Buckets then refill for the time since."""
        self._replace([Partition(bytes.fromhex(low)) for low in stored["lows"]])
        for place, *event in stored["planned"]:
            planned = _event_of(event)
            self.partitions[place].planned = planned
            self.partitions[place].split_at = planned.at
        self.peak = [float(each) for each in stored["peak"]]
        stored_highest = [float(each) for each in stored["highest"]]
        self.highest = [max(pair) for pair in zip(self.highest, stored_highest)]
        self._growth = [(float(at), int(wanted)) for at, wanted in stored["growth"]]
        self.events = [_event_of(event) for event in stored["events"]]
        if stored["on_demand"] == self._is_on_demand:
            for bucket, level in zip((*self._rates, *self._maxima), stored["levels"]):
                if bucket is not None and level is not None:
                    bucket.level, bucket.at = min(bucket.size, float(level)), float(stored["at"])
        self._schedule()
        self._grow(self.settings.partitions(), splits.FOR_CAPACITY, now)
        self.settle(now)


def _bucket(
    before: TokenBucket | None, rate: float, seconds: float, first_seconds: float, now: float
) -> TokenBucket:
    """Return the bucket ``before`` after a resize, or a new bucket if it is None.

    The bucket refills at ``rate``, and holds ``seconds`` of the rate. A new bucket starts with
    ``first_seconds`` of it.
    """
    if before is None:
        return TokenBucket(rate, rate * seconds, rate * first_seconds, now)
    before.resize(rate, rate * seconds, now)
    return before


def even_cuts(count: int) -> list[bytes]:
    """Return the lower bounds of ``count`` partitions that divide the range of hashes evenly."""
    return [b"" if at == 0 else (2**64 * at // count).to_bytes(8, "big") for at in range(count)]


def _event_json(event: PartitionEvent | None) -> list[Any]:
    assert event is not None
    return [event.began, event.at, event.why, event.low.hex(), [cut.hex() for cut in event.cuts]]


def _event_of(stored: list[Any]) -> PartitionEvent:
    began, at, why, low, cuts = stored
    return PartitionEvent(
        float(began),
        float(at),
        str(why),
        bytes.fromhex(low),
        tuple(bytes.fromhex(cut) for cut in cuts),
    )

"""One run of a simulation: second by second, flows of calls against partitions and limits.

The model of ``stator.model.heat`` decides what a partition takes, when it splits and when a table
grows. A run charges it with expected units for sets of keys, not with single requests.

Most seconds are alike. The demand of each partition is computed only if a rate changes or a
partition is added. If every partition has room, all calls pass, and each partition is charged once.
Only short partitions need ``admission.solve``; equal seconds share its result. A partition near its
limit is charged by key, because its keys decide how it splits. A partition far below its limit is
charged in lumps: every few seconds, for all of them at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Final

from stator.design.simulation.admission import SLIGHT, Admission, GroupNodes, LegNodes, solve
from stator.design.simulation.call_shapes import CallShape, HeatPlace
from stator.design.simulation.flows import Flow
from stator.design.simulation.key_sets import KeySet
from stator.model.heat.limits import PARTITION_UNITS, READ, WRITE
from stator.model.heat.resource import ThroughputResource
from stator.model.heat.throttle_cause import KEY_RANGE, ThrottleCause

START: Final = 0.0
KINDS: Final = (READ, WRITE)
_WATCHED: Final = 0.5
"""A partition or a place below this share of its limit is not short. It is charged in lumps."""
_MOST_LUMPED: Final = 30
_HOT: Final = 0.9
"""A partition above this share of its limit is charged by key."""
_HOT_KEYS: Final = 7
_NEARLY_NONE: Final = 1e-9

KeyUnits = dict[str, float]
"""Units a second by the text of a partition key."""


@dataclass(slots=True)
class FlowRecord:
    """The outcome of a flow: how many of its calls were served and refused, and why."""

    name: str
    asked: float = 0.0
    served: float = 0.0
    refused: float = 0.0
    peak: float = 0.0
    reasons: dict[str, float] = field(default_factory=dict)
    asked_by_minute: list[float] = field(default_factory=list)
    refused_by_minute: list[float] = field(default_factory=list)
    first_refused: int | None = None
    last_refused: int | None = None
    last_asked: int = -1


@dataclass(slots=True)
class HeatCell:
    """The units of one partition in one column of the heat map."""

    demand: list[float] = field(default_factory=lambda: [0.0, 0.0])
    refused: float = 0.0


@dataclass(slots=True)
class _Node:
    """A partition, for reads or for writes, or the limits of a table or index.

    ``partition`` is None for limits. ``place`` is the number of the table or index.
    """

    place: int
    kind: int
    partition: int | None


class SimulationRun:
    """Runs flows against resources. ``records``, ``cells`` and ``keys`` hold what happened."""

    def __init__(
        self,
        resources: Mapping[HeatPlace, ThroughputResource],
        flows: Sequence[Flow],
        seconds: int,
        *,
        columns: int,
        seed: int,
    ) -> None:
        self.places = list(resources)
        self.resources = list(resources.values())
        self.flows = flows
        self.seconds = seconds
        self.column_seconds = max(1, -(-seconds // columns))
        self.records = [FlowRecord(flow.shape.name) for flow in flows]
        self.cells: dict[tuple[int, bytes, int], HeatCell] = {}
        self.layouts: list[list[list[bytes]]] = []
        """The lower bounds of partitions at the start of each column, by place."""
        self.keys: dict[tuple[HeatPlace, int], KeyUnits] = {}
        self.charges = 0
        """The number of times that a resource was charged."""
        self._chance = Random(seed)  # noqa: S311 - nothing secret
        self._number = {place: at for at, place in enumerate(self.places)}
        self._changes = [flow.change_times() for flow in flows]
        self._rates = [0.0] * len(flows)
        self._peaks = [0.0] * len(flows)
        self._shapes: list[CallShape | None] = [None] * len(flows)
        self._moving = [False] * len(flows)
        self._partitions: list[int] = []
        self._nodes: list[_Node] = []
        self._first_node: list[int] = []
        self._limit_node: list[int] = []
        self._lows: list[list[bytes]] = []
        self._vectors: list[dict[int, float]] = []
        self._demand: list[float] = []
        self._active: list[int] = []
        self._watched: list[int] = []
        self._watched_limits: list[int] = []
        self._lumps: list[_Lump] = []
        self._since = 0
        self._now_short: _ShortSecond | None = None
        self._hot_keys: dict[int, _HotKeys] = {}
        self._solved: dict[tuple[tuple[int, float], ...], _ShortSecond] = {}
        self._groups: dict[int, list[GroupNodes]] = {}

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        for second in range(self.seconds):
            now = START + second
            for resource in self.resources:
                resource.settle(now)
            if second % 60 == 0 or second % self.column_seconds == 0:
                self._flush(second)  # a stretch of equal seconds lies in one minute and column
            if progress is not None and second % 60 == 0:
                progress(second, self.seconds)
            self._prepare(second)
            if second % self.column_seconds == 0:
                self.layouts.append(self._lows)
            self._step(second, now)
        self._flush(self.seconds)

    # -- nodes and demand

    def _prepare(self, second: int) -> None:
        """Update the nodes, the rates and the demand if anything changes at this second."""
        counts = [len(resource.partitions) for resource in self.resources]
        is_new = counts != self._partitions
        if is_new:
            self._flush(second)
            self._number_nodes(counts)
        has_changed = is_new
        for at, flow in enumerate(self.flows):
            if second in self._changes[at]:
                if flow.shape.kind == "load":
                    self._flush(second)  # its rate depends on what is left
                rate = flow.rate(second)
                if rate != self._rates[at]:
                    self._flush(second)
                    self._rates[at] = rate
                    has_changed = True
            is_moved = self._moving[at] and self._rates[at] > 0
            if is_new or is_moved or flow.shape is not self._shapes[at]:
                self._flush(second)
                self._shapes[at] = flow.shape
                self._moving[at] = _is_moving(flow.shape)
                self._vectors[at] = self._vector(flow)
                self._groups.pop(at, None)
                has_changed = True
        if has_changed:
            self._now_short = None
            self._sum_demand()

    def _number_nodes(self, counts: list[int]) -> None:
        self._partitions = counts
        self._lows = [[each.low for each in resource.partitions] for resource in self.resources]
        self._nodes, self._first_node, self._limit_node = [], [], []
        for place, count in enumerate(counts):
            self._first_node.append(len(self._nodes))
            self._nodes += [_Node(place, kind, at) for kind in KINDS for at in range(count)]
            self._limit_node.append(len(self._nodes))
            self._nodes += [_Node(place, kind, None) for kind in KINDS]
        self._vectors = [{} for _ in self.flows]
        self._groups.clear()

    def _node_shares(
        self, place: int, kind: int, keys: KeySet, progress: float
    ) -> Iterator[tuple[int, float]]:
        first = self._first_node[place] + kind * self._partitions[place]
        for at, share in keys.parts(self._lows[place], progress):
            yield first + at, share

    def _vector(self, flow: Flow) -> dict[int, float]:
        """Return the units that one call of a flow takes from each node, by the node's number."""
        found: dict[int, float] = {}
        for leg in flow.shape.legs:
            place = self._number[leg.place]
            by_set: dict[KeySet, float] = {}
            for group, charged in zip(flow.shape.groups, leg.keys):
                for each in charged:
                    units = group.share * leg.units * each.share
                    by_set[each.keys] = by_set.get(each.keys, 0.0) + units
            for keys, units in by_set.items():
                for node, share in self._node_shares(place, leg.kind, keys, flow.progress):
                    found[node] = found.get(node, 0.0) + units * share
            limit = self._limit_node[place] + leg.kind
            found[limit] = found.get(limit, 0.0) + leg.units
        return found

    def _group_nodes(self, at: int) -> list[GroupNodes]:
        """Return the nodes that the calls of flow number ``at`` are charged to, by value group.

        Only flows that touch a short node need these groups, so they are computed on demand.
        """
        if at not in self._groups:
            flow = self.flows[at]
            found = []
            for number, group in enumerate(flow.shape.groups):
                legs = []
                for leg in flow.shape.legs:
                    place = self._number[leg.place]
                    nodes: dict[int, float] = {}
                    for each in leg.keys[number]:
                        for node, share in self._node_shares(
                            place, leg.kind, each.keys, flow.progress
                        ):
                            nodes[node] = nodes.get(node, 0.0) + share * each.share
                    limit = self._limit_node[place] + leg.kind
                    legs.append(LegNodes(leg.units, tuple(nodes.items()), limit))
                found.append(GroupNodes(group.share, tuple(legs)))
            self._groups[at] = found
        return self._groups[at]

    def _sum_demand(self) -> None:
        demand = [0.0] * len(self._nodes)
        for rate, vector in zip(self._rates, self._vectors):
            if rate:
                for node, units in vector.items():
                    demand[node] += rate * units
        self._demand = demand
        self._active = [
            node
            for node, units in enumerate(demand)
            if units > _NEARLY_NONE and self._nodes[node].partition is not None
        ]
        self._hot_keys.clear()
        self._solved.clear()
        self._choose_watched()
        if any(rate > peak for rate, peak in zip(self._rates, self._peaks)):
            self._peaks = [max(pair) for pair in zip(self._rates, self._peaks)]
            self._note_keys()

    def _choose_watched(self) -> None:
        """Choose the nodes to check every second, and those to charge only every few seconds.

        A node is a partition, or the limits of a table or index. A node near its limit is watched:
        it is checked every second. A partition far below its limit becomes a lump: it is charged
        once every few seconds.
        """
        self._watched, self._lumps = [], []
        self._watched_limits = [
            first + kind
            for place, first in enumerate(self._limit_node)
            for kind in KINDS
            if self._demand[first + kind] > _WATCHED * _limit_rate(self.resources[place], kind)
        ]
        for node in self._active:
            units, at = self._demand[node], self._nodes[node]
            limit = PARTITION_UNITS[at.kind]
            if units > _WATCHED * limit:
                self._watched.append(node)
                continue
            is_exact = self._limit_node[at.place] + at.kind in self._watched_limits
            every = 1 if is_exact else min(_MOST_LUMPED, int(limit / units))
            resource = self.resources[at.place]
            low = self._lows[at.place][at.partition or 0]
            self._lumps.append(_Lump(every, node % every, node, resource, at.kind, low, units))

    def _note_keys(self) -> None:
        """Remember the highest units a second that each key has had so far."""
        now: dict[tuple[HeatPlace, int], KeyUnits] = {}
        for rate, flow in zip(self._rates, self.flows):
            for leg in flow.shape.legs if rate else ():
                units_of = now.setdefault((leg.place, leg.kind), {})
                for group, charged in zip(flow.shape.groups, leg.keys):
                    for each in charged:
                        units = rate * group.share * leg.units * each.share / each.count
                        units_of[each.label] = units_of.get(each.label, 0.0) + units
        for where, found in now.items():
            known = self.keys.setdefault(where, {})
            for label, units in found.items():
                if units > known.get(label, 0.0):
                    known[label] = units

    # -- one second

    def _step(self, second: int, now: float) -> None:
        rooms = self._short_rooms(now)
        short = self._short_second(rooms) if rooms else None
        if short is not self._now_short:
            self._flush(second)
            self._now_short = short
        for lump in self._lumps if short is None else short.lumps:
            if second % lump.every == lump.phase:
                lump.resource.charge(lump.kind, lump.low, lump.units * lump.every, now)
                self.charges += 1
        if short is None:
            for node in self._watched:
                self._charge(node, self._demand[node], 0.0, second, now)
        else:
            for node, served, refused in short.charges:
                self._charge(node, served, refused, second, now)

    def _short_second(self, rooms: dict[int, float]) -> _ShortSecond:
        """Return the result of a second in which some nodes are short.

        ``rooms`` has the units that each short node has left.
        """
        known = tuple((node, round(room, 1)) for node, room in rooms.items())
        if known not in self._solved:
            self._solved[known] = self._solve(rooms)
        return self._solved[known]

    def _solve(self, rooms: dict[int, float]) -> _ShortSecond:
        flows = {
            at: self._group_nodes(at)
            for at, vector in enumerate(self._vectors)
            if self._rates[at] and any(node in vector for node in rooms)
        }
        found = solve(flows, self._rates, rooms)
        touched: dict[int, float] = {}
        for at in flows:
            for node, units in self._vectors[at].items():
                touched[node] = touched.get(node, 0.0) + units * self._rates[at]
        lumped = {lump.node: lump for lump in self._lumps}
        lumps, charges, heat = [], [], []
        for node in self._active:
            served = self._demand[node] - touched.get(node, 0.0) + found.served.get(node, 0.0)
            served, refused = max(0.0, served), found.refused.get(node, 0.0)
            heat.append((node, served + refused, refused))
            lump = lumped.get(node)
            if lump is None or refused > 0:
                charges.append((node, served, refused))
            else:
                lumps.append(replace(lump, units=served))
        return _ShortSecond(found, lumps, charges, heat)

    def _short_rooms(self, now: float) -> dict[int, float]:
        """Return the units that each short node has left.

        A node is short if calls ask it for more units than that.
        """
        rooms: dict[int, float] = {}
        for node in self._watched:
            units, at = self._demand[node], self._nodes[node]
            assert at.partition is not None
            room = self.resources[at.place].partitions[at.partition].meter(at.kind).room(now)
            if units > room + _NEARLY_NONE:
                rooms[node] = room
        for node in self._watched_limits:
            at = self._nodes[node]
            room, _ = self.resources[at.place].tightest_limit(at.kind, now)
            if self._demand[node] > room + _NEARLY_NONE:
                rooms[node] = room
        return rooms

    def _charge(self, node: int, served: float, refused: float, second: int, now: float) -> None:
        """Charge a partition for one second: by key, if it is so hot that it may be split."""
        at = self._nodes[node]
        assert at.partition is not None
        resource = self.resources[at.place]
        low = self._lows[at.place][at.partition]
        if served + refused < _HOT * PARTITION_UNITS[at.kind]:
            resource.charge(at.kind, low, served, now)
            self.charges += 1
            return
        causes = [ThrottleCause(KEY_RANGE, at.kind, resource.index, resource.settings.on_demand)]
        for key, share in self._sampled_keys(node, low, second):
            if served * share > _NEARLY_NONE:
                resource.charge(at.kind, key, served * share, now)
                self.charges += 1
            if refused * share > _NEARLY_NONE:
                resource.refuse(at.kind, key, refused * share, causes, now)

    def _sampled_keys(self, node: int, low: bytes, second: int) -> Iterator[tuple[bytes, float]]:
        """Yield keys that stand for the traffic of a hot partition, each with its share."""
        if node not in self._hot_keys:
            self._hot_keys[node] = self._find_hot_keys(node)
        hot = self._hot_keys[node]
        at = self._nodes[node]
        assert at.partition is not None
        lows = self._lows[at.place]
        high = lows[at.partition + 1] if at.partition + 1 < len(lows) else None
        for keys, share, progress in hot.first:
            yield keys.sample(low, high, second, self._chance, progress), share
        if hot.others:
            wanted = self._chance.random() * hot.sums[-1]
            place = min(bisect_left(hot.sums, wanted), len(hot.others) - 1)
            keys, progress = hot.others[place]
            yield keys.sample(low, high, second, self._chance, progress), hot.sums[-1]

    def _find_hot_keys(self, node: int) -> _HotKeys:
        at = self._nodes[node]
        units_of: dict[tuple[KeySet, float], float] = {}
        for rate, flow, vector in zip(self._rates, self.flows, self._vectors):
            if not rate or node not in vector:
                continue
            for leg in flow.shape.legs:
                if self._number[leg.place] != at.place or leg.kind != at.kind:
                    continue
                for group, charged in zip(flow.shape.groups, leg.keys):
                    for each in charged:
                        for where, share in self._node_shares(
                            at.place, at.kind, each.keys, flow.progress
                        ):
                            if where == node:
                                units = rate * group.share * leg.units * each.share * share
                                known = (each.keys, flow.progress)
                                units_of[known] = units_of.get(known, 0.0) + units
        total = sum(units_of.values())
        ranked = sorted(units_of.items(), key=lambda each: (-each[1], each[0][0].partition))
        first, rest = ranked[:_HOT_KEYS], ranked[_HOT_KEYS:]
        return _HotKeys(
            [(keys, units / total, progress) for (keys, progress), units in first],
            [known for known, _ in rest],
            list(accumulate(units / total for _, units in rest)),
        )

    # -- records

    def _flush(self, second: int) -> None:
        """Record the seconds that have passed before ``second``. All of them are equal.

        The run calls this before anything changes.
        """
        count = second - self._since
        if count <= 0:
            return
        short = self._now_short
        if short is None:
            for node in self._active:
                self._heat(node, self._demand[node] * count, 0.0)
        else:
            for node, demand, refused in short.heat:
                self._heat(node, demand * count, refused * count)
        self._record(count, None if short is None else short.admission)
        self._since = second

    def _heat(self, node: int, demand: float, refused: float) -> None:
        at = self._nodes[node]
        assert at.partition is not None
        where = (at.place, self._lows[at.place][at.partition], self._since // self.column_seconds)
        cell = self.cells.get(where)
        if cell is None:
            cell = self.cells[where] = HeatCell()
        cell.demand[at.kind] += demand
        cell.refused += refused

    def _record(self, count: int, found: Admission | None) -> None:
        """Add ``count`` equal seconds, all in one minute, to the records of flows.

        ``found`` says which shares of the calls passed; it is None if all did.
        """
        second, minute = self._since, self._since // 60
        for at, (rate, record) in enumerate(zip(self._rates, self.records)):
            if len(record.asked_by_minute) <= minute:
                missing = minute + 1 - len(record.asked_by_minute)
                record.asked_by_minute += [0.0] * missing
                record.refused_by_minute += [0.0] * missing
            if not rate:
                continue
            passing = 1.0 if found is None else found.passing.get(at, 1.0)
            calls = rate * count
            record.asked += calls
            record.served += calls * passing
            record.asked_by_minute[minute] += calls
            record.last_asked = second + count - 1
            record.peak = max(record.peak, rate)
            refused = 1.0 - passing
            if found is not None and refused > SLIGHT:
                record.refused += calls * refused
                record.refused_by_minute[minute] += calls * refused
                if record.first_refused is None:
                    record.first_refused = second
                record.last_refused = second + count - 1
                for node, share in found.blame[at].items():
                    reason = self._reason(node, START + second)
                    record.reasons[reason] = record.reasons.get(reason, 0.0) + calls * share
            self.flows[at].settle(calls * passing)

    def _reason(self, node: int, now: float) -> str:
        at = self._nodes[node]
        resource = self.resources[at.place]
        limit = KEY_RANGE if at.partition is not None else resource.tightest_limit(at.kind, now)[1]
        return ThrottleCause(limit, at.kind, resource.index, resource.settings.on_demand).reason


@dataclass(frozen=True, slots=True)
class _HotKeys:
    """The keys of a hot partition: the hottest with their shares, and all others.

    ``sums`` has the cumulative shares of ``others``, by which one of them is drawn at random.
    """

    first: list[tuple[KeySet, float, float]]
    others: list[tuple[KeySet, float]]
    sums: list[float]


@dataclass(frozen=True, slots=True)
class _Lump:
    """A partition that is charged once every few seconds, for all of these seconds at once.

    ``units`` are the units of one second. The partition is charged at each second ``s`` for which
    ``s % every == phase``.
    """

    every: int
    phase: int
    node: int
    resource: ThroughputResource
    kind: int
    low: bytes
    units: float


@dataclass(frozen=True, slots=True)
class _ShortSecond:
    """A second in which some node is short: which calls pass, and each node's units."""

    admission: Admission
    lumps: list[_Lump]
    charges: list[tuple[int, float, float]]
    heat: list[tuple[int, float, float]]


def _limit_rate(resource: ThroughputResource, kind: int) -> float:
    """Return the lowest limit of a table or index, in units a second.

    It is the provisioned capacity, or the smaller of the on-demand maximum and the account's quota.
    ``kind`` says whether reads or writes are limited.
    """
    settings = resource.settings
    if settings.units is not None:
        return settings.units[kind]
    maximum = settings.maxima[kind]
    quota = settings.quota[kind]
    return quota if maximum is None else min(maximum, quota)


def _is_moving(shape: CallShape) -> bool:
    return any(
        each.keys.kind == "cursor" for leg in shape.legs for keys in leg.keys for each in keys
    )

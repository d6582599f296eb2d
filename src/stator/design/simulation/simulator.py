"""``simulate``: a design's declared traffic on its planned keys.

The simulator makes flows of calls from the plan, and tables and indexes from the settings. It runs
the flows, and makes the report from the run. If a key gets more units than a partition serves, the
simulator divides the key's units by what a partition serves. The result is the number of shards
that the key needs, and the simulator runs everything again with that number.

The run starts with new tables: they hold their declared volumes, have had no traffic yet, and no
saved burst. On-demand tables have four partitions, or more if the data or ``warm`` needs them. Auto
scaling of provisioned capacity is not simulated: units stay as declared.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan as plan_of
from stator.design.simulation.call_shapes import CallShape, CallShapes, HeatPlace, sharded_keys
from stator.design.simulation.flows import DeclaredFlow, Flow, LoadFlow
from stator.design.simulation.measured_traffic import MeasuredTraffic
from stator.design.simulation.run import START, FlowRecord, SimulationRun
from stator.design.simulation.simulation import (
    COLUMNS,
    HeatedPlace,
    HeatRow,
    KeyHeat,
    LoadTime,
    PatternHeat,
    ShardCure,
    Simulation,
    SplitRecord,
)
from stator.design.simulation.traffic_shape import BatchWindow, TrafficShape
from stator.errors import ConfigurationError
from stator.model.heat.limits import PARTITION_BYTES, PARTITION_UNITS, READ, WRITE
from stator.model.heat.resource import ThroughputResource, ThroughputSettings
from stator.model.heat.throttle_cause import ACCOUNT_LIMIT, KEY_RANGE, MAXIMUM, PROVISIONED
from stator.model.quantities import amount

SHARD_UTILISATION: Final = 0.8
"""The share of a partition's write units that a shard is planned to use."""
_HEALTHY: Final = 0.005
"""A smaller share of refused calls in the last minute counts as none."""
_ATTEMPTS: Final = 2
_MOST_IDLE: Final = 64
_ROOM: Final = 4.0
"""A table with so many times the partitions that its traffic fills behaves like a larger one."""
_ShardCounts = Mapping[tuple[str, str | None], int]
_KIND_NAMES: Final[dict[int, Literal["read", "write"]]] = {READ: "read", WRITE: "write"}


def simulate(
    design: Declaration,
    traffic: TrafficShape | None = None,
    *,
    plan: Plan | None = None,
    measured: MeasuredTraffic | None = None,
    cures: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Simulate how partitions take the declared traffic of a design.

    ``traffic`` varies the declared rates; without it, they are flat for an hour, or for a day if
    a pattern runs for a part of the day. ``plan`` is used
    instead of a new plan of the design. ``measured`` replaces the declared rates by traffic that
    was measured. With ``cures=False``, numbers of shards are computed but not tried. ``progress``
    is called for each simulated minute, with the number of seconds done and the number of all
    seconds.
    """
    shape = TrafficShape() if traffic is None else traffic
    chosen = plan_of(design) if plan is None else plan
    return _Simulator(design, chosen, shape, measured, progress).simulate(cures=cures)


@dataclass(frozen=True, slots=True)
class _Finished:
    """A finished run, with its flows and their call shapes.

    ``before`` has the number of partitions that each table and index had at the start.
    """

    run: SimulationRun
    flows: Sequence[Flow]
    shapes: Sequence[CallShape]
    before: Mapping[HeatPlace, int]


def _with_windows(shape: TrafficShape, design: Declaration) -> TrafficShape:
    """Return a shape with the windows that the design declares.

    A window that the shape has for a pattern replaces the declared one.
    """
    given = {each.pattern for each in shape.windows}
    declared = tuple(
        BatchWindow(name, each.start, each.end)
        for name, each in design.windows.items()
        if name not in given
    )
    return replace(shape, windows=(*shape.windows, *declared)) if declared else shape


class _Simulator:
    def __init__(
        self,
        design: Declaration,
        plan: Plan,
        shape: TrafficShape,
        measured: MeasuredTraffic | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.progress = progress
        self.design = design
        self.plan = plan
        self.shape = shape = shape if measured is not None else _with_windows(shape, design)
        self.measured = measured
        self.seconds = shape.seconds
        if measured is not None and shape.minutes is None:
            self.seconds = measured.seconds
        self.shards = self._declared_shards()
        self._check_names()

    def _declared_shards(self) -> dict[tuple[str, str | None], int]:
        found: dict[tuple[str, str | None], int] = {}
        for name, shards in self.shape.shards.items():
            _check_name("entity", name, [each.name for each in self.plan.entities])
            found |= sharded_keys(self.plan.entity(name), shards)
        return found

    def _check_names(self) -> None:
        patterns = [each.name for each in self.plan.patterns]
        patterns += [f"writes of {info(each).name}" for each in self.design.declared_writes]
        varied = [each.pattern for each in self.shape.spikes]
        varied += [each.pattern for each in self.shape.windows]
        varied += [each.pattern for each in self.shape.hot]
        varied += [each.pattern for each in self.shape.zipf]
        for name in varied:
            _check_name("pattern", name, patterns)
        for load in self.shape.loads:
            _check_name("entity", load.entity, [each.name for each in self.plan.entities])

    def simulate(self, *, cures: bool) -> Simulation:
        finished = self._run(self.shards)
        wanted = {
            record.name: found
            for record in finished.run.records
            if not self._is_healthy(record) and (found := self._wanted(record, finished))
        }
        verified = self._verified(wanted) if cures and wanted else {}
        chosen = {name: verified.get(name, cure) for name, cure in wanted.items()}
        patterns = [
            self._pattern(record, shape, finished, chosen.get(record.name))
            for record, shape in zip(finished.run.records, finished.shapes)
        ]
        return Simulation(
            self.design.name,
            self.seconds / 60,
            finished.run.column_seconds,
            self.shape.seed,
            tuple(sorted(patterns, key=lambda each: (-each.refused_share, each.name))),
            tuple(self._places(finished)),
            tuple(self._loads(finished)),
            finished.run.charges,
            tuple(self._notes(finished)),
        )

    # -- runs

    def _run(self, shards: _ShardCounts) -> _Finished:
        shapes = CallShapes(self.design, self.plan, self.shape, shards)
        flows: list[Flow] = []
        if self.measured is not None:
            flows += self.measured.flows(shapes, self.seconds)
        else:
            flows += [DeclaredFlow(call, rate, self.shape) for call, rate in shapes.declared()]
        flows += [
            LoadFlow(shapes.load(each.entity, is_shuffled=each.is_shuffled), each, self.seconds)
            for each in self.shape.loads
        ]
        peaks: dict[HeatPlace, float] = {}
        for flow in flows:
            for leg in flow.shape.legs:
                busy = flow.peak() * leg.units / PARTITION_UNITS[leg.kind]
                peaks[leg.place] = peaks.get(leg.place, 0.0) + busy
        resources, before = self._resources(shapes, peaks)
        run = SimulationRun(resources, flows, self.seconds, columns=COLUMNS, seed=self.shape.seed)
        run.run(self.progress)
        return _Finished(run, flows, [flow.shape for flow in flows], before)

    def _resources(
        self, shapes: CallShapes, peaks: Mapping[HeatPlace, float]
    ) -> tuple[dict[HeatPlace, ThroughputResource], dict[HeatPlace, int]]:
        """Return the tables and indexes, and how many partitions each starts with.

        ``peaks`` has the number of partitions that each place needs for its peak, if traffic is
        even. A table of many terabytes has thousands of partitions. If most of them would be idle,
        only some are simulated; the returned number still counts all.
        """
        places: dict[HeatPlace, bool] = {}
        for table in self.plan.tables:
            has_local = any(index.kind == "LSI" for index in table.indexes)
            places[table.name, None] = has_local
            for index in table.indexes:
                if index.kind == "GSI":
                    places[table.name, index.name] = False
        places[shapes.own_table, None] = False
        sizes: dict[HeatPlace, float] = {}
        for stored in shapes.workload.stored:
            place = (stored.table, None if stored.is_local else stored.index)
            sizes[place] = sizes.get(place, 0.0) + float(stored.stored_bytes)
        found, counts = {}, {}
        for place, has_local in places.items():
            settings = self._settings(place, has_local)
            held = math.ceil(sizes.get(place, 0.0) / PARTITION_BYTES)
            counts[place] = max(settings.partitions(), held)
            enough = max(_MOST_IDLE, math.ceil(_ROOM * peaks.get(place, 0.0)))
            needed = max(settings.partitions(), min(held, enough))
            read, write = settings.warm
            warm = (read, max(write, needed * PARTITION_UNITS[WRITE]))
            found[place] = ThroughputResource(replace(settings, warm=warm), START, index=place[1])
        return found, counts

    def _settings(self, place: HeatPlace, has_local: bool) -> ThroughputSettings:
        declared = None if self.design.settings is None else self.design.settings.capacity
        units = None
        if declared is not None:
            own = declared if place[1] is None else declared.of_index(place[1])
            units = (float(own.read_units), float(own.write_units))
        return ThroughputSettings(
            units=units,
            maxima=(None, None) if units or not self.shape.maximum else self.shape.maximum,
            warm=self.shape.warm or (0.0, 0.0),
            has_local_index=has_local,
        )

    # -- cures

    def _is_healthy(self, record: FlowRecord) -> bool:
        """Whether hardly any calls are refused at the end, or whether the load is done."""
        for load in self.shape.loads:
            if record.name == f"load of {load.entity}":
                return record.served >= load.items * (1 - 1e-6)
        return _steady_refused(record) <= _HEALTHY

    def _wanted(self, record: FlowRecord, finished: _Finished) -> ShardCure | None:
        """Return the number of shards that a pattern needs, or None.

        Returns None unless calls of the pattern are refused because of a hot key.
        """
        if not any(reason.endswith(KEY_RANGE) for reason in record.reasons):
            return None
        shape = next(each for each in finished.shapes if each.name == record.name)
        hottest = _hottest(shape, finished.run)
        if hottest is None or hottest.units <= hottest.limit:
            return None
        entity = self._entity_of(record.name, hottest)
        if entity is None:
            return None
        shapes = CallShapes(self.design, self.plan, self.shape, self.shards)
        now = shapes.shards_now(entity, hottest.index)
        room = hottest.limit * (SHARD_UTILISATION if hottest.kind == "write" else 1.0)
        shards = now * max(2, math.ceil(hottest.units / room - 1e-9))
        return ShardCure(entity, hottest.table, hottest.index, shards, is_verified=False)

    def _entity_of(self, pattern: str, key: KeyHeat) -> str | None:
        """Return the entity to which a hot key belongs, or None if there is none.

        It is the first entity of the pattern that has a key in the same table or index.
        """
        names: list[str] = []
        for each in self.plan.patterns:
            if each.name == pattern:
                names += [name for step in each.steps for name in step.entities]
        names += [each.name for each in self.plan.entities if pattern.endswith(f" of {each.name}")]
        for name in names:
            plan = self.plan.entity(name)
            if plan.table == key.table and any(own.index == key.index for own in plan.keys):
                return name
        return None

    def _verified(self, wanted: Mapping[str, ShardCure]) -> dict[str, ShardCure]:
        """Run again with the shards of all cures, and add shards if they are too few.

        A cure that ends the refusals of its pattern is marked as verified. A cure that never ends
        them keeps the number of shards in ``wanted``.
        """
        cures = dict(wanted)
        open_names = set(cures)
        for _ in range(_ATTEMPTS):
            shards = dict(self.shards)
            for cure in cures.values():
                place = (cure.entity, cure.index)
                shards[place] = max(shards.get(place, 1), cure.shards)
            run = self._run(shards).run
            healthy = {record.name for record in run.records if self._is_healthy(record)}
            for name in open_names & healthy:
                cures[name] = _with_shards(cures[name], cures[name].shards, is_verified=True)
            open_names -= healthy
            if not open_names:
                break
            for name in open_names:
                more = math.ceil(cures[name].shards * 1.25)
                cures[name] = _with_shards(cures[name], more, is_verified=False)
        for name in open_names:
            cures[name] = wanted[name]
        return cures

    # -- the report

    def _pattern(
        self, record: FlowRecord, shape: CallShape, finished: _Finished, cure: ShardCure | None
    ) -> PatternHeat:
        hottest = _hottest(shape, finished.run)
        healthy = self._is_healthy(record)
        after: float | None = None
        if record.first_refused is None:
            after = 0.0
        elif healthy and record.last_refused is not None:
            after = round((record.last_refused + 1) / 60, 1)
        first = record.first_refused
        return PatternHeat(
            record.name,
            shape.kind,
            record.asked / self.seconds,
            record.peak,
            record.asked,
            record.refused,
            {
                reason: calls / record.asked
                for reason, calls in sorted(record.reasons.items(), key=lambda each: -each[1])
            },
            _steady_refused(record),
            None if first is None else round(first / 60, 1),
            after,
            hottest,
            cure,
            self._advice(record, hottest, cure, after, finished),
        )

    def _adapts(self, cure: ShardCure) -> bool:
        """Whether the shards of the key follow the traffic, which a simulation does not show."""
        return any(
            part.adaptive
            for key in self.plan.entity(cure.entity).keys
            if key.index == cure.index
            for part in key.template.parts
        )

    def _advice(
        self,
        record: FlowRecord,
        hottest: KeyHeat | None,
        cure: ShardCure | None,
        after: float | None,
        finished: _Finished,
    ) -> str:
        if record.first_refused is None:
            return ""
        reason = max(record.reasons, key=lambda each: record.reasons[each])
        if reason.endswith(KEY_RANGE) and any(
            record.name == f"load of {load.entity}" and not load.is_shuffled
            for load in self.shape.loads
        ):
            return "load the items in shuffled order"
        if cure is not None:
            where = cure.entity if cure.index is None else f"{cure.entity} in {cure.index}"
            found = f"spread each key of {where} over {cure.shards} shards"
            if self._adapts(cure):
                return f"{found}; its shards are adaptive, so programs do this while they run"
            return found if cure.is_verified or after is not None else f"{found}, or change the key"
        if reason.endswith(KEY_RANGE):
            if after is None:
                return (
                    "busy keys share a partition, and no split separates them in time; shard them"
                )
            return "splits cure it; warm throughput avoids it"
        if reason.endswith(PROVISIONED):
            return f"provision more: {self._asked_units(record.name, finished)}"
        if reason.endswith(MAXIMUM):
            return "raise the on-demand maximum"
        assert reason.endswith(ACCOUNT_LIMIT)
        return "ask AWS for a higher quota of the table"

    def _asked_units(self, name: str, finished: _Finished) -> str:
        """Return a text on the units that all patterns ask of one pattern's tables and indexes.

        ``name`` is that pattern. Only places with fewer provisioned units are named.
        """
        shape = next(each for each in finished.shapes if each.name == name)
        found = []
        for leg in shape.legs:
            settings = finished.run.resources[finished.run.places.index(leg.place)].settings
            asked = sum(
                record.peak * other.units
                for record, each in zip(finished.run.records, finished.shapes)
                for other in each.legs
                if (other.place, other.kind) == (leg.place, leg.kind)
            )
            if settings.units is not None and asked > settings.units[leg.kind]:
                found.append(
                    f"{amount(math.ceil(asked))} {_KIND_NAMES[leg.kind]} units of "
                    f"{leg.place[1] or leg.place[0]}"
                )
        return " and ".join(dict.fromkeys(found)) or "a burst empties the saved units"

    def _notes(self, finished: _Finished) -> Iterable[str]:
        """Yield a note for each place whose declared scaling is left out."""
        declared = None if self.design.settings is None else self.design.settings.capacity
        if declared is None:
            return
        used = {place for place, _, _ in finished.run.cells}
        for at, (table, index) in enumerate(finished.run.places):
            if at not in used:
                continue
            own = declared if index is None else declared.of_index(index)
            for dimension, least, most in own.scaled:
                scheduled = " with its schedule" if own.schedule(dimension) else ""
                yield (
                    f"{index or table}: scaling to {amount(most)} {dimension.lower()} units"
                    f"{scheduled} is not simulated; the units stay at {amount(least)}"
                )

    def _places(self, finished: _Finished) -> Iterable[HeatedPlace]:
        run = finished.run
        for at, (place, resource) in enumerate(zip(run.places, run.resources)):
            if not any(where == at for where, _, _ in run.cells):
                continue
            count, splits = finished.before[place], []
            for event in sorted(resource.events, key=lambda each: each.at):
                count += len(event.cuts)
                minute = round((event.at - START) / 60, 1)
                splits.append(SplitRecord(minute, event.why, event.is_split, count))
            settings = resource.settings
            capacity = "on-demand"
            if settings.units is not None:
                read, write = settings.units
                capacity = f"{amount(read)} read and {amount(write)} write units"
            yield HeatedPlace(
                *place,
                capacity,
                finished.before[place],
                count,
                tuple(splits),
                tuple(self._rows(at, resource, run)),
            )

    def _rows(self, at: int, resource: ThroughputResource, run: SimulationRun) -> Iterable[HeatRow]:
        for partition in resource.partitions:
            heat, refused = [], []
            for column, layout in enumerate(run.layouts):
                # Before it was split off, the partition was a part of another.
                low = layout[at][bisect_right(layout[at], partition.low) - 1]
                cell = run.cells.get((at, low, column))
                seconds = min(run.column_seconds, self.seconds - column * run.column_seconds)
                demand = [0.0, 0.0] if cell is None else cell.demand
                heat.append(
                    max(units / seconds / limit for units, limit in zip(demand, PARTITION_UNITS))
                )
                total = sum(demand)
                refused.append(cell.refused / total if cell is not None and total else 0.0)
            yield HeatRow(tuple(heat), tuple(refused))

    def _loads(self, finished: _Finished) -> Iterable[LoadTime]:
        for load in self.shape.loads:
            record = next(
                each for each in finished.run.records if each.name == f"load of {load.entity}"
            )
            is_done = record.served >= load.items * (1 - 1e-6)
            yield LoadTime(
                load.entity,
                load.items,
                min(load.items, record.served),
                float(record.last_asked + 1) if is_done else None,
                load.items / load.per_second,
            )


def _steady_refused(record: FlowRecord) -> float:
    """Return the share of refused calls in the last minute that had any calls."""
    for asked, refused in zip(reversed(record.asked_by_minute), reversed(record.refused_by_minute)):
        if asked > 0:
            return refused / asked
    return 0.0


def _hottest(shape: CallShape, run: SimulationRun) -> KeyHeat | None:
    """Return the hottest key of a call shape, compared with what one partition serves."""
    found: KeyHeat | None = None
    for leg in shape.legs:
        units_of = run.keys.get((leg.place, leg.kind), {})
        limit = PARTITION_UNITS[leg.kind]
        for label in sorted({each.label for charged in leg.keys for each in charged}):
            units = units_of.get(label, 0.0)
            if found is None or units / limit > found.units / found.limit:
                found = KeyHeat(*leg.place, _KIND_NAMES[leg.kind], label, units, limit)
    return found


def _with_shards(cure: ShardCure, shards: int, *, is_verified: bool) -> ShardCure:
    return ShardCure(cure.entity, cure.table, cure.index, shards, is_verified)


def _check_name(kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ConfigurationError(
            f"the design has no {kind} {name}", hint=f"it has {', '.join(known) or 'none'}"
        )

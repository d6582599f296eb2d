"""A staged change of capacity: the exact calls, what AWS would refuse, and a record to undo it.

``stage`` compares what a table has with what it should have and returns the calls, in the order in
which AWS accepts them: scaling that ends, the table class, the billing mode and the units of the
table and of all its indexes in one UpdateTable, maxima, and then scaling that begins. A switch of
the billing mode alone would leave indexes with no units, and scaling that fights it.

``apply_change`` writes the record first and then sends the calls, waiting for the table after each
UpdateTable. The record holds the state before; staging from the state after to that state undoes
the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from stator.clock import Clock
from stator.errors import ConfigurationError, LiveTableUnreachable
from stator.model.scaling.billing_switches import SWITCHES_TO_ON_DEMAND, next_switch_at
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.live_table import MAXIMA, UNITS, LiveTable, describe_live
from stator.ops.capacity.scaling_registry import metric_name, policy_name, target_members
from stator.ops.capacity.service_calls import call
from stator.ops.capacity.use_series import KINDS, Dimension

Service = Literal["dynamodb", "application-autoscaling"]

_CLASSES: Final = {"standard": "STANDARD", "infrequent_access": "STANDARD_INFREQUENT_ACCESS"}
_POLL_SECONDS: Final = 2.0
_RECORD_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class StagedCall:
    """One call to AWS that a change will make: a description in words, and the exact request."""

    service: Service
    operation: str
    parameters: dict[str, Any]
    why: str

    def to_data(self) -> dict[str, Any]:
        """Return the call as JSON-ready data."""
        return {
            "service": self.service,
            "operation": self.operation,
            "parameters": self.parameters,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class StagedChange:
    """The calls that lead a table from one state to another, and why AWS would refuse them now."""

    before: CapacityState
    after: CapacityState
    calls: tuple[StagedCall, ...]
    refusals: tuple[str, ...] = ()

    @property
    def switches_to_on_demand(self) -> bool:
        """Whether this is one of the four switches that AWS allows in 24 hours."""
        return self.before.is_provisioned and not self.after.is_provisioned

    def to_data(self) -> dict[str, Any]:
        """Return the change as JSON-ready data."""
        return {
            "table": self.before.table,
            "calls": [each.to_data() for each in self.calls],
            "refusals": list(self.refusals),
        }


def stage(
    live: LiveTable,
    before: CapacityState,
    after: CapacityState,
    now: float,
    switches: Iterable[float] = (),
) -> StagedChange:
    """Return the change from the present capacity of a table to the wanted one.

    ``switches`` are known earlier switches to on-demand. AWS itself reports only the last one.
    """
    calls = tuple(_calls(before, after))
    return StagedChange(
        before, after, calls, tuple(_refusals(live, before, after, calls, now, switches))
    )


# --- the calls ------------------------------------------------------------------------------------


def _calls(before: CapacityState, after: CapacityState) -> Iterator[StagedCall]:
    table = after.table
    for dimension, scaled in before.scaling.items():
        if dimension not in after.scaling:
            yield from _end_scaling(table, dimension, scaled)
    if before.table_class != after.table_class:
        yield _update(table, {"TableClass": _CLASSES[after.table_class]}, "change the table class")
    yield from _capacity_calls(before, after)
    for dimension, scaled in after.scaling.items():
        yield from _begin_scaling(table, dimension, before.scaling.get(dimension), scaled)


def _update(table: str, members: dict[str, Any], why: str) -> StagedCall:
    return StagedCall("dynamodb", "update_table", {"TableName": table, **members}, why)


def _capacity_calls(before: CapacityState, after: CapacityState) -> Iterator[StagedCall]:
    table = after.table
    if after.is_provisioned:
        members = _units_members(before, after)
        if not before.is_provisioned:
            yield _update(table, {"BillingMode": "PROVISIONED", **members}, "switch to provisioned")
        elif members:
            yield _update(table, members, "change the provisioned units")
        return
    if before.is_provisioned:
        yield _update(table, {"BillingMode": "PAY_PER_REQUEST"}, "switch to on-demand")
    # A switch removes all maxima, so afterwards there are none to lift.
    there = {} if before.is_provisioned else before.maxima
    yield from _maxima_calls(table, there, after.maxima)


def _units_members(before: CapacityState, after: CapacityState) -> dict[str, Any]:
    """Return the members that set units of the table and of all indexes that change."""
    members: dict[str, Any] = {}
    updates = []
    for index in dict.fromkeys(each.index for each in after.units):
        units = {kind: after.units[Dimension(index, kind)] for kind in KINDS}
        if units == {kind: before.units.get(Dimension(index, kind)) for kind in KINDS}:
            continue
        throughput = {"ProvisionedThroughput": {UNITS[kind]: units[kind] for kind in KINDS}}
        if index is None:
            members |= throughput
        else:
            updates.append({"Update": {"IndexName": index, **throughput}})
    return {**members, **({"GlobalSecondaryIndexUpdates": updates} if updates else {})}


def _maxima_calls(
    table: str, before: Mapping[Dimension, int], after: Mapping[Dimension, int]
) -> Iterator[StagedCall]:
    """Yield calls that set or lift on-demand maxima; -1 lifts one."""
    changed = {each for each in {*before, *after} if before.get(each) != after.get(each)}
    own = {
        index: {
            "OnDemandThroughput": {
                MAXIMA[each.kind]: after.get(each, -1)
                for each in sorted(changed, key=lambda one: one.kind)
                if each.index == index
            }
        }
        for index in {each.index for each in changed}
    }
    if None in own:
        yield _update(table, own.pop(None), "change the on-demand maximum")
    if own:
        updates = [{"Update": {"IndexName": name, **own[name]}} for name in sorted(map(str, own))]
        yield _update(
            table, {"GlobalSecondaryIndexUpdates": updates}, "change the maxima of indexes"
        )


def _scaling_call(operation: str, members: dict[str, Any], why: str) -> StagedCall:
    return StagedCall("application-autoscaling", operation, members, why)


def _end_scaling(table: str, dimension: Dimension, scaled: ScaledDimension) -> Iterator[StagedCall]:
    members = target_members(table, dimension)
    for action in scaled.actions:
        yield _scaling_call(
            "delete_scheduled_action",
            {**members, "ScheduledActionName": action.name},
            f"end the schedule of the {dimension}",
        )
    if scaled.tracking is not None:
        name = scaled.policy_name or policy_name(table, dimension)
        yield _scaling_call(
            "delete_scaling_policy", {**members, "PolicyName": name}, f"end the {dimension}' target"
        )
    yield _scaling_call(
        "deregister_scalable_target", dict(members), f"stop scaling the {dimension}"
    )


def _begin_scaling(
    table: str, dimension: Dimension, before: ScaledDimension | None, scaled: ScaledDimension
) -> Iterator[StagedCall]:
    members = target_members(table, dimension)
    if before is None or before.bounds != scaled.bounds:
        bounds = {"MinCapacity": scaled.bounds.least, "MaxCapacity": scaled.bounds.most}
        yield _scaling_call(
            "register_scalable_target",
            {**members, **bounds},
            f"scale the {dimension} from {scaled.bounds.least:,} to {scaled.bounds.most:,}",
        )
    tracking = scaled.tracking
    if tracking is None and before is not None and before.tracking is not None:
        name = before.policy_name or policy_name(table, dimension)
        yield _scaling_call(
            "delete_scaling_policy", {**members, "PolicyName": name}, f"end the {dimension}' target"
        )
    if tracking is not None and (before is None or before.tracking != tracking):
        there = before.policy_name if before is not None else ""
        yield _scaling_call(
            "put_scaling_policy",
            {
                **members,
                "PolicyName": there or scaled.policy_name or policy_name(table, dimension),
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": {
                    "TargetValue": tracking.target_percent,
                    "PredefinedMetricSpecification": {
                        "PredefinedMetricType": metric_name(dimension)
                    },
                    "ScaleOutCooldown": int(tracking.scale_out_cooldown_seconds),
                    "ScaleInCooldown": int(tracking.scale_in_cooldown_seconds),
                    "DisableScaleIn": not tracking.can_scale_in,
                },
            },
            f"keep the {dimension} {tracking.target_percent:g} % used",
        )
    yield from _schedule_calls(members, dimension, before, scaled)


def _schedule_calls(
    members: dict[str, str],
    dimension: Dimension,
    before: ScaledDimension | None,
    scaled: ScaledDimension,
) -> Iterator[StagedCall]:
    there = {} if before is None else {each.name: each for each in before.actions}
    wanted = {each.name: each for each in scaled.actions}
    for name in there.keys() - wanted.keys():
        yield _scaling_call(
            "delete_scheduled_action",
            {**members, "ScheduledActionName": name},
            f"end {name} of the {dimension}",
        )
    for name, action in wanted.items():
        if there.get(name) == action:
            continue
        bounds = {"MinCapacity": action.least, "MaxCapacity": action.most}
        bounds = {member: value for member, value in bounds.items() if value is not None}
        times = {"StartTime": action.start, "EndTime": action.end}
        said = " and ".join(f"{member[:3].lower()} {value:,}" for member, value in bounds.items())
        yield _scaling_call(
            "put_scheduled_action",
            {
                **members,
                "ScheduledActionName": name,
                "Schedule": action.schedule,
                "Timezone": action.timezone,
                "ScalableTargetAction": bounds,
                **{
                    member: datetime.fromtimestamp(at, UTC).isoformat()
                    for member, at in times.items()
                    if at is not None
                },
            },
            f"{said} for the {dimension} at {action.schedule}",
        )


# --- what AWS would refuse ------------------------------------------------------------------------


def _refusals(
    live: LiveTable,
    before: CapacityState,
    after: CapacityState,
    calls: tuple[StagedCall, ...],
    now: float,
    switches: Iterable[float],
) -> Iterator[str]:
    updates = [each for each in calls if each.operation == "update_table"]
    if not live.is_active and updates:
        yield f"{live.name} is being changed: wait until it and its indexes are ACTIVE"
    if live.is_replicated and calls:
        yield (
            f"{live.name} is a global table: its replicas must have the same capacity, which this "
            "does not set"
        )
    yield from _switch_refusals(live, before, after, now, switches)
    if before.is_provisioned and after.is_provisioned:
        yield from _decrease_refusals(live, before, after, now)


def _switch_refusals(
    live: LiveTable,
    before: CapacityState,
    after: CapacityState,
    now: float,
    switches: Iterable[float],
) -> Iterator[str]:
    if before.is_provisioned == after.is_provisioned:
        return
    known = {round(at) for at in switches}
    if live.switched_at is not None:
        known.add(round(live.switched_at))
    allowed = next_switch_at(known, now)
    if allowed <= now:
        return
    when = datetime.fromtimestamp(allowed, UTC).strftime("%Y-%m-%d %H:%M UTC")
    often = f"{live.name} was switched to on-demand {SWITCHES_TO_ON_DEMAND} times in 24 hours"
    if after.is_provisioned:
        yield f"{often}: a switch to provisioned could not be undone before {when}"
    else:
        yield f"{often}: AWS refuses another switch before {when}"


def _decrease_refusals(
    live: LiveTable, before: CapacityState, after: CapacityState, now: float
) -> Iterator[str]:
    for index in dict.fromkeys(each.index for each in after.units):
        falls = any(
            after.units[Dimension(index, kind)] < before.units.get(Dimension(index, kind), 0)
            for kind in KINDS
        )
        record = live.decreases.get(index)
        if not falls or record is None or record.allows(now):
            continue
        when = datetime.fromtimestamp(record.next_at(now), UTC).strftime("%H:%M UTC")
        where = live.name if index is None else f"{live.name}/{index}"
        count = record.today(now)
        yield f"the units of {where} were decreased {count} times today: wait until {when}"


# --- carrying it out ------------------------------------------------------------------------------


def apply_change(
    change: StagedChange,
    clients: Mapping[Service, Any],
    record: Path,
    clock: Clock,
    *,
    done: Callable[[StagedCall], None] = lambda call: None,
    timeout_seconds: float = 900.0,
) -> None:
    """Write the record of a change, and then carry it out.

    Raises ConfigurationError if AWS would refuse it, before anything is changed. If a call fails
    half way, the record undoes what was done.
    """
    if change.refusals:
        raise ConfigurationError(
            f"{change.before.table} is not changed: {'; '.join(change.refusals)}",
            hint="apply the change later",
        )
    write_record(record, change, clock.now())
    for each in change.calls:
        try:
            call(clients[each.service], each.operation, **each.parameters)
        except LiveTableUnreachable as error:
            raise LiveTableUnreachable(
                error.message, hint=f"undo what was done with --undo {record}"
            ) from None
        done(each)
        if each.operation == "update_table":
            _wait(clients["dynamodb"], change.after.table, clock, timeout_seconds)


def _wait(client: Any, table: str, clock: Clock, timeout_seconds: float) -> None:
    """Wait until a table and its indexes are ACTIVE: AWS takes one change at a time."""
    until = clock.now() + timeout_seconds
    while not describe_live(client, table).is_active:
        if clock.now() >= until:
            raise LiveTableUnreachable(
                f"{table} was not ACTIVE after {timeout_seconds:g} seconds",
                hint="look at it in the console; the change can be undone with its record",
            )
        clock.sleep(_POLL_SECONDS)


def write_record(path: Path, change: StagedChange, now: float) -> None:
    """Write the capacity that a table had before a change to a record file."""
    data = {
        "format": _RECORD_FORMAT,
        "at": now,
        "switched_to_on_demand": change.switches_to_on_demand,
        "before": change.before.to_data(),
        "calls": [each.to_data() for each in change.calls],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def read_record(path: Path) -> CapacityState:
    """Return the state before a change from its record."""
    return CapacityState.from_data(_record(path)["before"])


def _record(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != _RECORD_FORMAT:
            raise ValueError(f"its format is {data['format']}")
        _ = data["before"]["table"], data["switched_to_on_demand"], float(data["at"])
    except KeyError as error:
        raise ConfigurationError(
            f"{path} is not a record of a change: it lacks {error}",
            hint="name a file that stator advise --apply or stator scale --apply wrote",
        ) from None
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{path} is not a record of a change: {error}",
            hint="name a file that stator advise --apply or stator scale --apply wrote",
        ) from None
    return data


def known_switches(folder: Path, table: str) -> list[float]:
    """Return when the records of a folder switched a table to on-demand."""
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            data = _record(path)
        except ConfigurationError:  # another file that happens to lie there
            continue
        if data["before"]["table"] == table and data["switched_to_on_demand"]:
            found.append(float(data["at"]))
    return found

"""Stages and carries out changes of capacity for the commands, and undoes one from its record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer

from stator.cli.capacity.capacity_options import LiveServices
from stator.clock import SystemClock
from stator.ops.capacity.capacity_state import CapacityState
from stator.ops.capacity.live_table import LiveTable
from stator.ops.capacity.scaling_registry import capacity_state
from stator.ops.capacity.staged_change import (
    StagedChange,
    apply_change,
    known_switches,
    read_record,
    stage,
)


def staged(
    services: LiveServices, live: LiveTable, after: CapacityState, records: Path
) -> StagedChange:
    """Return the change from the capacity that a table has to the capacity it should have."""
    before = capacity_state(services.scaling, live)
    return stage(live, before, after, time.time(), known_switches(records, live.name))


def staged_undo(services: LiveServices, record: Path, records: Path) -> StagedChange:
    """Return the change that restores the capacity in the record of an earlier change."""
    wanted = read_record(record)
    (live,) = services.describe([wanted.table])
    return staged(services, live, wanted, records)


def carry_out(services: LiveServices, changes: Sequence[StagedChange], records: Path) -> list[Path]:
    """Carry out changes, and return the records that undo them. Says on stderr what is done."""
    clients = {"dynamodb": services.dynamodb, "application-autoscaling": services.scaling}
    written = []
    for change in changes:
        if not change.calls:
            continue
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%f")
        record = records / f"{change.before.table}-{moment}.json"
        apply_change(
            change,
            clients,  # type: ignore[arg-type]
            record,
            SystemClock(),
            done=lambda each: typer.echo(f"done: {each.why}", err=True),
        )
        typer.echo(f"wrote {record}; undo with --undo {record}", err=True)
        written.append(record)
    return written

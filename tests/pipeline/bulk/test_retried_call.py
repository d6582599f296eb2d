"""The first request of a job: a server that is down is an error at once, in every job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    DeadlineExceeded,
    ReplyDamaged,
    ReplyLost,
    StatorError,
    Throttled,
    Unreachable,
)
from stator.pipeline.bulk.copy import Copy, CopyOptions
from stator.pipeline.bulk.export.sources import table_export
from stator.pipeline.bulk.load.load import load
from stator.pipeline.bulk.targets import BulkTarget

from .stock import ROWS, Through, create, engine_target, stored, target_through, write_lines

Job = Callable[[BulkTarget, BulkTarget, Path, VirtualClock], Any]


def load_into(broken: BulkTarget, _: BulkTarget, folder: Path, clock: VirtualClock) -> Any:
    return load(str(write_lines(folder / "x.jsonl", ROWS)), broken, clock=clock)


def export_from(broken: BulkTarget, _: BulkTarget, folder: Path, clock: VirtualClock) -> Any:
    return table_export(broken, str(folder / "out"), clock=clock).run()


def copy_from(broken: BulkTarget, sound: BulkTarget, folder: Path, clock: VirtualClock) -> Any:
    return Copy(broken, sound, CopyOptions(journal=folder / "journal"), clock=clock).run()


def copy_into(broken: BulkTarget, sound: BulkTarget, folder: Path, clock: VirtualClock) -> Any:
    return Copy(sound, broken, CopyOptions(journal=folder / "journal"), clock=clock).run()


JOBS = [load_into, export_from, copy_from, copy_into]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (Unreachable("no connection to here"), 1),
        (ReplyLost("gone"), 2),
        (ReplyDamaged("no HTTP"), 2),
        (DeadlineExceeded("late"), 2),
    ],
)
def test_a_server_that_is_down_is_an_error_at_once(
    job: Job, error: StatorError, calls: int, tmp_path: Path
) -> None:
    clock = VirtualClock()
    started = clock.now()

    def down(operation: str, request: Any) -> None:
        raise error

    with Engine.open() as engine:
        create(engine)
        transport = Through(engine, down)
        with pytest.raises(Unreachable, match=r"no connection to here|test does not answer"):
            job(target_through(transport), engine_target(engine), tmp_path, clock)
        assert len(transport.operations) == calls
        assert clock.now() == started  # it never waited


@pytest.mark.parametrize("job", JOBS)
def test_a_throttled_first_request_is_retried(job: Job, tmp_path: Path) -> None:
    left = 5

    def throttle(operation: str, request: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            raise Throttled("slow down")

    with Engine.open() as engine, Engine.open() as other:
        create(engine)
        create(other)
        job(
            target_through(Through(engine, throttle)),
            engine_target(other),
            tmp_path,
            VirtualClock(),
        )
        assert left == 0


def test_a_server_that_goes_down_later_is_waited_for(tmp_path: Path) -> None:
    calls = 0

    def down_for_a_while(operation: str, request: Any) -> None:
        nonlocal calls
        calls += 1
        if 2 <= calls <= 6:
            raise Unreachable("no connection")

    with Engine.open() as engine:
        create(engine)
        load_into(
            target_through(Through(engine, down_for_a_while)),
            engine_target(engine),
            tmp_path,
            VirtualClock(),
        )
        assert len(stored(engine)) == 60

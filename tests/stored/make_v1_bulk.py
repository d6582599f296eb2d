"""Makes the bulk jobs of version 1: a load, two exports and a copy, each killed half-way.

``python -m tests.stored.make_v1_bulk FOLDER JOB`` carries one out and kills itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stator.addresses import EngineTransport
from stator.cli.main import main as stator
from stator.pipeline.bulk import exporting, jobs, readers

from .ledger import START
from .shipment import (
    COPY,
    EXPORT_FILE,
    EXPORT_FOLDER,
    LOAD,
    make_table,
    source_items,
    write_input,
)

Place = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """``is_half`` tells by the journal's place whether a job has come far enough."""

    arguments: list[str]
    journal: str
    is_half: Callable[[Place], bool]


def _is_half_exported(place: Place) -> bool:
    """One segment is read to its end, and one is in the middle."""
    pieces = place.get("pieces", {}).values()
    return any(piece["done"] for piece in pieces) and any(
        piece["after"] is not None for piece in pieces
    )


def _is_half_copied(place: Place) -> bool:
    """A segment is in the middle."""
    return any(lane["after"] is not None for lane in place.get("lanes", {}).values())


JOBS = {
    "load": Job(LOAD, "orders.jsonl.orders.journal", lambda place: place.get("row", 0) >= 20),
    "export-folder": Job(EXPORT_FOLDER, "parts/.journal", _is_half_exported),
    "export-file": Job(EXPORT_FILE, "orders.csv.parts/.journal", _is_half_exported),
    "copy": Job(COPY, "copy-orders-orders.journal", _is_half_copied),
}


_SMALL = {"load": ["--shuffle", "12"], "export": [], "copy": ["--write-rate", "10"]}
"""Options that are no part of what a journal compares."""


def make_bulk(folder: Path) -> dict[str, Any]:
    """The places that the journals remember."""
    folder.mkdir()
    write_input(folder / "orders.jsonl")
    os.utime(folder / "orders.jsonl", (START, START))  # the journal compares it
    make_table(folder / "loaded.db", {})
    make_table(folder / "source.db", source_items())
    make_table(folder / "target.db", {})
    places = {}
    for name, job in JOBS.items():
        subprocess.run([sys.executable, "-m", __name__, str(folder), name], check=False)
        places[name] = json.loads((folder / job.journal).read_text())["state"]
        assert job.is_half(places[name]["place"])
    return {"places": places}


def run_to_be_killed(folder: Path, job: Job) -> None:
    """In small and slow steps, with a thread that kills the process half-way."""
    os.chdir(folder)
    readers.BLOCK_ROWS = 10  # type: ignore[misc]
    exporting._PART_PAGES = 1
    jobs._CHECKPOINT_SECONDS = jobs._LOOK_SECONDS = 0.0
    threading.Thread(target=_kill_half_way, args=(job,), daemon=True).start()
    _slow_down()
    stator([*job.arguments, *_SMALL[job.arguments[0]]])


def _slow_down() -> None:
    call = EngineTransport.call

    def slow(self: EngineTransport, operation: str, request: Any, **options: Any) -> Any:
        if operation in ("Scan", "BatchWriteItem"):
            time.sleep(0.15)
        given = {**request, "Limit": 5} if operation == "Scan" else request
        return call(self, operation, given, **options)

    EngineTransport.call = slow  # type: ignore[method-assign]


def _kill_half_way(job: Job) -> None:
    while True:
        time.sleep(0.01)
        if Path(job.journal).exists():
            place = json.loads(Path(job.journal).read_text())["state"]["place"]
            if job.is_half(place):
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run_to_be_killed(Path(sys.argv[1]), JOBS[sys.argv[2]])

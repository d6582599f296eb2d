"""Makes the fixtures of version 1, for the record: ``python -m tests.stored.make_v1``.

Run at the commit of version 0.1.0 that wrote them. Later code stores other bytes, so that a run of
it would make fixtures of its own version.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .make_v1_application import run_to_be_killed
from .make_v1_bulk import make_bulk
from .make_v1_engine import make_closed, work_to_be_killed, write_to_be_killed
from .make_v1_locks import make_locks, make_projects
from .packing import V1, pack, record

KILLED: dict[str, Callable[[Path], dict[str, Any]]] = {
    "engine-killed": write_to_be_killed,
    "engine-unfinished": work_to_be_killed,
    "application": run_to_be_killed,
}


def main() -> None:
    if len(sys.argv) == 3:
        _run_to_be_killed(sys.argv[1], Path(sys.argv[2]))
        return
    V1.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _keep("engine-closed", root / "closed", make_closed(root / "closed"))
        _keep("bulk", root / "bulk", make_bulk(root / "bulk"))
        make_locks(root / "locks")
        pack(root / "locks", V1 / "locks.tar.gz")
        make_projects(root / "projects")
        pack(root / "projects", V1 / "projects.tar.gz")
        for name in KILLED:
            _keep(name, root / name, _killed(name, root / name))


def _killed(name: str, folder: Path) -> dict[str, Any]:
    """What a process of its own wrote before it was killed."""
    folder.mkdir()
    command = [sys.executable, "-m", __spec__.name, name, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    recorded: dict[str, Any] = json.loads(line)
    return recorded


def _run_to_be_killed(name: str, folder: Path) -> None:
    """Report what was recorded, and wait for the end."""
    sys.stdout.write(json.dumps(KILLED[name](folder)) + "\n")
    sys.stdout.flush()
    while True:
        time.sleep(60)


def _keep(name: str, folder: Path, recorded: dict[str, Any]) -> None:
    pack(folder, V1 / f"{name}.tar.gz")
    record(name, recorded)


if __name__ == "__main__":
    main()

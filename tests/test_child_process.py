"""A child ends with its parent, however that ends, and only then."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stator.child_process import _VARIABLE, child_options, end_with_parent
from tests.pipeline.test_work_command import is_running
from tests.pipeline.test_workers import eventually

# A parent that starts one child and waits. The child says when it watches.
PARENT = """
import subprocess, sys, time
from stator.child_process import child_options
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], **child_options())
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD = """
import signal, sys, time
from stator.child_process import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: (open({note!r}, "w").close(), sys.exit(0)))
end_with_parent()
open({ready!r}, "w").close()
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_is_told_to_stop_when_its_parent_is_gone(
    tmp_path: Path, number: signal.Signals
) -> None:
    ready, note = tmp_path / "ready", tmp_path / "told"
    child = CHILD.format(note=str(note), ready=str(ready))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, child], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        eventually(ready.exists)
        assert is_running(pid) and not note.exists()
        parent.send_signal(number)
    eventually(lambda: not is_running(pid))
    assert note.exists()


# The server of the demo, started by a process that is killed.
SERVER = """
import sys, time
from pathlib import Path
from stator.demo.processes import ServerProcess
server = ServerProcess(Path(sys.argv[1]))
print(server._process.pid, flush=True)
time.sleep(60)
"""


def test_the_processes_of_the_demo_end_with_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "data")], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    eventually(lambda: not is_running(pid))


def test_a_process_without_such_a_parent_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_VARIABLE, raising=False)
    end_with_parent()
    for wrong in ("", "x", "987654"):  # no pipe of ours
        monkeypatch.setenv(_VARIABLE, wrong)
        end_with_parent()
    options = child_options({"A": "b"})
    assert options["env"]["A"] == "b" and _VARIABLE in options["env"]

"""Child processes that end when their parent process is gone, even if the parent was killed.

A parent keeps the write end of a pipe open and passes the read end to its children. Nothing is
written to the pipe. When the parent ends in any way, the system closes the write end, and a child
that waits in a read sees the end of the pipe. The child then sends itself SIGTERM, on which
commands finish their current work. If it is still running after a minute, it exits with code 1.

Only commands of Stator watch the pipe: ``end_with_parent`` is called at their start.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

_VARIABLE: Final = "STATOR_PARENT_PIPE"
_DRAIN_SECONDS: Final = 60.0


@cache
def _pipe() -> tuple[int, int]:
    """Return the read end and the write end of the pipe that all children of this process share.

    The write end stays open until this process ends.
    """
    return os.pipe()


def child_options(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return options of ``subprocess.Popen`` for a command of Stator that ends with this process.

    ``environment`` is the child's environment; by default, the environment of this process.
    """
    read_end = _pipe()[0]
    base = os.environ if environment is None else environment
    return {"env": {**base, _VARIABLE: str(read_end)}, "pass_fds": (read_end,)}


def end_with_parent() -> None:
    """Watch the parent from a thread, and stop this process when the parent is gone.

    Does nothing unless the parent started this process with ``child_options``.
    """
    # The variable is removed: processes that this one starts have no such pipe.
    read_end = os.environ.pop(_VARIABLE, "")
    if read_end.isdecimal():
        threading.Thread(target=_watch, args=(int(read_end),), daemon=True).start()


def _watch(read_end: int) -> None:
    try:
        if os.read(read_end, 1):
            return
    except OSError:  # the pipe was not passed on
        return
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_DRAIN_SECONDS)
    os._exit(1)

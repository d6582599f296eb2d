"""Names the process of a rebuild, so that another on the same machine can see whether it has ended.

A process number means something only within one machine and, on Linux, one PID namespace (a
container). The name therefore holds all three, as in ``build-1 pid:[4026531836] 4711``. The answer
may be wrong only in one direction that matters: a number that the system has given to a new process
counts as running. A wrong "ended" would do no harm either, for a builder whose view was taken over
can no longer write.
"""

from __future__ import annotations

import os
import socket


def this_process(number: int | None = None) -> str:
    """Return the name of this process, or of process ``number`` on the same machine."""
    return f"{socket.gethostname()} {_namespace()} {os.getpid() if number is None else number}"


def has_ended(name: str) -> bool:
    """Whether a process is known to have ended. False for processes of other machines."""
    surroundings, _, number = name.rpartition(" ")
    if os.name != "posix" or surroundings != f"{socket.gethostname()} {_namespace()}":
        return False
    try:
        os.kill(int(number), 0)  # signal 0 is not sent; the system only checks
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return False


def shown(name: str) -> str:
    """Return a process's name for a message."""
    host, _, rest = name.partition(" ")
    return f"process {rest.rpartition(' ')[2]} on {host}" if rest else name


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return "-"

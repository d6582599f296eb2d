"""Runs ``stator`` on a terminal of its own, as a person would, or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests import warm_python

from .serving import ENVIRONMENT, TIMEOUT_SECONDS

ROWS: Final = 40


def on_terminal(
    folder: Path, *arguments: str, columns: int = 80, env: dict[str, str] | None = None
) -> str:
    """Return what the command prints on a terminal of so many columns, stdout and stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    printed = bytearray()
    reader = threading.Thread(target=_read, args=(leader, printed))
    reader.start()
    try:
        warm_python.run_with(
            ("-m", "stator", *arguments),
            follower,
            follower,
            follower,
            cwd=folder,
            env={**ENVIRONMENT, "TERM": "xterm-256color", **(env or {})},
            timeout=TIMEOUT_SECONDS,
        )
    finally:
        os.close(follower)
        reader.join()
        os.close(leader)
    return printed.decode().replace("\r\n", "\n")


def _read(leader: int, printed: bytearray) -> None:
    with suppress(OSError):  # the last process that had the terminal open has ended
        while part := os.read(leader, 65536):
            printed += part


def in_pipe(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Return what the command prints in a pipe, stdout and stderr."""
    done = warm_python.run(
        "-m",
        "stator",
        *arguments,
        cwd=folder,
        env={**ENVIRONMENT, **(env or {})},
        merged=True,
        timeout=TIMEOUT_SECONDS,
    )
    return done.stdout

"""Runs ``stator`` on a terminal of its own, as a person would, or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Final

from .serving import ENVIRONMENT, TIMEOUT_SECONDS

ROWS: Final = 40


def on_terminal(
    folder: Path, *arguments: str, columns: int = 80, env: dict[str, str] | None = None
) -> str:
    """Return what the command prints on a terminal of so many columns, stdout and stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "stator", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, "TERM": "xterm-256color", **(env or {})},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    printed = bytearray()
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the last process that had the terminal open has ended
            break
        if not part:
            break
        printed += part
    process.wait(timeout=TIMEOUT_SECONDS)
    os.close(leader)
    return printed.decode().replace("\r\n", "\n")


def in_pipe(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Return what the command prints in a pipe, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "stator", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    return done.stdout

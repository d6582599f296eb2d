"""Gives memory back to the operating system after a flood of large requests.

glibc keeps what a process frees, to use it again. After 250 bodies of 4 MiB that arrived at once,
a server without anything to do kept 250 MB. ``malloc_trim`` gives it back, and takes a few
milliseconds, so it runs when no body has arrived for one sweep. Systems with another C library
are left alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_FLOOD_BYTES = 64 * 1024 * 1024


def _trim() -> None:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # not glibc
        return
    trim(0)


class FreedMemory:
    """Decides, once per sweep, whether the memory of past requests is given back."""

    def __init__(self, trim: Callable[[], None] = _trim) -> None:
        self._trim = trim
        self._trimmed_at = 0
        self._seen = 0

    def sweep(self, arrived_bytes: int, arriving_bytes: int) -> None:
        """Return freed memory to the operating system once a burst of large bodies is over.

        ``arrived_bytes`` is the size of all bodies received since the server started.
        ``arriving_bytes`` is the size of the bodies that are still incomplete.
        """
        is_quiet = arrived_bytes == self._seen and not arriving_bytes
        self._seen = arrived_bytes
        if is_quiet and arrived_bytes - self._trimmed_at >= _FLOOD_BYTES:
            self._trimmed_at = arrived_bytes
            self._trim()

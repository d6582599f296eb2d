"""When a connection that was idle may be used again."""

from __future__ import annotations

import select

_CHECK_AFTER_SECONDS = 1.0
_DROP_AFTER_SECONDS = 20.0


def may_be_used(idle_seconds: float, descriptor: int) -> bool:
    """An idle connection has nothing to read: if it does, the other side has closed it. An event loop that was busy with something else may not have noticed."""
    if idle_seconds < _CHECK_AFTER_SECONDS:
        return True
    if idle_seconds >= _DROP_AFTER_SECONDS or descriptor < 0:
        return False
    watching = select.poll()
    watching.register(descriptor, select.POLLIN)
    return not watching.poll(0)

"""The end of a job that was interrupted: its threads finish their requests, or are cut off."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from stator.transport import Transport

GRACE_SECONDS = 5.0


def end_threads(threads: Sequence[threading.Thread], *transports: Transport | None) -> None:
    """Wait for the threads of a job that must stop, and cut off their requests if needed.

    A request to an endpoint that does not answer could take minutes. After ``GRACE_SECONDS`` the
    transports are therefore closed, which ends their requests. The journal does not count rows
    whose request had no answer, so the next run sends them again.

    Pass None for a transport that others use, too: it stays open, and the threads finish their
    requests. An embedded engine stays open as well, because it always answers.
    """
    deadline = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        for transport in transports:
            if transport is not None and transport.parallel:
                transport.close()
    for thread in threads:
        thread.join()

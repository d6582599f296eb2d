"""Ports for the servers that tests start."""

from __future__ import annotations

import random
import socket

# Linux hands out the ports from 32,768 up to whoever connects, so that a port found free there may
# be a client's a moment later.
_LOWEST, _HIGHEST = 15_000, 32_000
_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on, that no client is given before the server takes it or while it
    is down, and that was not given before."""
    chosen = random.SystemRandom()
    while True:
        port = chosen.randrange(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.add(port)
            return port

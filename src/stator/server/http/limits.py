"""How much one client may take: bytes, seconds, requests ahead of their replies."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerLimits:
    # AWS refuses a body of 16 MiB + 1 byte with status 413. The same bound holds after decompression.
    body_bytes: int = 16 * MEBIBYTE
    head_bytes: int = 64 * 1024
    # Requests of one connection that run before the first of them is answered. More stay unparsed in
    # the socket, so a client that pipelines without reading cannot fill the memory.
    pipelined_requests: int = 64
    # A request must be complete this long after its first byte.
    request_seconds: float = 60.0
    # A client must make room for a reply that does not fit its socket within this time.
    write_seconds: float = 60.0
    # A connection with nothing to do is kept this long.
    idle_seconds: float = 120.0
    # After a refusal (400, 413) the rest of the request is read and thrown away for this long: closing
    # at once would reset the connection, and the client would never see the answer.
    linger_seconds: float = 5.0
    # How often the connections are looked at; every limit in seconds is this coarse.
    sweep_seconds: float = 1.0
    # Replies from this size on are compressed for who accepts it, as on AWS.
    compressed_reply_bytes: int = 4096

"""The server's limits: sizes, times, and the number of pipelined requests."""

from __future__ import annotations

from dataclasses import dataclass

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerLimits:
    # AWS refuses a body of 16 MiB + 1 byte with status 413. The same bound holds after
    # decompression.
    body_bytes: int = 16 * MEBIBYTE
    # All bodies that are still arriving, of all connections. More are refused with status 503.
    arriving_bytes: int = 256 * MEBIBYTE
    # Request line and headers together, and likewise the trailers of a chunked body. AWS refuses
    # heads over 16 KB.
    head_bytes: int = 16 * 1024
    # How many requests of one connection may run before the first is answered. Further ones stay
    # in the socket, so a client that pipelines without reading cannot fill the memory.
    pipelined_requests: int = 64
    # A request must be complete within this time after its first byte.
    request_seconds: float = 60.0
    # A client must read on within this time when a reply does not fit into its socket.
    write_seconds: float = 60.0
    # An idle connection is kept for this time.
    idle_seconds: float = 120.0
    # After a refusal (400, 413) the rest of the request is read and discarded for this time.
    # Closing at once would reset the connection, and the client would never see the reply.
    linger_seconds: float = 5.0
    # On shutdown, a request that is still arriving must be complete within this time. One that is
    # complete is answered.
    shutdown_arrival_seconds: float = 1.0
    # The interval of the sweep, and so the precision of every limit in seconds.
    sweep_seconds: float = 1.0
    # Replies of at least this size are compressed if the client accepts it, as on AWS.
    compressed_reply_bytes: int = 4096

"""A server that answers as it is told: one step of a script for each request."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Step = Callable[["Connection"], None]


@dataclass
class Connection:
    """A request that has been read whole, and the socket to answer on."""

    socket: socket.socket
    head: str
    body: bytes

    def send(self, status: int, body: bytes, *headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


class Closed(Exception):
    pass


def ok(answer: Any = None, *headers: str) -> Step:
    def step(to: Connection) -> None:
        body = json.dumps(answer or {}).encode()
        to.send(200, body, f"x-amz-crc32: {zlib.crc32(body)}", *headers)

    return step


def refuse(code: str, message: str = "no", status: int = 400, *headers: str, **facts: Any) -> Step:
    def step(to: Connection) -> None:
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message} | facts
        to.send(status, json.dumps(body).encode(), *headers)

    return step


def raw(data: bytes, *, close: bool = False, pieces: int = 0) -> Step:
    def step(to: Connection) -> None:
        if pieces:
            for at in range(0, len(data), pieces):
                to.socket.sendall(data[at : at + pieces])
                time.sleep(0.001)
        else:
            to.socket.sendall(data)
        if close:
            raise Closed

    return step


def drop(to: Connection) -> None:
    """Close without an answer."""
    raise Closed


def stall(seconds: float) -> Step:
    def step(to: Connection) -> None:
        time.sleep(seconds)
        raise Closed

    return step


@dataclass
class Scripted:
    url: str
    steps: list[Step]
    requests: list[tuple[str, bytes]] = field(default_factory=list)
    connections: int = 0


@contextmanager
def scripted(*steps: Step) -> Iterator[Scripted]:
    """The last step is repeated for whatever comes after it."""
    state = Scripted("", list(steps))
    lock = threading.Lock()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            state.connections += 1
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = self.request.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                text = head.decode("latin-1")
                length = next(
                    (
                        int(line.split(":")[1])
                        for line in text.split("\r\n")
                        if line.lower().startswith("content-length")
                    ),
                    0,
                )
                while len(data) < length:
                    data += self.request.recv(65536)
                body, data = data[:length], data[length:]
                with lock:
                    state.requests.append((text, body))
                    step = state.steps.pop(0) if len(state.steps) > 1 else state.steps[0]
                try:
                    step(Connection(self.request, text, body))
                except (Closed, OSError):
                    return

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()

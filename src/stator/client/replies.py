"""Parses HTTP/1.1 replies as they arrive: a status, a few headers, and a body in any framing."""

from __future__ import annotations

from dataclasses import dataclass

from stator.errors import ReplyDamaged


@dataclass(slots=True)
class HttpReply:
    status: int
    head: bytes
    """The status line and headers in lower case, without the blank line."""
    body: bytes
    keeps_alive: bool

    def header(self, name: bytes) -> bytes | None:
        return header(self.head, name)


def header(head: bytes, name: bytes) -> bytes | None:
    at = head.find(b"\r\n" + name + b":")
    if at < 0:
        return None
    start = at + len(name) + 3
    end = head.find(b"\r\n", start)
    return head[start : end if end >= 0 else None].strip()


class ReplyParser:
    """Parses one reply. ``feed`` returns it once it is complete."""

    __slots__ = ("_data", "_end", "_head", "_is_chunked", "_status", "started", "until_closed")

    def __init__(self) -> None:
        self._data = b""
        self._head: bytes | None = None
        self._status = 0
        self._end = 0
        self._is_chunked = False
        self.until_closed = False
        self.started = False

    def feed(self, data: bytes) -> HttpReply | None:
        self.started = True
        self._data = self._data + data if self._data else data
        if self._head is None and not self._read_head():
            return None
        if self._is_chunked:
            return self._chunked()
        if self.until_closed or len(self._data) < self._end:
            return None
        return self._reply(self._data[: self._end])

    def closed(self) -> HttpReply | None:
        """Return the reply if the end of the connection completes it, else None.

        Only a body without a stated length ends with its connection.
        """
        return (
            self._reply(self._data, keeps_alive=False)
            if self._head is not None and self.until_closed
            else None
        )

    def _read_head(self) -> bool:
        while True:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return False
            raw = self._data[:end]
            self._data = self._data[end + 4 :]
            try:
                self._status = int(raw[9:12])
            except ValueError:
                raise ReplyDamaged(f"the reply is not HTTP: {raw[:40]!r}") from None
            if self._status >= 200:
                break  # an interim reply (100 Continue) has no body; the final one follows
        self._head = raw.lower()
        self._is_chunked = (
            b"\r\ntransfer-encoding: chunked" in self._head
            or b"\r\ntransfer-encoding:chunked" in self._head
        )
        length = header(self._head, b"content-length")
        if length is not None:
            if not length.isdigit():
                raise ReplyDamaged(f"the reply has an invalid Content-Length: {length[:20]!r}")
            self._end = int(length)
        elif not self._is_chunked:
            self.until_closed = self._status not in (204, 304)
        return True

    def _chunked(self) -> HttpReply | None:
        """Return the reply once the last chunk has arrived, and None before that.

        The chunks are joined only at the end.
        """
        body: list[bytes] = []
        at, data = 0, self._data
        while True:
            line = data.find(b"\r\n", at)
            if line < 0:
                return None
            size = int(data[at:line].split(b";", 1)[0], 16)
            start = line + 2
            if len(data) < start + size + 2:
                return None
            if size == 0:
                return self._reply(b"".join(body))
            body.append(data[start : start + size])
            at = start + size + 2

    def _reply(self, body: bytes, *, keeps_alive: bool = True) -> HttpReply:
        assert self._head is not None
        stays = (
            keeps_alive
            and header(self._head, b"connection") != b"close"
            and self._head.startswith(b"http/1.1")
        )
        return HttpReply(self._status, self._head, body, stays)

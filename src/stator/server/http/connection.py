"""One client's connection: requests in, replies out, in the same order.

The usual request takes the fast path: its bytes arrive in one piece, ``read_whole`` parses them,
the dispatcher answers, and the reply is written. All this happens within one call of
``data_received``. Other cases take slower paths:

* Bytes that ``read_whole`` does not accept (parts of a request, chunks, several requests at once,
  bad HTTP) go to the HTTP parser, which calls back. If the parser begins a request, it also reads
  the rest of it.
* A reply whose commit is not durable yet waits in ``_pending``, and the replies behind it wait too.
  So pipelined replies leave in the order of their requests.
* If the client does not read its replies, or is too many requests ahead of them, requests already
  read wait unanswered in ``_backlog``. The socket is not read any further.
* After a request that ends the connection (``Connection: close``, bad HTTP, a body too large) the
  connection is ``_deaf``: it discards further input. After a refusal it lingers in that state,
  because closing a socket with unread input makes TCP drop the reply as well.

Time limits need no timers: each connection notes when it entered its present state. Once a second,
the server's sweep closes the connections that have stayed in a state for too long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from stator.server.http.compression import compress_if_accepted
from stator.server.http.context import ServerContext
from stator.server.http.reply import CONTINUE, Outcome
from stator.server.http.request import HttpRequest, LowercaseNames, read_whole

log = logging.getLogger("stator.server")

_lowercase = LowercaseNames()
_NO_HEADERS: dict[bytes, bytes] = {}
_LINE_BYTES = len(": \r\n")


class PendingReply:
    """A place in the queue of replies. ``data`` may be sent once ``ready`` is true.

    With ``last``, the connection is closed after this reply.
    """

    __slots__ = ("data", "last", "linger", "ready")

    def __init__(
        self, data: bytes, *, ready: bool, last: bool = False, linger: bool = False
    ) -> None:
        self.data = data
        self.ready = ready
        self.last = last
        self.linger = linger


class Connection(asyncio.Protocol):
    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._raw_headers: dict[bytes, bytes] = {}
        # The parser calls this once per header: a C function saves a Python call each time.
        self.on_header = self._raw_headers.__setitem__
        self._parser = HttpRequestParser(self)
        self._url = b""
        self._headers = _NO_HEADERS
        # A body that arrives in pieces is gathered in one buffer. A list of them would take a
        # hundred times its size if every chunk has two bytes.
        self._body = b""
        self._gathered: bytearray | None = None
        self._body_bytes = 0
        self._head_bytes = 0
        self._pending: deque[PendingReply] = deque()
        self._backlog: deque[HttpRequest] = deque()
        self._since = context.now
        self._reading = False  # a request has begun and is not complete
        self._deaf = False
        self._lingering = False
        self._write_paused = False
        self._read_paused = False
        self._working = False
        self._refusal: PendingReply | None = None
        self._unsent_bytes = 0

    # The transport's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._context.joined(self)
        if self._context.stopping:
            self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        self._drop_body()
        self._pending.clear()
        self._backlog.clear()
        self._context.left(self)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        continued = self._reading
        if not continued:
            limits = self._context.limits
            request = read_whole(data, limits.head_bytes, limits.body_bytes)
            if request is not None:
                self._take(request)
                return
            self._reading = True
            self._since = self._context.now
        body_bytes = self._body_bytes
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._decline_upgrade(data, upgrade)
        except HttpParserCallbackError:
            log.exception("a request could not be read")
            self._refuse(500)
        except HttpParserError:
            self._refuse(400)
        if continued and self._reading and self._body_bytes == body_bytes:
            self._bound_head(len(data))

    def eof_received(self) -> bool:
        """Return whether to keep the connection open after the client has stopped sending.

        It stays open while the client still waits for replies.
        """
        self._context.write_now()
        self._deaf = True
        self._reading = False
        return bool(self._pending or self._backlog) and not self._lingering

    def pause_writing(self) -> None:
        self._write_paused = True
        self._since = self._context.now
        self._adjust_reading()

    def resume_writing(self) -> None:
        self._write_paused = False
        self._since = self._context.now
        self._work_off_backlog()

    # The parser's side.

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_headers_complete(self) -> None:
        # A copy: a trailer that arrives after the body must not pass for a header.
        self._headers = headers = {
            _lowercase[name]: value for name, value in self._raw_headers.items()
        }
        head_bytes = len(self._url)
        for name, value in self._raw_headers.items():
            head_bytes += len(name) + len(value) + _LINE_BYTES
        self._raw_headers.clear()
        self._head_bytes = 0
        if head_bytes > self._context.limits.head_bytes:
            self._refuse(431)
        elif int(headers.get(b"content-length", b"0")) > self._context.limits.body_bytes:
            self._refuse(413)
        elif b"expect" in headers:
            self._encourage(headers[b"expect"])

    def _encourage(self, expectation: bytes) -> None:
        """Answer ``Expect: 100-continue`` with 100 Continue, after the replies still pending.

        If earlier requests wait in ``_backlog``, do not answer. The client then sends the body
        after a wait of its own.
        """
        if expectation.lower() == b"100-continue" and not self._backlog:
            self._send(PendingReply(CONTINUE, ready=True))

    def on_body(self, chunk: bytes) -> None:
        if self._deaf:
            return
        if not self._body_bytes:
            self._body = chunk
        else:
            if self._gathered is None:
                self._gathered = bytearray(self._body)
            self._gathered += chunk
        self._body_bytes += len(chunk)
        self._context.arriving_bytes += len(chunk)
        self._head_bytes = 0
        if self._body_bytes > self._context.limits.body_bytes:
            self._refuse(413)
        elif self._context.arriving_bytes > self._context.limits.arriving_bytes:
            self._refuse(503)

    def on_message_complete(self) -> None:
        if self._deaf or (b"upgrade" in self._headers and self._parser.should_upgrade()):
            return
        parser = self._parser
        body = self._body if self._gathered is None else bytes(self._gathered)
        request = HttpRequest(
            parser.get_method(), self._url, self._headers, body, parser.should_keep_alive()
        )
        self._begin_next_request()
        self._take(request)

    # Requests.

    def _take(self, request: HttpRequest) -> None:
        """Answer a complete request now, or put it into ``_backlog`` if others must go first."""
        context = self._context
        self._since = context.now
        if context.stopping:
            request.keep_alive = False
        if not request.keep_alive:
            self._deaf = True
        if self._backlog or self._must_wait():
            self._backlog.append(request)
            self._adjust_reading()
        else:
            self._serve(request)

    def _begin_next_request(self) -> None:
        self._reading = False
        self._url = b""
        self._headers = _NO_HEADERS
        self._drop_body()
        self._head_bytes = 0
        self._raw_headers.clear()

    def _drop_body(self) -> None:
        self._context.arriving_bytes -= self._body_bytes
        self._context.arrived_bytes += self._body_bytes
        self._body = b""
        self._gathered = None
        self._body_bytes = 0

    def _serve(self, request: HttpRequest) -> None:
        outcome = self._context.dispatcher.answer(request)
        data = self._render(request, outcome)
        if outcome.commit is None and not self._pending:
            self._context.write_later(self._transport, data)
            if not request.keep_alive:
                self._close()
            return
        reply = PendingReply(data, ready=outcome.commit is None, last=not request.keep_alive)
        self._pending.append(reply)
        if outcome.commit is not None:
            settled = partial(self._settled, reply, request, outcome)
            self._context.settlement.notify(outcome.commit, settled)
        self._adjust_reading()

    def _render(self, request: HttpRequest, outcome: Outcome) -> bytes:
        if len(outcome.body) >= self._context.limits.compressed_reply_bytes:
            outcome = compress_if_accepted(outcome, request)
        return self._context.renderer.render(
            outcome, keep_alive=request.keep_alive, without_body=request.method == b"HEAD"
        )

    def _settled(
        self,
        reply: PendingReply,
        request: HttpRequest,
        outcome: Outcome,
        reason: BaseException | None,
    ) -> None:
        if reason is not None:
            failure = self._context.dispatcher.failure(outcome, reason)
            reply.data = self._render(request, failure)
        reply.ready = True
        if self._pending and self._pending[0] is reply:
            self._flush()

    def _must_wait(self) -> bool:
        return self._write_paused or len(self._pending) >= self._context.limits.pipelined_requests

    def _work_off_backlog(self) -> None:
        if self._working:
            return  # a commit that is durable at once calls back from within the loop
        self._working = True
        while self._backlog and not self._must_wait():
            self._serve(self._backlog.popleft())
        self._working = False
        if self._refusal is not None and not self._backlog:
            refusal, self._refusal = self._refusal, None
            self._send(refusal)
        elif self._is_finished():
            self._close()
        else:
            self._adjust_reading()

    def _adjust_reading(self) -> None:
        must_pause = bool(self._backlog) or self._must_wait()
        if must_pause == self._read_paused or self._transport.is_closing():
            return
        self._read_paused = must_pause
        if must_pause:
            self._transport.pause_reading()
        else:
            self._since = self._context.now
            self._transport.resume_reading()

    def _bound_head(self, size_bytes: int) -> None:
        """Count bytes of an unfinished head or of trailers. Answer 431 if there are too many."""
        self._head_bytes += size_bytes
        if self._head_bytes > self._context.limits.head_bytes:
            self._refuse(431)

    def _decline_upgrade(self, data: bytes, upgrade: HttpParserUpgrade) -> None:
        """Ignore an Upgrade offer, as HTTP allows.

        The parser has stopped before the body, because it expects the body to be of the other
        protocol. This method feeds it the same request again, without the offer. Java's own HTTP
        client offers HTTP/2 in this way.
        """
        while self._headers is not _NO_HEADERS and not self._deaf:
            data = self._head_without_upgrade() + data[upgrade.args[0] :]
            self._headers, self._url = _NO_HEADERS, b""
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as another:
                upgrade = another
            except HttpParserError:
                break
            else:
                return
        self._refuse(400)  # not HTTP after all, or a CONNECT

    def _head_without_upgrade(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url)]
        for name, value in self._headers.items():
            if name not in (b"upgrade", b"connection"):
                lines.append(b"%b: %b" % (name, value))
        return b"\r\n".join(lines) + b"\r\n\r\n"

    def _refuse(self, status: int) -> None:
        """Answer a malformed request once, then discard all further input."""
        if self._deaf:
            return
        self._deaf = True
        self._reading = False
        self._drop_body()
        renderer = self._context.renderer
        if status == 413:
            data = renderer.render_too_large()
        else:
            data = renderer.render(Outcome(status, b""), keep_alive=False)
        self._refusal = PendingReply(data, ready=True, last=True, linger=True)
        self._work_off_backlog()

    # Replies.

    def _send(self, reply: PendingReply) -> None:
        self._pending.append(reply)
        self._flush()

    def _close(self) -> None:
        """Close once all written replies have been sent."""
        self._context.write_now()
        self._transport.close()

    def _flush(self) -> None:
        """Write all replies at the front of the queue that are ready, in one piece."""
        ready: list[bytes] = []
        reply: PendingReply | None = None
        while self._pending and self._pending[0].ready:
            reply = self._pending.popleft()
            ready.append(reply.data)
        if reply is None:
            return
        self._since = self._context.now
        self._context.write_later(self._transport, ready[0] if len(ready) == 1 else b"".join(ready))
        if reply.linger:
            self._context.write_now()
            self._linger()
        elif reply.last:
            self._close()
        else:
            self._work_off_backlog()

    def _linger(self) -> None:
        if self._context.stopping:  # the sweep, which ends the wait, has stopped
            self._close()
            return
        self._lingering = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._adjust_reading()

    # The end.

    def close_if_overdue(self, now: float) -> None:
        limits = self._context.limits
        waited = now - self._since
        if self._lingering:
            self._close_after(waited, limits.linger_seconds)
        elif self._write_paused or self._transport.is_closing():
            self._close_unless_read(now)
        elif self._pending or self._backlog:
            return  # the server is late, not the client
        elif self._reading:
            self._close_after(waited, limits.request_seconds)
        elif waited > limits.idle_seconds:
            self._close()

    def _close_unless_read(self, now: float) -> None:
        """Abort the connection if the client has stopped reading. A slow reader may stay."""
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes < self._unsent_bytes:
            self._since = now
        self._unsent_bytes = unsent_bytes
        self._close_after(now - self._since, self._context.limits.write_seconds)

    def _close_after(self, waited: float, limit: float) -> None:
        if waited > limit:
            self._transport.abort()

    def finish(self) -> None:
        """Close for shutdown: now if no request has begun, otherwise after the last reply."""
        if self._is_finished():
            self._close()

    def stop_reading(self) -> None:
        """Give up a request whose head or body is not complete, and close after the last reply."""
        if self._reading:
            self._deaf = True
            self._reading = False
            self._drop_body()
            self.finish()

    def abort(self) -> None:
        self._transport.abort()

    def _is_finished(self) -> bool:
        idle = not self._pending and not self._backlog and not self._reading
        return idle and (self._context.stopping or self._deaf)

"""``WebhookSink``: changes as POST requests to a URL.

    POST /changes HTTP/1.1
    Content-Type: application/json
    Stator-Events: 8f0c…,91aa…
    Stator-Signature: t=1763280760,v1=5257a8…

    {"events":[{"id":"8f0c…",…},{"id":"91aa…",…}]}

The signature, where a secret is given, is the HMAC-SHA256 of ``t``, a dot and the body; ``verify_signature`` is for receivers that are written in Python. Every
answer of 2xx says that all events of a request were taken. One that is about the request (400, 409, 413, 422 and the like) is the fault of an event: halves of the
batch are sent, and the item at fault is parked. Everything else is not the fault of an event, and tried until it is mended: no connection, no answer in time, 5xx, 429,
and also 401, 403, 404, 405 and redirections, which say that the URL or the secret is wrong, and would park every item there is.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Unpack
from urllib.parse import urlsplit

from stator.errors import ConfigurationError, SinkRefused, TryLater
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import Refusal, Sink

Connection = http.client.HTTPConnection
SIGNATURE = "Stator-Signature"
EVENTS = "Stator-Events"
# About the sender or the address, not about the content; 408, 425 and 429 ask for patience.
_NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 429, 451})


class WebhookSink(Sink):
    is_json = True

    def __init__(
        self,
        name: str,
        url: str,
        *,
        secret: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        max_messages: int = 100,
        max_bytes: int = 1 << 20,
        timeout_seconds: float = 10.0,
        tls: ssl.SSLContext | None = None,
        now: Callable[[], float] = time.time,
        **options: Unpack[SinkOptions],
    ) -> None:
        """``tls`` is for certificates of your own; ``headers`` go with every request."""
        super().__init__(name, options)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"{url!r} is no URL to post to", hint="as in https://example.com/changes"
            )
        if not 1 <= max_messages <= 1000:
            raise ConfigurationError(
                f"max_messages={max_messages}", hint="1 to 1000: their ids go into a header"
            )
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self._host, self._port = parts.hostname, parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._headers = dict(headers or {})
        self._timeout_seconds = timeout_seconds
        self._now = now
        self._idle: deque[Connection] = deque()  # whose ends are safe to use from several threads

    def send(self, messages: Sequence[Message]) -> Sequence[Refusal] | None:
        body = b'{"events":[%b]}' % b",".join(message.body for message in messages)
        headers = {
            "Content-Type": "application/json",
            EVENTS: ",".join(each.event_id for each in messages),
        }
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body, int(self._now()))
        status, reason = self._post(body, {**headers, **self._headers})
        if 200 <= status < 300:
            return None
        if 400 <= status < 500 and status not in _NOT_THE_EVENT:
            raise SinkRefused(f"{self._host} answered {status} {reason}")
        raise TryLater(
            f"{self._host} answered {status} {reason}",
            hint="look at the URL, the secret and the receiver",
        )

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """One that was open may have been closed by the other side, so a new connection is tried before giving up."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = None
        if connection is not None:
            try:
                return self._exchange(connection, body, headers)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, TimeoutError):
                    raise self._away(error) from error
        try:
            return self._exchange(self._connected(), body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from error

    def _exchange(
        self, connection: Connection, body: bytes, headers: dict[str, str]
    ) -> tuple[int, str]:
        try:
            connection.request("POST", self._path, body, headers)
            reply = connection.getresponse()
            reply.read()
        except BaseException:
            connection.close()
            raise
        if reply.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return reply.status, reply.reason

    def _away(self, error: Exception) -> TryLater:
        return TryLater(f"{self._host} does not answer: {type(error).__name__}: {error}")

    def _connected(self) -> Connection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=self._timeout_seconds, context=self._tls
        )

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


def signature(secret: bytes, body: bytes, at: int) -> str:
    digest = hmac.new(secret, b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


def verify_signature(
    secret: str | bytes,
    body: bytes,
    given: str,
    *,
    max_age_seconds: float = 300.0,
    now: float | None = None,
) -> bool:
    """Whether a request is from who knows the secret, and of the last minutes."""
    key = secret.encode() if isinstance(secret, str) else secret
    stamp = given.partition(",")[0].removeprefix("t=")
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        return False
    current = time.time() if now is None else now
    return abs(current - int(stamp)) <= max_age_seconds and hmac.compare_digest(
        signature(key, body, int(stamp)).encode(), given.encode()
    )

"""``WebhookSink``: changes as POST requests to a URL.

    POST /changes HTTP/1.1
    Content-Type: application/json
    Stator-Events: 8f0c...,91aa...
    Stator-Signature: t=1763280760,v1=5257a8...

    {"events":[{"id":"8f0c...",...},{"id":"91aa...",...}]}

With a secret, the signature is the HMAC-SHA256 of ``t``, a dot and the body. Receivers written in
Python check it with ``verify_signature``. A 2xx response means that all events of the request were
accepted. A response about the request itself (400, 409, 413, 422 and the like) is the fault of an
event: halves of the batch are sent, and the item at fault is parked.

No other failure is the fault of an event, and the request is retried until it succeeds. Examples
are a failed connection, a timeout, 5xx and 429, but also 401, 403, 404, 405 and redirects. The last
five mean that the URL or the secret is wrong. Blaming the events would park every item.
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
from stator.model.seconds import check_seconds
from stator.pipeline.sinks.change_sink import Message, SinkOptions
from stator.pipeline.sinks.sink import Refusal, Sink
from stator.tables.argument_rules import checks_arguments

Connection = http.client.HTTPConnection
SIGNATURE = "Stator-Signature"
EVENTS = "Stator-Events"
# These concern the sender or the address, not the content; 408, 425 and 429 ask to retry later.
_NOT_THE_EVENT = frozenset({401, 402, 403, 404, 405, 407, 408, 421, 423, 425, 429, 451})


@checks_arguments("WebhookSink")
class WebhookSink(Sink):
    """Sends changes to a URL, in POST requests."""

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
        """Create the sink. ``headers`` are added to every request.

        A request has up to ``max_messages`` events with ``max_bytes`` in all, and waits up to
        ``timeout_seconds`` for its response. ``tls`` is an SSL context, for example with
        certificates of your own. With ``secret``, requests are signed (``verify_signature``).
        ``now`` is a clock for tests.
        """
        super().__init__(name, options)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"{url!r} is not an HTTP URL", hint="pass a URL like https://example.com/changes"
            )
        if not 1 <= max_messages <= 1000:
            raise ConfigurationError(
                f"max_messages={max_messages} is out of range",
                hint="use a number from 1 to 1000: the ids of all events are sent in one header",
            )
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self._host, self._port = parts.hostname, parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._headers = dict(headers or {})
        check_seconds(f"sink {name}", timeout_seconds=timeout_seconds)
        self._timeout_seconds = timeout_seconds
        self._now = now
        self._idle: deque[Connection] = deque()  # append and pop are thread-safe

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
            raise SinkRefused(f"{self._host} responded {status} {reason}")
        raise TryLater(
            f"{self._host} responded {status} {reason}",
            hint="check the URL, the secret and the receiver",
        )

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        """Send one POST request. Return the status and the reason of the response.

        Uses an idle connection if there is one. If there is none, or the peer has closed it, opens
        a new connection.
        """
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = None
        if connection is not None:
            try:
                return self._exchange(connection, body, headers)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, TimeoutError):
                    raise self._outage(error) from error
        try:
            return self._exchange(self._new_connection(), body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise self._outage(error) from error

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

    def _outage(self, error: Exception) -> TryLater:
        return TryLater(f"{self._host} does not respond: {type(error).__name__}: {error}")

    def _new_connection(self) -> Connection:
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
    """Whether a request has a valid signature that is at most ``max_age_seconds`` old.

    ``body`` is the raw body of the request, and ``given`` the value of the header
    ``Stator-Signature``.
    """
    key = secret.encode() if isinstance(secret, str) else secret
    stamp = given.partition(",")[0].removeprefix("t=")
    if not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        return False
    current = time.time() if now is None else now
    check_seconds("verify_signature", or_zero=True, max_age_seconds=max_age_seconds)
    return abs(current - int(stamp)) <= max_age_seconds and hmac.compare_digest(
        signature(key, body, int(stamp)).encode(), given.encode()
    )

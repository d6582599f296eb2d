"""The I/O-free half of both clients: it encodes, signs and decodes, and decides about retries."""

from __future__ import annotations

import logging
import random
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from stator.client.credentials import Credentials
from stator.client.endpoint import Endpoint
from stator.client.replies import HttpReply
from stator.client.retry import Attempts, RetryPolicy, SharedRetries
from stator.client.signer import Signer
from stator.clock import Clock
from stator.errors import (
    ConnectionTrouble,
    InternalServerError,
    ReplyDamaged,
    SerializationFailed,
    ServiceError,
    from_wire,
)
from stator.model.service import model_of, target_of
from stator.transport import CallOptions

log = logging.getLogger("stator.client")

# The errors that a service returns when our clock is wrong. The Date header holds the right time.
_SKEWED = (
    "Signature expired",
    "Signature not yet current",
    "RequestTimeTooSkewed",
    "RequestExpired",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a client. Timeouts apply to one attempt."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    connect_timeout_seconds: float = 3.0
    read_timeout_seconds: float = 30.0
    max_connections: int = 50


class Exchange:
    def __init__(self, endpoint: Endpoint, region: str, limits: Limits, clock: Clock) -> None:
        self.endpoint = endpoint
        self.limits = limits
        self.signer = Signer(endpoint.authority, endpoint.path, region)
        self.clock = clock
        self.retries = SharedRetries(limits.policy, random.SystemRandom().random)

    def attempts(
        self, operation: str, request: Mapping[str, Any], options: CallOptions
    ) -> Attempts:
        seconds = options.get("deadline_seconds")
        return Attempts(
            self.retries,
            operation,
            request,
            idempotent=options.get("idempotent", True),
            deadline=None if seconds is None else self.clock.now() + seconds,
            raise_hot_key=options.get("raise_hot_key", False),
            raise_hot_index=options.get("raise_hot_index", False),
            raise_table_limit=options.get("raise_table_limit", False),
            on_retry=options.get("on_retry"),
        )

    def encode(self, request: Mapping[str, Any]) -> bytes:
        try:
            return orjson.dumps(request)
        except TypeError as error:
            raise SerializationFailed(
                f"the request is not DynamoDB JSON: {error}",
                hint='use strings for numbers ({"N": "1"}) and base64 text for binary',
            ) from None

    def message(self, operation: str, body: bytes, credentials: Credentials) -> bytes:
        head = self.signer.head(target_of(operation), body, credentials, self.clock.now())
        proxy = self.endpoint.proxy
        if proxy is not None and self.endpoint.tls is None:
            login = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
            head = head.replace(
                f"POST {self.endpoint.path} ", f"POST {self.endpoint.request_path} ", 1
            )
            head = head.replace("\r\n", f"\r\n{login}", 1)
        return head.encode("latin-1") + body

    def decode(self, operation: str, reply: HttpReply) -> dict[str, Any]:
        """Return the body of a reply, or raise the error that matches an error reply.

        Raises ReplyDamaged for a success without a body, because a proxy may have lost the answer.
        Only operations without output, such as TagResource, may answer with an empty body.
        """
        body = reply.body
        checksum = reply.header(b"x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(body):
            raise ReplyDamaged("the checksum of the reply does not match its body")
        if reply.status == 200:
            if not body and not _has_output(operation):
                return {}
            try:
                answer = orjson.loads(body)
            except orjson.JSONDecodeError:
                answer = None
            if not isinstance(answer, dict):
                shown = repr(body[:60]) if body else "empty"
                raise ReplyDamaged(f"the reply to {operation} is not a JSON object: {shown}")
            return answer
        raise self._refusal(reply)

    def _refusal(self, reply: HttpReply) -> ServiceError:
        try:
            body = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            body = {}
        if not isinstance(body, dict) or "__type" not in body:
            shown = reply.body[:200].decode(errors="replace")
            kind = InternalServerError if reply.status >= 500 else ServiceError
            return kind(
                f"the endpoint answered {reply.status} without a DynamoDB error: {shown!r}",
                hint="check that the address is that of a DynamoDB endpoint, and not of a proxy",
            )
        error = from_wire(reply.status, body)
        if any(word in error.message or word in str(body["__type"]) for word in _SKEWED):
            return self._corrected(reply, error)
        return error

    def _corrected(self, reply: HttpReply, error: ServiceError) -> ServiceError:
        """Correct the signer's clock by the reply's date, and return a retryable error.

        Returns ``error`` itself if the reply has no date, or if the clock was already right.
        """
        date = reply.header(b"date")
        if date is None:
            return error
        ahead = parsedate_to_datetime(date.decode()).timestamp() - self.clock.now()
        if abs(ahead - self.signer.offset_seconds) < 60:
            return error
        log.warning(
            "this machine's clock is off by %.0f seconds; signing with the service's time", ahead
        )
        self.signer.offset_seconds = ahead
        return ClockCorrected(error.message)

    def before_retry(
        self, operation: str, attempts: Attempts, error: ServiceError | ConnectionTrouble
    ) -> float:
        """Return the seconds to wait before the next attempt.

        If the call may not be attempted again, raises the error that ends it.
        """
        delay = attempts.after(error, self.clock.now())
        log.debug(
            "%s failed (%s: %s); attempt %d in %.3f s",
            operation,
            type(error).__name__,
            error,
            attempts.number,
            delay,
        )
        return delay


def _has_output(operation: str) -> bool:
    known = model_of(operation).operations.get(operation)
    return known is not None and "output" in known


class ClockCorrected(ServiceError):
    """The local clock was wrong and has been corrected; the request can be retried."""

    code = "StatorClockCorrected"
    retryable = True

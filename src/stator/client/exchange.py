"""What both clients share: a request made ready, an answer judged, a clock corrected."""

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
from stator.client.retry import Attempts, RetryPolicy, RetryQuota
from stator.client.signer import Signer
from stator.clock import Clock
from stator.errors import (
    ConnectionTrouble,
    DeadlineExceeded,
    InternalServerError,
    ReplyDamaged,
    SerializationFailed,
    ServiceError,
    from_wire,
)
from stator.model.service import target_of

log = logging.getLogger("stator.client")

# What a service says when our clock is wrong; its own time stands in the Date header.
_SKEWED = (
    "Signature expired",
    "Signature not yet current",
    "RequestTimeTooSkewed",
    "RequestExpired",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client allows itself: times are for one attempt."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    connect_timeout_seconds: float = 3.0
    read_timeout_seconds: float = 30.0
    max_connections: int = 50


class Exchange:
    def __init__(self, endpoint: Endpoint, region: str, limits: Limits, clock: Clock) -> None:
        self.endpoint = endpoint
        self.signer = Signer(endpoint.authority, endpoint.path, region)
        self.policy = limits.policy
        self.quota = RetryQuota()
        self.clock = clock
        self.chance = random.SystemRandom()

    def attempts(self, idempotent: bool, deadline_seconds: float | None) -> Attempts:
        deadline = None if deadline_seconds is None else self.clock.now() + deadline_seconds
        return Attempts(self.policy, self.quota, self.chance.random, idempotent, deadline)

    def encoded(self, request: Mapping[str, Any]) -> bytes:
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

    def judged(self, reply: HttpReply) -> dict[str, Any]:
        """The answer, or the error it stands for."""
        body = reply.body
        checksum = reply.header(b"x-amz-crc32")
        if checksum is not None and int(checksum) != zlib.crc32(body):
            raise ReplyDamaged("the answer's checksum differs from what came")
        if reply.status == 200:
            try:
                answer: dict[str, Any] = orjson.loads(body) if body else {}
            except orjson.JSONDecodeError:
                raise ReplyDamaged(f"the answer is not JSON: {body[:60]!r}") from None
            return answer
        raise self._refusal(reply)

    def _refusal(self, reply: HttpReply) -> ServiceError:
        try:
            told = orjson.loads(reply.body)
        except orjson.JSONDecodeError:
            told = {}
        if not isinstance(told, dict) or "__type" not in told:
            shown = reply.body[:200].decode(errors="replace")
            kind = InternalServerError if reply.status >= 500 else ServiceError
            return kind(
                f"the endpoint answered with status {reply.status} and no error of DynamoDB's: {shown!r}"
            )
        error = from_wire(reply.status, told)
        if any(word in error.message or word in str(told["__type"]) for word in _SKEWED):
            return self._corrected(reply, error)
        return error

    def _corrected(self, reply: HttpReply, error: ServiceError) -> ServiceError:
        """Take over the service's time, once; the same request may then be tried again."""
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
        """How long to wait; raises when there is to be no further attempt."""
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


class ClockCorrected(ServiceError):
    """Our time was wrong and has been put right: try again."""

    code = "StatorClockCorrected"
    retryable = True


def timeout_left(read_timeout_seconds: float, deadline: float | None, now: float) -> float:
    """For one attempt: the timeout, or what is left until the deadline."""
    if deadline is None:
        return read_timeout_seconds
    left = deadline - now
    if left <= 0:
        raise not_sent("no answer within the time given")
    return min(read_timeout_seconds, left)


def not_sent(message: str) -> DeadlineExceeded:
    """The time is over before anything was sent."""
    error = DeadlineExceeded(message)
    error.sent = False
    return error

"""Answers a request: applies AWS's wire-level rules, in AWS's order, and calls the engine.

AWS checks the method and the content type first, then whether the body is JSON. Then it checks the
target (the operation that the header ``X-Amz-Target`` names), and then the caller. The engine does
the rest. The dispatcher itself answers a GET of ``/`` (the health check) and a CORS preflight. Any
other method, or an unknown content type, gets a 404.

To parse the JSON of a valid request only once, the dispatcher leaves it to the engine. If the
target or the caller is refused, the dispatcher checks the body after all: on AWS, an error about a
body that is not JSON comes before these refusals. Empty, compressed and large bodies stay
unchecked. AWS itself checks an empty body only after it has identified the caller. A compressed or
large body costs too much to read for a caller who may be unknown.
"""

from __future__ import annotations

import logging
import time

import orjson

from stator.errors import (
    InternalServerError,
    SerializationFailed,
    ServiceError,
    StorageError,
)
from stator.model.service import target_of, unknown_operation
from stator.server.auth.authenticator import Authenticator
from stator.server.auth.verifier import DYNAMODB
from stator.server.companions.gateway import CompanionGateway
from stator.server.http.compression import decode_body
from stator.server.http.limits import ServerLimits
from stator.server.http.reply import AMZ_JSON, NO_TYPE, PLAIN_JSON, Outcome
from stator.server.http.request import HttpRequest
from stator.server.protocols import Backend

log = logging.getLogger("stator.server")

_REPLY_TYPES = {AMZ_JSON: AMZ_JSON, PLAIN_JSON: PLAIN_JSON}
_REPORT_SECONDS = 60.0
_CHECKED_BYTES = 64 * 1024
_NOT_FOUND = b"<UnknownOperationException/>\n"
_ALLOW_ORIGIN = (
    b"Access-Control-Allow-Origin: *\r\n"
    b"Access-Control-Expose-Headers: x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date\r\n"
)


class Dispatcher:
    def __init__(
        self, backend: Backend, authenticator: Authenticator, limits: ServerLimits, region: str
    ) -> None:
        self._submit = backend.submit
        self._scope_of = authenticator.scope_of
        self._body_bytes = limits.body_bytes
        self._healthy = f"healthy: dynamodb.{region}.amazonaws.com ".encode()
        self._reported = ""
        self._reported_at = 0.0
        self._companions = CompanionGateway(backend, self._scope_of, limits.body_bytes)
        self._operations = {target_of(name).encode(): name for name in backend.operations()}

    def answer(self, request: HttpRequest) -> Outcome:
        """Answer a request. Never raises: an unexpected error is logged and answered with 500."""
        try:
            return self._route(request)
        except ServiceError as error:
            return self._refusal(request, error)
        except StorageError as error:
            self._report(error)
            return self._refusal(request, InternalServerError())
        except Exception:  # one request must not end the server
            log.exception(
                "a request for %s failed unexpectedly", request.headers.get(b"x-amz-target")
            )
            return self._refusal(request, InternalServerError())

    def failure(self, request_outcome: Outcome, reason: BaseException) -> Outcome:
        """Log why a commit did not become durable, and return the error reply to send.

        ``request_outcome`` is the reply that would have been sent.
        """
        self._report(reason)
        body = orjson.dumps(InternalServerError().wire())
        return Outcome(500, body, None, request_outcome.content_type, request_outcome.extra)

    def _report(self, reason: BaseException) -> None:
        """Log a storage failure, but the same one at most once a minute.

        A full disk makes every write fail in the same way.
        """
        hint = getattr(reason, "hint", None)
        now, text = time.monotonic(), f"{reason}; {hint}" if hint else str(reason)
        if text != self._reported or now - self._reported_at >= _REPORT_SECONDS:
            self._reported, self._reported_at = text, now
            log.error("%s", text)

    def _route(self, request: HttpRequest) -> Outcome:
        headers = request.headers
        if request.method != b"POST":
            return self._without_operation(request)
        content_type = _REPLY_TYPES.get(headers.get(b"content-type", b"")) or _reply_type(request)
        if not content_type:
            return self._companions.answer(request) or _not_found(request)
        operation = self._operations.get(headers.get(b"x-amz-target", b""))
        if operation is None:
            outcome = self._companions.answer(request)
            if outcome is not None:
                return outcome
            raise unknown_operation(headers.get(b"x-amz-target", b"").decode("latin-1"))
        scope = self._scope_of(request, DYNAMODB)
        body = request.body
        if b"content-encoding" in headers:
            body = decode_body(body, headers[b"content-encoding"], self._body_bytes)
        reply = self._submit(operation, body, scope)
        extra = _ALLOW_ORIGIN if b"origin" in headers else b""
        body = reply.body
        if operation == "DescribeEndpoints" and reply.status == 200 and b"host" in headers:
            body = _endpoints(headers[b"host"])
        return Outcome(reply.status, body, reply.commit, content_type, extra)

    def _without_operation(self, request: HttpRequest) -> Outcome:
        if request.method == b"OPTIONS" and b"origin" in request.headers:
            return _preflight(request)
        if request.method == b"GET" and request.url.partition(b"?")[0] == b"/":
            return Outcome(200, self._healthy, extra=_cors(request))
        return _not_found(request)

    def _refusal(self, request: HttpRequest, error: ServiceError) -> Outcome:
        if not isinstance(error, InternalServerError) and not self._is_json(request):
            error = SerializationFailed()
        content_type = _reply_type(request) or PLAIN_JSON
        return Outcome(error.status, orjson.dumps(error.wire()), None, content_type, _cors(request))

    def _is_json(self, request: HttpRequest) -> bool:
        if not 0 < len(request.body) <= _CHECKED_BYTES or b"content-encoding" in request.headers:
            # AWS checks an empty body only once it knows the caller. A large or compressed one is
            # not read for a caller who may not be known.
            return True
        try:
            orjson.loads(request.body)
        except ValueError:
            return False
        return True


def _reply_type(request: HttpRequest) -> bytes:
    """Return the content type of the reply.

    If the request's own content type is one of the two JSON types, the reply has the same. For any
    other type, the reply to a request without a body is plain JSON. Otherwise the reply has no
    content type.
    """
    plain = request.headers.get(b"content-type", b"").partition(b";")[0].strip()
    return _REPLY_TYPES.get(plain, NO_TYPE if request.body else PLAIN_JSON)


def _endpoints(host: bytes) -> bytes:
    """Answer DescribeEndpoints with the address that was called.

    A client with endpoint discovery would otherwise send its next requests to AWS.
    """
    endpoint = {"Address": host.decode("latin-1"), "CachePeriodInMinutes": 1440}
    return orjson.dumps({"Endpoints": [endpoint]})


def _cors(request: HttpRequest) -> bytes:
    return _ALLOW_ORIGIN if b"origin" in request.headers else b""


def _not_found(request: HttpRequest) -> Outcome:
    return Outcome(404, _NOT_FOUND, extra=_cors(request))


def _preflight(request: HttpRequest) -> Outcome:
    """Answer a CORS preflight. Every origin is allowed, because signatures protect the data."""
    lines = [_ALLOW_ORIGIN]
    for asked, allowed in (
        (b"access-control-request-headers", b"Access-Control-Allow-Headers"),
        (b"access-control-request-method", b"Access-Control-Allow-Methods"),
    ):
        if asked in request.headers:
            lines.append(b"%b: %b\r\n" % (allowed, request.headers[asked]))
    lines.append(b"Access-Control-Max-Age: 172800\r\n")
    return Outcome(200, b"", extra=b"".join(lines))

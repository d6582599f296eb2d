"""Answers requests for companion services: finds service, operation and protocol, and the caller.

A request in JSON names service and operation in X-Amz-Target, a request in CBOR in its path
(``/service/<target>/operation/<operation>``). A form is signed for its service, and names the
operation in ``Action`` and ``Version``. Errors are written in the protocol of the request.
``x-amzn-query-error`` has the older code of an error, which SDKs show for services that once used
the query protocol.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from stator.errors import CompanionRefused, ServiceError
from stator.model.companion_service import CompanionService
from stator.model.scope import Scope
from stator.server.companions.cbor_protocol import CborProtocol
from stator.server.companions.json_protocol import JsonProtocol
from stator.server.companions.query_protocol import QueryProtocol
from stator.server.companions.wire_protocol import WireProtocol, model_of, wire_error
from stator.server.http.compression import decode_body
from stator.server.http.reply import Outcome
from stator.server.http.request import HttpRequest
from stator.server.protocols import CompanionBackend

JSON: Final = JsonProtocol()
QUERY: Final = QueryProtocol()
CBOR: Final = CborProtocol()

_JSON_TYPES: Final = (b"application/x-amz-json-1.0", b"application/x-amz-json-1.1")
_FORM: Final = b"application/x-www-form-urlencoded"
_PATH: Final = re.compile(rb"/service/(\w+)/operation/(\w+)")

# Gets a request and the signing name of a service. Returns the caller, or raises AWS's error.
ScopeOf = Callable[[HttpRequest, str], Scope]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes, and how it is written. A form names its operation in its body."""

    service: CompanionService
    operation: str
    protocol: WireProtocol


class CompanionGateway:
    """Answers companion requests from a backend."""

    def __init__(self, backend: CompanionBackend, scope_of: ScopeOf, body_bytes: int) -> None:
        self._backend = backend
        self._scope_of = scope_of
        self._body_bytes = body_bytes

    def answer(self, request: HttpRequest) -> Outcome | None:
        """Answer a request, or return None if it is for no companion service."""
        content_type = request.headers.get(b"content-type", b"").partition(b";")[0].strip()
        route = self._route(request, content_type)
        if route is None:
            return None
        reply_type = route.protocol.content_type(content_type)
        extra = b"smithy-protocol: rpc-v2-cbor\r\n" if route.protocol is CBOR else b""
        try:
            # A body is not decompressed for a caller who may be unknown.
            scope = self._scope_of(request, route.service.signing_name)
            content = self._run(route, self._body(request), scope)
        except (CompanionRefused, ServiceError) as error:
            return _refusal(route, error, reply_type, extra)
        return Outcome(200, content, None, reply_type, extra)

    def _body(self, request: HttpRequest) -> bytes:
        encoding = request.headers.get(b"content-encoding")
        if encoding is None:
            return request.body
        return decode_body(request.body, encoding, self._body_bytes)

    def _run(self, route: Route, body: bytes, scope: Scope) -> bytes:
        service = route.service
        operation = route.operation or _action(service, body)
        if operation not in model_of(service).operations:
            message = f"The action {operation} is not valid for this web service."
            raise CompanionRefused("InvalidAction", message)
        asked = route.protocol.read(service, operation, body)
        answer = self._backend.call_companion(
            service.name, operation, asked, account=scope.account, region=scope.region
        )
        return route.protocol.write(service, operation, answer)

    def _route(self, request: HttpRequest, content_type: bytes) -> Route | None:
        headers = request.headers
        services = self._backend.companion_services()
        if content_type in _JSON_TYPES:
            named = headers.get(b"x-amz-target", b"").decode("latin-1")
            target, _, operation = named.partition(".")
            return _of_target(services, target, operation, JSON)
        path = _PATH.fullmatch(request.url)
        if path is not None and headers.get(b"smithy-protocol") == b"rpc-v2-cbor":
            return _of_target(services, path[1].decode(), path[2].decode(), CBOR)
        if content_type == _FORM:
            signed = headers.get(b"authorization", b"")
            for service in services:
                if service.has_query_protocol and b"/%b/" % service.signing_name.encode() in signed:
                    return Route(service, "", QUERY)
        return None


def _action(service: CompanionService, body: bytes) -> str:
    """Return the operation that a form names."""
    form = parse_qs(body.decode("utf-8", "replace"))
    action, version = form.get("Action", [""])[0], form.get("Version", [""])[0]
    if version != service.version or not action:
        message = f"Could not find operation {action} for version {version}"
        raise CompanionRefused("InvalidAction", message)
    return action


def _of_target(
    services: tuple[CompanionService, ...], target: str, operation: str, protocol: WireProtocol
) -> Route | None:
    for service in services:
        if service.target == target:
            return Route(service, operation or "(none)", protocol)
    return None


def _refusal(
    route: Route, error: CompanionRefused | ServiceError, reply_type: bytes, extra: bytes
) -> Outcome:
    if isinstance(error, ServiceError):  # the caller is not accepted
        error = CompanionRefused(error.code, error.message, status=error.status)
    told = wire_error(route.service, error)
    if route.service.has_query_protocol:
        extra += f"x-amzn-query-error: {told.query_code};{told.fault}\r\n".encode()
    body = route.protocol.refuse(route.service, told)
    return Outcome(told.status, body, None, reply_type, extra)

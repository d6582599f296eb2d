"""Checks a signed request: date, scope, key and signature, in AWS's order.

Only a server with credentials runs these checks. The clock is an argument, so that tests can check
requests at any time, for example after their signature has expired.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from stator.clock import Clock
from stator.errors import IncompleteSignature, InvalidSignature, UnrecognizedClient
from stator.model.scope import Scope
from stator.server.auth.authorization import SIGNATURE_PARAMETER, Authorization
from stator.server.auth.credentials import Credential
from stator.server.auth.signature import (
    canonical_request,
    same_signature,
    sign,
    signing_key,
    string_to_sign,
)
from stator.server.http.request import HttpRequest

DYNAMODB = "dynamodb"
TERMINATOR = "aws4_request"
_TOLERANCE = timedelta(minutes=15)
_TOLERANCE_TEXT = "15 min."
_BASIC_FORMAT = "%Y%m%dT%H%M%SZ"
_BASIC_PATTERN = re.compile(r"\d{8}T\d{6}Z")
# Every region is served; only a text that cannot be a region name is refused.
_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS "
    "Secret Access Key and signing method. Consult the service documentation for details."
)


class Verifier:
    def __init__(self, credentials: Mapping[str, Credential], clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock

    def verify(self, request: HttpRequest, authorization: Authorization, service: str) -> Scope:
        """Return the caller's scope. Raises AWS's error; the checks run in AWS's order.

        ``service`` is the signing name that the request must be signed for.
        """
        self._check_time(authorization)
        if "host" not in authorization.signed_headers:
            raise InvalidSignature("'Host' must be a 'SignedHeader' in the AWS Authorization.")
        authorization.check_form()
        _check_scope(authorization, service)
        credential = self._credentials.get(authorization.elements[0])
        if credential is None:
            raise UnrecognizedClient()
        if not same_signature(
            _expected(request, authorization, credential), authorization.signature
        ):
            raise InvalidSignature(_MISMATCH)
        if not same_signature(credential.session_token, authorization.session_token):
            raise UnrecognizedClient("The security token included in the request is invalid")
        return Scope(credential.account, authorization.elements[2])

    def _check_time(self, authorization: Authorization) -> None:
        signed_at = _parse(authorization.timestamp)
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        lifetime = _lifetime(authorization)
        if signed_at + lifetime < now:
            raise InvalidSignature(
                f"Signature expired: {authorization.timestamp} is now earlier than "
                f"{_text(now - lifetime)} ({_text(now)} - {_lifetime_text(authorization)})"
            )
        if signed_at - _TOLERANCE > now:
            raise InvalidSignature(
                f"Signature not yet current: {authorization.timestamp} is still later than "
                f"{_text(now + _TOLERANCE)} ({_text(now)} + {_TOLERANCE_TEXT})"
            )


def _check_scope(authorization: Authorization, expected: str) -> None:
    _, date, region, service, terminator = authorization.elements
    wrong: list[str] = []
    if not _REGION.fullmatch(region):
        wrong.append(f"Credential should be scoped to a valid region, not '{region}'. ")
    if service != expected:
        wrong.append(f"Credential should be scoped to correct service: '{expected}'. ")
    if terminator != TERMINATOR:
        wrong.append(
            f"Credential should be scoped with a valid terminator: '{TERMINATOR}', "
            f"not '{terminator}'. "
        )
    if date != authorization.timestamp[:8]:
        wrong.append(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
            f"HTTP: '{date}' != '{authorization.timestamp[:8]}', from '{authorization.timestamp}'."
        )
    if wrong:
        raise InvalidSignature("".join(wrong))


def _expected(request: HttpRequest, authorization: Authorization, credential: Credential) -> str:
    _, date, region, service, _ = authorization.elements
    leave_out = SIGNATURE_PARAMETER if authorization.presigned else ""
    canonical = canonical_request(request, authorization.signed_headers, leave_out=leave_out)
    text = string_to_sign(authorization.timestamp, "/".join(authorization.elements[1:]), canonical)
    return sign(signing_key(credential.secret_access_key, date, region, service), text)


def _lifetime(authorization: Authorization) -> timedelta:
    """Return how long after its date a request is valid.

    A presigned request states its own lifetime, up to seven days. Any other request is valid for
    the clock tolerance.
    """
    if authorization.expires_seconds.isdecimal():
        return timedelta(seconds=min(int(authorization.expires_seconds), 604_800))
    return _TOLERANCE


def _lifetime_text(authorization: Authorization) -> str:
    lifetime = _lifetime(authorization)
    return _TOLERANCE_TEXT if lifetime == _TOLERANCE else f"{int(lifetime.total_seconds())} sec."


@lru_cache(maxsize=256)
def _parse(timestamp: str) -> datetime:
    """Parse a timestamp. Cached, because requests of one second share it and strptime is slow."""
    try:
        if _BASIC_PATTERN.fullmatch(timestamp):
            return datetime.strptime(timestamp, _BASIC_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        pass  # the pattern allows a month 13
    raise IncompleteSignature(
        f"Date must be in ISO-8601 'basic format'. Got '{timestamp}'. "
        "See http://en.wikipedia.org/wiki/ISO_8601"
    )


def _text(moment: datetime) -> str:
    return moment.strftime(_BASIC_FORMAT)

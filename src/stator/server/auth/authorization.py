"""The authorization of a signed request, parsed from its header or its presigned query string.

Both forms hold the same five parts: algorithm, credential, signed headers, signature and date. One
AWS message lists every missing part, in a fixed order. The texts here are AWS's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stator.errors import IncompleteSignature, InvalidSignature, MissingAuthenticationToken
from stator.server.auth.signature import ALGORITHM, query_pairs
from stator.server.http.request import HttpRequest

SIGNATURE_PARAMETER = "X-Amz-Signature"
_HEADER_PARAMETERS = ("Credential", "Signature", "SignedHeaders")
_QUERY_PARAMETERS = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    SIGNATURE_PARAMETER,
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
)
_SEPARATORS = re.compile(r"[, ]+")


@dataclass(frozen=True, slots=True)
class Authorization:
    """A parsed authorization.

    ``elements`` are the parts of the credential: key id, date, region, service, terminator.
    """

    algorithm: str
    credential: str
    elements: tuple[str, ...]
    signed_headers: tuple[str, ...]
    signature: str
    timestamp: str
    session_token: str
    presigned: bool
    expires_seconds: str = ""

    def check_form(self) -> None:
        if self.algorithm != ALGORITHM:
            raise IncompleteSignature(
                f"Unsupported AWS 'algorithm': '{self.algorithm}' (only AWS4-HMAC-SHA256 for now). "
            )
        if len(self.elements) != 5:
            raise IncompleteSignature(
                "Credential must have exactly 5 slash-delimited elements, e.g. "
                f"keyid/date/region/service/term, got '{self.credential}'"
            )


def read_authorization(request: HttpRequest) -> Authorization:
    """Return the authorization of a request. Raises AWS's error if a part is missing."""
    header = request.headers.get(b"authorization", b"").decode("latin-1")
    query = dict(query_pairs(request.url)) if b"?" in request.url else {}
    if "X-Amz-Algorithm" in query:
        if header:
            raise InvalidSignature(
                "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP "
                "header."
            )
        return _from_query(query)
    if not header.startswith("AWS4-"):
        raise MissingAuthenticationToken()
    return _from_header(request, header)


def _from_header(request: HttpRequest, header: str) -> Authorization:
    algorithm, *pieces = (piece for piece in _SEPARATORS.split(header) if piece)
    parameters = dict(_key_and_value(piece, header) for piece in pieces)
    timestamp = request.headers.get(b"x-amz-date") or request.headers.get(b"date") or b""
    missing = [
        f"Authorization header requires '{name}' parameter. "
        for name in _HEADER_PARAMETERS
        if not parameters.get(name)
    ]
    if not timestamp:
        missing.append(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        )
    if missing:
        raise IncompleteSignature("".join(missing) + f"Authorization={header}")
    return Authorization(
        algorithm=algorithm,
        credential=parameters["Credential"],
        elements=_elements(parameters["Credential"]),
        signed_headers=_names(parameters["SignedHeaders"]),
        signature=parameters["Signature"],
        timestamp=timestamp.decode("latin-1"),
        session_token=request.headers.get(b"x-amz-security-token", b"").decode("latin-1"),
        presigned=False,
    )


def _from_query(query: dict[str, str]) -> Authorization:
    missing = [
        f"AWS query-string parameters must include '{name}'. "
        for name in _QUERY_PARAMETERS
        if not query.get(name)
    ]
    if missing:
        raise IncompleteSignature("".join(missing) + "Re-examine the query-string parameters.")
    return Authorization(
        algorithm=query["X-Amz-Algorithm"],
        credential=query["X-Amz-Credential"],
        elements=_elements(query["X-Amz-Credential"]),
        signed_headers=_names(query["X-Amz-SignedHeaders"]),
        signature=query[SIGNATURE_PARAMETER],
        timestamp=query["X-Amz-Date"],
        session_token=query.get("X-Amz-Security-Token", ""),
        presigned=True,
        expires_seconds=query.get("X-Amz-Expires", ""),
    )


def _key_and_value(piece: str, header: str) -> tuple[str, str]:
    key, equals, value = piece.partition("=")
    if not equals:
        raise IncompleteSignature(
            f"'{piece}' not a valid key=value pair (missing equal-sign) in Authorization header: "
            f"'{header}'."
        )
    return key, value


def _elements(credential: str) -> tuple[str, ...]:
    return tuple(credential.rstrip("/").split("/"))


def _names(signed_headers: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in signed_headers.split(";"))

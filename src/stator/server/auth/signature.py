"""AWS Signature Version 4 on the server: the signature that a request should carry.

Client and server share a secret. The client reduces its request to a canonical text, hashes it, and
signs the hash. The signing key is derived from the secret, the day, the region and the service. The
server does the same with the request it received and compares. Whether a request may pass is
decided in ``verifier``.

    canonical request      method, path, query, signed headers, their names, hash of the body
    string to sign         AWS4-HMAC-SHA256, time, scope, hash of the canonical request
    signature              HMAC(derived key, string to sign), in hex
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import quote, unquote

from stator.server.http.request import HttpRequest

ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@lru_cache(maxsize=1024)
def signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    """Return the signing key of a day, region and service: four HMACs, computed once per day."""
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def query_pairs(url: bytes) -> list[tuple[str, str]]:
    """Return the decoded names and values of the query string.

    A plus sign stays a plus, as on AWS.
    """
    query = url.partition(b"?")[2].partition(b"#")[0].decode("latin-1")
    pairs = (piece.partition("=") for piece in query.split("&") if piece)
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def canonical_request(
    request: HttpRequest, signed_headers: Sequence[str], *, leave_out: str = ""
) -> str:
    """Return the canonical form of a request.

    ``leave_out`` names the query parameter that carries the signature itself, if any.
    """
    headers = "".join(f"{name}:{_header_value(request, name)}\n" for name in signed_headers)
    return "\n".join(
        (
            request.method.decode("latin-1"),
            _canonical_path(request.url),
            _canonical_query(request.url, leave_out),
            headers,
            ";".join(signed_headers),
            hashlib.sha256(request.body).hexdigest(),
        )
    )


def string_to_sign(timestamp: str, scope: str, canonical: str) -> str:
    return "\n".join(
        (ALGORITHM, timestamp, scope, hashlib.sha256(canonical.encode("latin-1")).hexdigest())
    )


def sign(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode("latin-1"), "sha256").hex()


def same_signature(expected: str, given: str) -> bool:
    """Whether two signatures are equal, compared in constant time.

    The time it takes therefore does not reveal how much of a guessed signature is right.
    """
    return hmac.compare_digest(expected.encode(), given.encode("latin-1"))


def _canonical_path(url: bytes) -> str:
    path = url.partition(b"?")[0].decode("latin-1") or "/"
    return quote(path, safe="/~", encoding="latin-1")


def _canonical_query(url: bytes, leave_out: str) -> str:
    if b"?" not in url:
        return ""
    encoded = sorted(
        (quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED))
        for name, value in query_pairs(url)
        if name != leave_out
    )
    return "&".join(f"{name}={value}" for name, value in encoded)


def _header_value(request: HttpRequest, name: str) -> str:
    return " ".join(request.headers.get(name.encode("latin-1"), b"").decode("latin-1").split())

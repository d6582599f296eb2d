"""Identifies the caller of a request, and so the owner of the tables it uses.

The *form* of the authorization is always checked, so a header that AWS would reject fails here,
too. Date, scope and signature are checked only if the server has credentials. Without credentials,
the server accepts any key, as a local server should.

For a whole day an SDK sends the same header, except for the signature at its end. Without
credentials, the scope is therefore cached by the part before the signature, and the usual request
costs one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Mapping

from stator.clock import Clock
from stator.model.scope import Scope
from stator.server.auth.authorization import read_authorization
from stator.server.auth.credentials import Credential, account_of_key
from stator.server.auth.verifier import Verifier
from stator.server.http.request import HttpRequest

# The bounds of the cache of scopes. It needs them because anyone can invent key ids.
_REMEMBERED = 10_000
_LONGEST_BYTES = 1000


class Authenticator:
    def __init__(self, credentials: Mapping[str, Credential] | None, clock: Clock) -> None:
        self._verifier = None if credentials is None else Verifier(credentials, clock)
        self._scopes: dict[bytes, Scope] = {}

    def scope_of(self, request: HttpRequest, service: str) -> Scope:
        """Return the caller's account and region. Raises the error that AWS would return.

        ``service`` is the signing name that the request must be signed for.
        """
        if self._verifier is not None:
            return self._verifier.verify(request, read_authorization(request), service)
        headers = request.headers
        stem, _, signature = headers.get(b"authorization", b"").rpartition(b" Signature=")
        scope = self._scopes.get(stem)
        if (
            scope is None
            or not signature.isalnum()
            or b"x-amz-date" not in headers
            or request.url != b"/"
        ):
            return self._read(request, stem if signature.isalnum() else b"")
        return scope

    def _read(self, request: HttpRequest, stem: bytes) -> Scope:
        authorization = read_authorization(request)
        authorization.check_form()
        scope = Scope(account_of_key(authorization.elements[0]), authorization.elements[2])
        if 0 < len(stem) <= _LONGEST_BYTES and not authorization.presigned:
            self._remember(stem, scope)
        return scope

    def _remember(self, stem: bytes, scope: Scope) -> None:
        if len(self._scopes) >= _REMEMBERED:
            self._scopes.clear()
        self._scopes[stem] = scope

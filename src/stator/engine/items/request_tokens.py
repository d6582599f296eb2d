"""Client request tokens: a transaction that is sent twice within ten minutes runs only once.

A token is stored in the same batch as its transaction, so that a crash cannot separate them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import orjson

from stator.clock import Clock
from stator.engine import keyspace
from stator.errors import IdempotentParameterMismatch
from stator.model.limits import TRANSACTION_TOKEN_SECONDS
from stator.model.scope import Scope
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

_TOKENS = keyspace.META + b"k"
_CLEAN_EVERY = 1000


class RequestTokens:
    """Remembers client request tokens in storage, and forgets expired tokens."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._uses = 0

    def seen(self, scope: Scope, token: str, fingerprint: str) -> bool:
        """Whether the same request was carried out with this token in the last ten minutes.

        Raises IdempotentParameterMismatch if another request used the token.
        """
        stored = self._storage.get(_key(scope, token))
        if stored is None:
            return False
        record = orjson.loads(stored)
        if record["expires"] <= self._clock.now():
            return False
        if record["fingerprint"] != fingerprint:
            raise IdempotentParameterMismatch
        return True

    def remember(self, scope: Scope, token: str, fingerprint: str, changes: Changes) -> None:
        expires = self._clock.now() + TRANSACTION_TOKEN_SECONDS
        changes[_key(scope, token)] = orjson.dumps({"expires": expires, "fingerprint": fingerprint})
        self._uses += 1
        if self._uses % _CLEAN_EVERY == 0:
            self._clean(changes)

    def _clean(self, changes: Changes) -> None:
        now = self._clock.now()
        for key, value in self._storage.scan(_TOKENS, after_prefix(_TOKENS)):
            if orjson.loads(value)["expires"] <= now:
                changes[key] = None


def fingerprint(request: Any) -> str:
    """Return a hash of the part of a request that must be the same when its token is repeated."""
    return sha256(orjson.dumps(request, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _key(scope: Scope, token: str) -> bytes:
    return _TOKENS + f"{scope.account}/{scope.region}/{token}".encode()

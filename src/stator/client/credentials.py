"""Credentials, found as boto3 finds them: by botocore's own resolver, from the environment, profiles, SSO, web identity, processes,
containers and instances, and refreshed by it before they expire.

botocore has two windows (RefreshableCredentials): a quarter of an hour before the end a refresh is due, and from ten minutes before
it nobody signs without one. Between the two whoever finds a refresh under way goes on with what is held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from stator.errors import CredentialsMissing

# Of botocore: with less left than this, credentials are not used without a refresh.
_MANDATORY_SECONDS = 600
# Sessions of a quarter of an hour, and a service that is away, leave a refresh due for long: it is not tried at each call.
_AGAIN_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    token: str | None = None


class CredentialSource(Protocol):
    def fresh(self) -> Credentials | None:
        """Those to sign with now, or None if somebody has to be asked first. Never does I/O."""
        ...

    def meanwhile(self) -> Credentials | None:
        """Those that are still good enough while somebody is asked. Never does I/O."""
        ...

    def current(self) -> Credentials:
        """Those to sign with now; may do I/O."""
        ...


class Fixed:
    """Credentials that never change."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def fresh(self) -> Credentials:
        return self._credentials

    def meanwhile(self) -> Credentials:
        return self._credentials

    def current(self) -> Credentials:
        return self._credentials


# Any will do for an endpoint that does not check them, such as the embedded server and DynamoDB Local.
ANYBODY = Credentials("stator", "stator")


class Botocore:
    """Whatever botocore's resolver finds in a session. Looking may ask the network, or start a process: ``find`` does it now, else the
    first ``current`` does."""

    def __init__(self, session: Any, *, on_aws: bool) -> None:
        self._session = session
        self._on_aws = on_aws
        self._found: Any = None
        self._held: Credentials | None = None
        self._meanwhile: Credentials | None = None
        self._lock = threading.Lock()
        self._asking = False
        self._again_at = 0.0

    def fresh(self) -> Credentials | None:
        found = self._found
        if found is None or (self._due() and not self._may_wait()):
            return None
        # In this order: new ones may have come since, and then what is held is read after they were put there.
        return None if self._asking else self._held

    def meanwhile(self) -> Credentials | None:
        return None if self._found is None or self._due(_MANDATORY_SECONDS) else self._held

    def current(self) -> Credentials:
        fresh = self.fresh()
        if fresh is not None:
            return fresh
        if not self._lock.acquire(blocking=False):
            meanwhile = self._meanwhile
            if meanwhile is not None:
                return meanwhile
            self._lock.acquire()
        try:
            return self.fresh() or self._asked()
        finally:
            self._lock.release()

    def find(self) -> None:
        with self._lock:
            self._look()

    def _may_wait(self) -> bool:
        return time.monotonic() < self._again_at and not self._due(_MANDATORY_SECONDS)

    def _due(self, *within_seconds: int) -> bool:
        refresh_needed = getattr(self._found, "refresh_needed", None)
        return refresh_needed is not None and bool(refresh_needed(*within_seconds))

    def _asked(self) -> Credentials:
        self._meanwhile = self.meanwhile()
        self._asking = True
        try:
            self._look()
            frozen = self._explained(self._found.get_frozen_credentials)
            self._held = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            self._again_at = time.monotonic() + _AGAIN_AFTER_SECONDS if self._due() else 0.0
            return self._held
        finally:
            self._asking = False
            self._meanwhile = None

    def _look(self) -> None:
        if self._found is not None:
            return
        if not self._on_aws:
            resolver = self._session.get_component("credential_provider")
            for provider in ("container-role", "iam-role"):
                resolver.remove(provider)
        found = self._explained(self._session.get_credentials)
        if found is not None:
            self._found = found
        elif self._on_aws:
            raise CredentialsMissing(
                "no AWS credentials were found: not in the environment, nor in a profile, and no container or instance gives any"
            )
        else:
            from botocore.credentials import Credentials as Held

            self._found = Held(ANYBODY.access_key, ANYBODY.secret_key)

    def _explained(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except CredentialsMissing:
            raise
        except Exception as error:  # of botocore's, of the files it reads, and of replies that are not as it thinks
            provider = getattr(self._found, "method", None)
            shown = (
                f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
            )
            by = "" if provider is None else f" by {provider}"
            raise CredentialsMissing(
                f"AWS credentials are configured, but could not be got{by}: {shown}",
                hint=_hint(error, provider),
            ) from error


def _hint(error: Exception, provider: str | None) -> str:
    from botocore.exceptions import ClientError, LoginError, SSOError, TokenRetrievalError

    if isinstance(error, (SSOError, TokenRetrievalError)):
        return "run `aws sso login`, with --profile if it is not the default one"
    if isinstance(error, LoginError):
        return "run `aws login`, with --profile if it is not the default one"
    if isinstance(error, ClientError):
        return "may who asks take this role? look at its trust policy, and at the source profile or the token"
    if provider == "assume-role-with-web-identity":
        return "look at AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or their lines in the profile"
    if provider in ("container-role", "iam-role") or "container" in str(error):
        return "is a role attached, and does its endpoint answer? look at AWS_CONTAINER_CREDENTIALS_* and AWS_EC2_METADATA_*"
    return "look at the profile in ~/.aws/config, and at AWS_PROFILE"

"""AWS credentials, found and refreshed by botocore's own resolver, as in boto3.

The resolver reads the environment, profiles, SSO, web identity, processes, containers and
instances.

botocore has two time limits (RefreshableCredentials). A refresh is due fifteen minutes before the
credentials expire. In the last ten minutes, nothing is signed until a refresh has succeeded.
Between the two limits, a caller that finds a refresh in flight uses the present credentials.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from stator.errors import CredentialsMissing

# botocore's rule: with less time left than this, credentials are not used without a refresh.
_MANDATORY_SECONDS = 600
# With sessions of fifteen minutes, or a service that is down, a refresh stays due for long. It is
# not tried again at each call, but after this time.
_AGAIN_AFTER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    token: str | None = None


class CredentialSource(Protocol):
    def fresh(self) -> Credentials | None:
        """Return the credentials, or None if they must be fetched first. Never does I/O."""
        ...

    def interim(self) -> Credentials | None:
        """Return credentials that are still usable during a refresh, or None. Never does I/O."""
        ...

    def current(self) -> Credentials:
        """Return the credentials to sign with; may do I/O."""
        ...


class Fixed:
    """Credentials that never change."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def fresh(self) -> Credentials:
        return self._credentials

    def interim(self) -> Credentials:
        return self._credentials

    def current(self) -> Credentials:
        return self._credentials


# For endpoints that check no credentials, such as the embedded server and DynamoDB Local.
ANYBODY = Credentials("stator", "stator")


class Botocore:
    """The credentials that botocore's resolver finds in a session.

    The search may use the network or start a process. It runs when ``find`` is called, or else at
    the first call of ``current``.
    """

    def __init__(self, session: Any, *, on_aws: bool) -> None:
        self._session = session
        self._on_aws = on_aws
        self._found: Any = None
        self._held: Credentials | None = None
        self._interim: Credentials | None = None
        self._lock = threading.Lock()
        self._asking = False
        self._again_at = 0.0

    def fresh(self) -> Credentials | None:
        found = self._found
        if found is None or (self._due() and not self._may_wait()):
            return None
        # In this order: a refresh that ends in between has stored its result before the flag is
        # cleared.
        return None if self._asking else self._held

    def interim(self) -> Credentials | None:
        return None if self._found is None or self._due(_MANDATORY_SECONDS) else self._held

    def current(self) -> Credentials:
        fresh = self.fresh()
        if fresh is not None:
            return fresh
        if not self._lock.acquire(blocking=False):
            interim = self._interim
            if interim is not None:
                return interim
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
        self._interim = self.interim()
        self._asking = True
        try:
            self._look()
            frozen = self._explained(self._found.get_frozen_credentials)
            self._held = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            self._again_at = time.monotonic() + _AGAIN_AFTER_SECONDS if self._due() else 0.0
            return self._held
        finally:
            self._asking = False
            self._interim = None

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
                "no AWS credentials were found in the environment, a profile, a container or an "
                "instance"
            )
        else:
            from botocore.credentials import Credentials as Held

            self._found = Held(ANYBODY.access_key, ANYBODY.secret_key)

    def _explained(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except CredentialsMissing:
            raise
        except Exception as error:  # botocore's own, and those of files and replies it cannot read
            provider = getattr(self._found, "method", None)
            shown = (
                f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else str(error)
            )
            by = "" if provider is None else f" by {provider}"
            raise CredentialsMissing(
                f"AWS credentials are configured, but could not be fetched{by}: {shown}",
                hint=_hint(error, provider),
            ) from error


def _hint(error: Exception, provider: str | None) -> str:
    from botocore.exceptions import ClientError, LoginError, SSOError, TokenRetrievalError

    if isinstance(error, (SSOError, TokenRetrievalError)):
        return "run `aws sso login`, with --profile if it is not the default one"
    if isinstance(error, LoginError):
        return "run `aws login`, with --profile if it is not the default one"
    if isinstance(error, ClientError):
        return "check the trust policy of the role, and the source profile or token that assumes it"
    if provider == "assume-role-with-web-identity":
        return "check AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or their lines in the profile"
    if provider in ("container-role", "iam-role") or "container" in str(error):
        return (
            "check that a role is attached and that its endpoint answers: "
            "AWS_CONTAINER_CREDENTIALS_* and AWS_EC2_METADATA_*"
        )
    return "check the profile in ~/.aws/config, and AWS_PROFILE"

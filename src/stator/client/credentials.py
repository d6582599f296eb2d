"""Credentials, found as boto3 finds them: by botocore's own resolver, from the environment, profiles, SSO, web identity, processes,
containers and instances, and refreshed by it before they expire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from stator.errors import CredentialsMissing


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str
    secret_key: str
    token: str | None = None


class CredentialSource(Protocol):
    def current(self) -> Credentials:
        """Those to sign with now; may do I/O when ``is_fresh`` says no."""
        ...

    def is_fresh(self) -> bool: ...


class Fixed:
    """Credentials that never change."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def current(self) -> Credentials:
        return self._credentials

    def is_fresh(self) -> bool:
        return True


class Botocore:
    """Whatever botocore's resolver found."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self._frozen: Any = None
        self._current: Credentials | None = None

    def current(self) -> Credentials:
        frozen = self._found.get_frozen_credentials()
        if frozen is not self._frozen or self._current is None:
            self._frozen = frozen
            self._current = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
        return self._current

    def is_fresh(self) -> bool:
        refresh_needed = getattr(self._found, "refresh_needed", None)
        return refresh_needed is None or not refresh_needed()


# Any will do for an endpoint that does not check them, such as the embedded server and DynamoDB Local.
ANYBODY = Credentials("stator", "stator")


def find_credentials(session: Any, *, on_aws: bool) -> CredentialSource:
    """Those of a botocore session. An endpoint of one's own is content with any, and never asks the network for them."""
    if not on_aws:
        resolver = session.get_component("credential_provider")
        for provider in ("container-role", "iam-role"):
            resolver.remove(provider)
    found = session.get_credentials()
    if found is not None:
        return Botocore(found)
    if on_aws:
        raise CredentialsMissing("no AWS credentials were found")
    return Fixed(ANYBODY)

"""Opens clients from an address and options.

botocore supplies credentials, profiles, regions and endpoint URLs; the rest is Stator's own code.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final, Literal

from stator.client.async_client import AsyncClient
from stator.client.async_credentials import AsyncCredentials
from stator.client.credentials import Botocore, Credentials, Fixed
from stator.client.endpoint import Endpoint, aws_url
from stator.client.exchange import Exchange, Limits
from stator.client.retry import RetryPolicy
from stator.client.service_router import AsyncServiceRouter, ServiceRouter
from stator.client.sync_client import Client
from stator.clock import Clock, SystemClock
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_REGION
from stator.model.seconds import check_seconds
from stator.transport import AsyncTransport, Transport

Kind = Literal["http", "aws"]
_SECONDS: Final = {"connect_timeout_seconds", "read_timeout_seconds", "max_backoff_seconds"}


def open_client(kind: Kind, where: str, clock: Clock | None, options: dict[str, Any]) -> Transport:
    target = _Target(kind, where, options)
    if isinstance(target.credentials, Botocore):
        target.credentials.find()

    def client(endpoint: Endpoint) -> Client:
        return Client(target.exchange(endpoint, clock), target.credentials)

    if kind == "http":
        return client(target.endpoint)
    return ServiceRouter(client(target.endpoint), lambda: client(target.streams_endpoint()))


def open_async_client(
    kind: Kind, where: str, clock: Clock | None, options: dict[str, Any]
) -> AsyncTransport:
    """Open an asyncio client. Its first call finds the credentials, in a thread."""
    target = _Target(kind, where, options)
    credentials = AsyncCredentials(target.credentials)

    def client(endpoint: Endpoint) -> AsyncClient:
        return AsyncClient(target.exchange(endpoint, clock), credentials)

    if kind == "http":
        return client(target.endpoint)
    return AsyncServiceRouter(client(target.endpoint), lambda: client(target.streams_endpoint()))


class _Target:
    """The target of a client: endpoint, region, credentials and limits."""

    def __init__(self, kind: Kind, where: str, options: dict[str, Any]) -> None:
        self._options = dict(options)
        for name in _SECONDS & options.keys():
            or_zero = name == "max_backoff_seconds"
            check_seconds("connect()", or_zero=or_zero, **{name: options[name]})
        session = self._session()
        self._open_session = session
        self.region = self._region(kind, where, session)
        # botocore asks STS for roles in the same region.
        session.set_config_variable("region", self.region)
        self.credentials = self._credentials(kind, session)
        self._route = {
            name: self._options.pop(name)
            for name in ("ca_bundle", "proxy")
            if name in self._options
        }
        self.endpoint = self._endpoint(where if kind == "http" else aws_url(session, self.region))
        self.limits = self._limits()
        if self._options:
            raise ConfigurationError(
                f"the option {next(iter(self._options))} applies only to the embedded engine",
                hint=f"leave it out for {where or 'AWS'}",
            )

    def _session(self) -> Any:
        import botocore.session
        from botocore.exceptions import ProfileNotFound

        profile = self._options.pop("profile", None)
        session = botocore.session.Session(profile=profile)
        try:
            session.get_scoped_config()
        except ProfileNotFound as error:
            raise ConfigurationError(
                str(error), hint="list the profiles with `aws configure list-profiles`"
            ) from None
        return session

    def _region(self, kind: Kind, where: str, session: Any) -> str:
        given = self._options.pop("region", None) or (where if kind == "aws" else None)
        region = given or session.get_config_variable("region") or os.environ.get("AWS_REGION")
        if region is None and kind == "aws":
            raise ConfigurationError(
                "the address aws:// names no region, and none is configured",
                hint="write it as aws://eu-west-1, or set AWS_DEFAULT_REGION",
            )
        return str(region or DEFAULT_REGION)

    def _credentials(self, kind: Kind, session: Any) -> Fixed | Botocore:
        access = self._options.pop("access_key_id", None)
        secret = self._options.pop("secret_access_key", None)
        token = self._options.pop("session_token", None)
        if (access is None) != (secret is None):
            raise ConfigurationError(
                "access_key_id and secret_access_key belong together",
                hint="pass both, or neither to use boto3's credential chain",
            )
        if access is not None and secret is not None:
            return Fixed(Credentials(access, secret, token))
        return Botocore(session, on_aws=kind == "aws")

    def streams_endpoint(self) -> Endpoint:
        """Return the endpoint of DynamoDB Streams, a second AWS service, with the same settings."""
        return self._endpoint(aws_url(self._open_session, self.region, "dynamodbstreams"))

    def exchange(self, endpoint: Endpoint, clock: Clock | None) -> Exchange:
        return Exchange(endpoint, self.region, self.limits, clock or SystemClock())

    def _endpoint(self, url: str) -> Endpoint:
        return Endpoint.of_url(
            url,
            ca_bundle=self._route.get("ca_bundle", True),
            proxy=self._route.get("proxy"),
            use_environment="proxy" not in self._route,
        )

    def _limits(self) -> Limits:
        options, usual = self._options, Limits()
        policy = RetryPolicy(
            max_attempts=options.pop("max_attempts", usual.policy.max_attempts),
            max_backoff_seconds=options.pop(
                "max_backoff_seconds", usual.policy.max_backoff_seconds
            ),
        )
        if policy.max_attempts < 1:
            raise ConfigurationError(
                f"max_attempts={policy.max_attempts} must be at least 1",
                hint="use 1 to send each request once, without retries",
            )
        names = ("connect_timeout_seconds", "read_timeout_seconds", "max_connections")
        given = {name: options.pop(name) for name in names if name in options}
        for name, value in given.items():
            if value <= 0:
                raise ConfigurationError(f"{name}={value} must be greater than 0")
        return replace(usual, policy=policy, **given)

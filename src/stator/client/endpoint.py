"""The endpoint of a client: the parts of its URL, its TLS context and its proxy."""

from __future__ import annotations

import os
import ssl
from base64 import b64encode
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from stator.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Proxy:
    """The HTTP proxy through which a client reaches its endpoint.

    ``authorization`` is the Proxy-Authorization header, if the proxy's URL names a user.
    """

    host: str
    port: int
    authorization: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int
    path: str
    tls: ssl.SSLContext | None
    proxy: Proxy | None = None

    @property
    def authority(self) -> str:
        """The Host header. It includes the port unless that is the scheme's default."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return (
            shown if self.port == (443 if self.tls is not None else 80) else f"{shown}:{self.port}"
        )

    @property
    def address(self) -> str:
        """The URL without credentials, for messages."""
        return f"{'http' if self.tls is None else 'https'}://{self.authority}"

    @property
    def request_path(self) -> str:
        """The path in the request line. A proxy for plain HTTP needs the whole URL there."""
        return (
            f"http://{self.authority}{self.path}"
            if self.proxy is not None and self.tls is None
            else self.path
        )

    @classmethod
    def of_url(
        cls,
        url: str,
        *,
        ca_bundle: str | bool = True,
        proxy: str | None = None,
        use_environment: bool = True,
    ) -> Endpoint:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"{url!r} is not an http or https URL", hint="write it as http://localhost:8000"
            )
        secure = parts.scheme == "https"
        try:
            port = parts.port or (443 if secure else 80)
        except ValueError as error:
            raise ConfigurationError(
                f"{url!r} has an invalid port: {error}", hint="use a port from 1 to 65535"
            ) from None
        if proxy is None and use_environment:
            proxy = environment_proxy(parts.scheme, parts.hostname)
        return cls(
            parts.hostname,
            port,
            parts.path or "/",
            tls_context(ca_bundle) if secure else None,
            None if proxy is None else _proxy(proxy),
        )


def environment_proxy(scheme: str, host: str) -> str | None:
    return None if proxy_bypass(host) else getproxies().get(scheme)


def _proxy(url: str) -> Proxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not parts.hostname or parts.scheme != "http":
        raise ConfigurationError(
            f"{url!r} is not the URL of an HTTP proxy",
            hint="write it as http://proxy.example.com:3128",
        )
    authorization = None
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(user.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or 3128, authorization)


def tls_context(ca_bundle: str | bool) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in the file ``ca_bundle``.

    With ``ca_bundle=True``, it trusts the file that AWS_CA_BUNDLE names, or else the system's
    certificates. With ``ca_bundle=False``, certificates are not checked at all.
    """
    if ca_bundle is False:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    file = ca_bundle if isinstance(ca_bundle, str) else os.environ.get("AWS_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the certificates in {file} cannot be read: {error}",
            hint="use a file in PEM format",
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def aws_url(session: Any, region: str, service: str = "dynamodb") -> str:
    """Return the URL of DynamoDB or ``dynamodbstreams`` in a region, by botocore's endpoint rules.

    The rules cover partitions, FIPS and dual stack. botocore itself reads profiles,
    AWS_ENDPOINT_URL, and the variants of that variable for one service.
    """
    client = session.create_client(
        service,
        region_name=region,
        aws_access_key_id="unused",
        aws_secret_access_key="unused",  # noqa: S106 - none is sent
    )
    return str(client.meta.endpoint_url)

"""The settings of a server, and the TLS context for its certificate."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stator.clock import Clock, SystemClock
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_REGION
from stator.server.auth.credentials import Credential
from stator.server.http.limits import ServerLimits


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The settings of a server.

    ``port`` 0 picks a free port. Without ``credentials``, signatures are not verified.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    tls: ssl.SSLContext | None = None
    credentials: Mapping[str, Credential] | None = None
    region: str = DEFAULT_REGION
    limits: ServerLimits = field(default_factory=ServerLimits)
    clock: Clock = field(default_factory=SystemClock)
    stop_seconds: float = 10.0


def server_context(certificate: str | Path, key: str | Path | None = None) -> ssl.SSLContext:
    """Return a TLS context. ``key`` may be omitted if the certificate's file also holds the key."""
    for path in (certificate, key):
        if path is not None and not Path(path).is_file():
            raise ConfigurationError(
                f"the certificate or key file {path} does not exist",
                hint="use existing files in PEM format",
            )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        detail = getattr(error, "reason", None) or str(error)
        raise ConfigurationError(
            f"the certificate {certificate} cannot be used: {detail}",
            hint="use PEM files that belong together, and a key without a password",
        ) from error
    return context

"""What can be chosen about a server."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from stator.clock import Clock, SystemClock
from stator.model.scope import DEFAULT_REGION
from stator.server.auth.credentials import Credential
from stator.server.http.limits import ServerLimits


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """``port`` 0 takes a free one. Without ``credentials`` signatures are not verified."""

    host: str = "127.0.0.1"
    port: int = 8000
    tls: ssl.SSLContext | None = None
    credentials: Mapping[str, Credential] | None = None
    region: str = DEFAULT_REGION
    limits: ServerLimits = field(default_factory=ServerLimits)
    clock: Clock = field(default_factory=SystemClock)
    stop_seconds: float = 10.0

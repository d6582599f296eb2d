"""The server's certificate, with errors that say which file is wrong."""

from __future__ import annotations

import ssl
from pathlib import Path

from stator.errors import ConfigurationError


def server_context(certificate: str | Path, key: str | Path | None = None) -> ssl.SSLContext:
    """``key`` may be left out when the certificate's file holds it too."""
    for path in (certificate, key):
        if path is not None and not Path(path).is_file():
            raise ConfigurationError(
                f"there is no file {path}", hint="give a certificate and a key in PEM form"
            )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        detail = getattr(error, "reason", None) or str(error)
        raise ConfigurationError(
            f"the certificate {certificate} cannot be used: {detail}",
            hint="certificate and key must be PEM files that belong together, the key without a password",
        ) from error
    return context

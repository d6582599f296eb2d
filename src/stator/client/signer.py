"""AWS Signature Version 4 for one kind of request: POST of a JSON body to one host.

The signing key depends only on the secret, the day, the region and the service, so it is computed
once a day. The constant parts of the canonical request are also joined only once. Each request then
costs two hashes and one HMAC.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256
from typing import Final

from stator.client.credentials import Credentials

SERVICE: Final = "dynamodb"
_TYPE: Final = "application/x-amz-json-1.0"


class Signer:
    """Signs requests.

    ``offset_seconds`` is how far the server's clock is ahead of ours; it is 0 until a reply shows
    otherwise. Threads share a signer: cached values are replaced as a whole, never modified.
    """

    def __init__(self, host: str, path: str, region: str) -> None:
        self.host = host
        self.path = path
        self.region = region
        self.offset_seconds = 0.0
        self._times = (-1, "", "")
        self._key = (("", ""), b"")

    def head(self, target: str, body: bytes, credentials: Credentials, now: float) -> str:
        """Return the request line and headers, ready to send before the body."""
        moment, scope = self._time(int(now + self.offset_seconds))
        token = credentials.token
        tokened = f"x-amz-security-token:{token}\n" if token else ""
        names = _NAMES_WITH_TOKEN if token else _NAMES
        canonical = (
            f"POST\n{self.path}\n\ncontent-type:{_TYPE}\nhost:{self.host}\nx-amz-date:{moment}\n"
            f"{tokened}x-amz-target:{target}\n\n{names}\n{sha256(body).hexdigest()}"
        )
        to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        key = self._signing_key(credentials.secret_key, moment[:8])
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        session = f"X-Amz-Security-Token: {token}\r\n" if token else ""
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: {_TYPE}\r\n"
            f"X-Amz-Target: {target}\r\nX-Amz-Date: {moment}\r\n{session}"
            f"Authorization: AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}\r\nContent-Length: {len(body)}\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: stator\r\n\r\n"
        )

    def _time(self, second: int) -> tuple[str, str]:
        """Return an epoch second in AWS's notation, and the credential scope of its day.

        The result for the latest second is cached.
        """
        known, moment, scope = self._times
        if known != second:
            moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
            scope = f"{moment[:8]}/{self.region}/{SERVICE}/aws4_request"
            self._times = (second, moment, scope)
        return moment, scope

    def _signing_key(self, secret: str, day: str) -> bytes:
        known, key = self._key
        if known != (secret, day):
            key = b"AWS4" + secret.encode()
            for part in (day, self.region, SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key = ((secret, day), key)
        return key


_NAMES: Final = "content-type;host;x-amz-date;x-amz-target"
_NAMES_WITH_TOKEN: Final = _NAMES.replace("x-amz-target", "x-amz-security-token;x-amz-target")

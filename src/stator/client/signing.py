"""AWS Signature Version 4 for one kind of request: POST of a JSON body to one host.

The signing key depends on the secret, the day, the region and the service only, so it is computed once a day; the parts of the canonical
request that never change are put together once. What remains per request are two hashes and one HMAC.
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
    """``offset_seconds`` is what the server's clock is ahead of ours, once that was found out."""

    def __init__(self, host: str, path: str, region: str) -> None:
        self.host = host
        self.path = path
        self.region = region
        self.offset_seconds = 0.0
        self._second = -1
        self._moment = ""
        self._day = ""
        self._key = b""
        self._key_for: tuple[str, str] = ("", "")
        self._scope = ""

    def head(self, target: str, body: bytes, credentials: Credentials, now: float) -> str:
        """The request line and headers, ready to send; the body follows."""
        self._set_time(int(now + self.offset_seconds))
        moment, token = self._moment, credentials.token
        tokened = f"x-amz-security-token:{token}\n" if token else ""
        names = "content-type;host;x-amz-date;x-amz-security-token;x-amz-target" if token else _NAMES
        canonical = (
            f"POST\n{self.path}\n\ncontent-type:{_TYPE}\nhost:{self.host}\nx-amz-date:{moment}\n{tokened}"
            f"x-amz-target:{target}\n\n{names}\n{sha256(body).hexdigest()}"
        )
        to_sign = f"AWS4-HMAC-SHA256\n{moment}\n{self._scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(credentials.secret_key), to_sign.encode(), "sha256").hex()
        session = f"X-Amz-Security-Token: {token}\r\n" if token else ""
        return (
            f"POST {self.path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: {_TYPE}\r\nX-Amz-Target: {target}\r\n"
            f"X-Amz-Date: {moment}\r\n{session}Authorization: AWS4-HMAC-SHA256 Credential={credentials.access_key}/"
            f"{self._scope}, SignedHeaders={names}, Signature={signature}\r\nContent-Length: {len(body)}\r\n"
            "Accept-Encoding: identity\r\nUser-Agent: stator\r\n\r\n"
        )

    def _set_time(self, second: int) -> None:
        if second == self._second:
            return
        self._second = second
        self._moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        self._day = self._moment[:8]
        self._scope = f"{self._day}/{self.region}/{SERVICE}/aws4_request"

    def _signing_key(self, secret: str) -> bytes:
        if self._key_for != (secret, self._day):
            key = b"AWS4" + secret.encode()
            for part in (self._day, self.region, SERVICE, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key, self._key_for = key, (secret, self._day)
        return self._key


_NAMES: Final = "content-type;host;x-amz-date;x-amz-target"

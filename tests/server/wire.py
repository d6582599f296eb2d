"""A client that sees the bytes: sends what it is told and takes replies apart without mercy."""

from __future__ import annotations

import gzip
import socket
import zlib
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import orjson

TIMEOUT_SECONDS = 30
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0123456789abcdef"
)


@dataclass
class WireReply:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> bytes:
        match self.headers.get("content-encoding"):
            case "gzip":
                return gzip.decompress(self.raw)
            case "deflate":
                return zlib.decompress(self.raw)
        return self.raw

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    def check_crc32(self) -> None:
        assert int(self.headers["x-amz-crc32"]) == zlib.crc32(self.raw)


def request_bytes(
    body: bytes | str = b"{}",
    *,
    operation: str | None = "GetItem",
    method: str = "POST",
    path: str = "/",
    version: str = "1.1",
    headers: dict[str, str | None] | None = None,
    length: bool = True,
) -> bytes:
    """A request as an SDK sends it; a header of None is left out."""
    payload = body.encode() if isinstance(body, str) else body
    lines: dict[str, str | None] = {
        "Host": "localhost",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": None if operation is None else f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": AUTHORIZATION,
        "Content-Length": str(len(payload)) if length else None,
    }
    lines |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode() + payload


class WireClient:
    def __init__(self, port: int, sock: socket.socket | None = None) -> None:
        self.sock = sock or socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def ask(self, body: bytes | str = b"{}", **how: Any) -> WireReply:
        self.send(request_bytes(body, **how))
        return self.read(without_body=how.get("method") == "HEAD")

    def read(self, *, without_body: bool = False) -> WireReply:
        status_line = self._file.readline()
        assert status_line, "the server closed the connection instead of answering"
        version, status, *_ = status_line.split()
        assert version == b"HTTP/1.1"
        headers = self._read_headers()
        return WireReply(int(status), headers, b"" if without_body else self._read_body(headers))

    def is_closed(self) -> bool:
        """Wait for the end of the stream."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            assert name.lower() not in headers, f"{name} came twice"
            headers[name.lower()] = value.strip()
        return headers

    def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            assert self._file.read(5) == b"0\r\n\r\n"
            return b""
        return self._file.read(int(headers.get("content-length", "0")))

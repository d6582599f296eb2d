"""Blob stores: where large values go when they leave the table.

``S3Store`` is S3 or anything that speaks its protocol. ``FolderStore`` is a folder, for programs on
one machine and for tests.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from stator.errors import BlobMissing, ConfigurationError


class BlobStore(Protocol):
    """Stores bytes under names.

    Its methods block; callers that must not block run them in threads.
    """

    def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes:
        """Return the bytes. Raises BlobMissing if there is no such blob."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs. Missing blobs are ignored."""
        ...

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield every key with this prefix, and the time it was written."""
        ...


class FolderStore:
    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def put(self, key: str, content: bytes) -> None:
        """Write all or nothing: write a temporary file, then rename it to its final name."""
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def get(self, key: str) -> bytes:
        try:
            return (self._folder / key).read_bytes()
        except FileNotFoundError:
            raise BlobMissing(key) from None

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            (self._folder / key).unlink(missing_ok=True)

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        for path in sorted(self._folder.rglob("*")):
            key = path.relative_to(self._folder).as_posix()
            if path.is_file() and key.startswith(prefix) and not path.name.startswith("."):
                yield key, path.stat().st_mtime


class S3Store:
    """A store in S3. ``client`` is a botocore or boto3 S3 client; by default, boto3 creates one."""

    def __init__(self, bucket: str, prefix: str = "", *, client: Any = None) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client = client or _s3_client()

    def put(self, key: str, content: bytes) -> None:
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=content)

    def get(self, key: str) -> bytes:
        from botocore.exceptions import ClientError

        try:
            content: bytes = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)[
                "Body"
            ].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404", "NotFound"):
                raise BlobMissing(f"s3://{self._bucket}/{self._prefix}{key}") from None
            raise
        return content

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key)

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + prefix
        )
        for page in pages:
            for each in page.get("Contents", ()):
                yield each["Key"].removeprefix(self._prefix), each["LastModified"].timestamp()


def _s3_client() -> Any:
    import botocore.session

    return botocore.session.get_session().create_client("s3")


def open_store(given: BlobStore | str | os.PathLike[str] | None) -> BlobStore | None:
    """Open the store at ``s3://bucket/prefix`` or in a folder.

    A BlobStore or None is returned unchanged.
    """
    if given is None or not isinstance(given, (str, os.PathLike)):
        return given
    text = os.fspath(given)
    if not text.startswith("s3://"):
        return FolderStore(text)
    parts = urlsplit(text)
    if not parts.netloc:
        raise ConfigurationError(f"{text!r} names no bucket", hint="for example s3://bucket/prefix")
    return S3Store(parts.netloc, parts.path)

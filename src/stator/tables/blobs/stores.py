"""Blob stores: they hold large values outside the table.

``S3Store`` is a bucket in S3, or in a service with the same API. ``FolderStore`` is a folder, for
programs on one machine and for tests.
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

    def put(self, key: str, content: bytes) -> None:
        """Store content under a key, in place of any earlier content."""

    def get(self, key: str) -> bytes:
        """Return the content of a blob. Raises BlobMissing if there is no blob of this name."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs. Missing blobs are ignored."""
        ...

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield the name of every blob with this prefix, and the Unix time when it was written."""
        ...


class FolderStore:
    """Large values as files in a folder, one for each key."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)

    def put(self, key: str, content: bytes) -> None:
        """Write a blob completely or not at all: to a temporary file, which is then renamed."""
        path = self._folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def get(self, key: str) -> bytes:
        """Return the content of a key's file. Raises BlobMissing if there is none."""
        try:
            return (self._folder / key).read_bytes()
        except FileNotFoundError:
            raise BlobMissing(key) from None

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the files of keys. Absent files are skipped."""
        for key in keys:
            (self._folder / key).unlink(missing_ok=True)

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield each key that starts with a prefix, and when its file was written."""
        for path in sorted(self._folder.rglob("*")):
            key = path.relative_to(self._folder).as_posix()
            if path.is_file() and key.startswith(prefix) and not path.name.startswith("."):
                yield key, path.stat().st_mtime


class S3Store:
    """A store in S3. ``client`` is a boto3 or botocore S3 client, by default a new one."""

    def __init__(self, bucket: str, prefix: str = "", *, client: Any = None) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._client = client or _s3_client()

    def put(self, key: str, content: bytes) -> None:
        """Store content as an object, in place of any earlier one."""
        self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=content)

    def get(self, key: str) -> bytes:
        """Return the content of an object. Raises BlobMissing if there is none."""
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
        """Delete objects, up to a thousand in one request."""
        for key in keys:
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key)

    def keys(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield each key that starts with a prefix, and when its object was written."""
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

"""The objects in buckets that exports write and imports read, on S3 or in a folder.

The engine knows only the protocol ``ObjectStore``. ``FolderBuckets`` has a sub-folder per bucket.
S3 itself is in ``stator.buckets``, above the engine, because it needs a client.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from stator.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Encryption:
    """How S3 encrypts an object. ``key`` is the id of a KMS key.

    If ``algorithm`` is None, the bucket's default encryption applies.
    """

    algorithm: str | None = None
    key: str | None = None


class ObjectStoreError(Exception):
    """An object of an object store could not be written or read.

    ``code`` is the FailureCode that DynamoDB shows.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ObjectStore(Protocol):
    """A store of objects. Its methods may block; they are called from threads that hold no lock.

    ``owner`` is the account that the bucket must belong to.
    """

    def put(
        self,
        bucket: str,
        key: str,
        content: bytes,
        *,
        owner: str | None = None,
        encryption: Encryption | None = None,
    ) -> str:
        """Write an object atomically, and return its ETag."""
        ...

    def open(self, bucket: str, key: str, *, owner: str | None = None) -> BinaryIO:
        """Open an object for reading from the start."""
        ...

    def keys(
        self, bucket: str, prefix: str, *, owner: str | None = None
    ) -> Iterator[tuple[str, int]]:
        """Return all keys with a prefix, in order, each with the object's size in bytes."""
        ...


def no_such_bucket() -> ObjectStoreError:
    return ObjectStoreError("S3NoSuchBucket", "The specified bucket does not exist")


class FolderBuckets:
    """Buckets as sub-folders of one folder. A bucket must exist, as on S3.

    Owners and encryption have no effect here.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def put(
        self,
        bucket: str,
        key: str,
        content: bytes,
        *,
        owner: str | None = None,
        encryption: Encryption | None = None,
    ) -> str:
        path = self._path(bucket, key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name}.writing")
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise ObjectStoreError(
                "S3AccessDenied", f"{key} cannot be written: {error.strerror}"
            ) from error
        return md5(content, usedforsecurity=False).hexdigest()

    def open(self, bucket: str, key: str, *, owner: str | None = None) -> BinaryIO:
        try:
            return cast("BinaryIO", self._path(bucket, key).open("rb"))
        except OSError as error:
            raise ObjectStoreError(
                "S3NoSuchKey", f"{key} cannot be read: {error.strerror}"
            ) from error

    def keys(
        self, bucket: str, prefix: str, *, owner: str | None = None
    ) -> Iterator[tuple[str, int]]:
        root = self._bucket(bucket)
        found = (
            path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")
        )
        keys = sorted((path.relative_to(root).as_posix(), path.stat().st_size) for path in found)
        return (entry for entry in keys if entry[0].startswith(prefix))

    def _bucket(self, bucket: str) -> Path:
        path = self._folder / bucket
        if not path.is_dir():
            raise no_such_bucket()
        return path

    def _path(self, bucket: str, key: str) -> Path:
        """Return the path of an object.

        Raises ObjectStoreError if the key leads out of its bucket or holds a NUL.
        """
        root = self._bucket(bucket)
        if "\0" in key:
            raise ObjectStoreError(
                "S3AccessDenied", f"the key {key!r} cannot be a file: it holds a NUL character"
            )
        path = root / key.lstrip("/")
        if not path.resolve().is_relative_to(root.resolve()) or ".." in path.parts:
            raise ObjectStoreError("S3AccessDenied", f"the key {key} leads out of the bucket")
        return path


class NoBuckets:
    """The store of an engine without buckets. Every call raises an error that says so."""

    def put(
        self,
        bucket: str,
        key: str,
        content: bytes,
        *,
        owner: str | None = None,
        encryption: Encryption | None = None,
    ) -> str:
        raise self._missing()

    def open(self, bucket: str, key: str, *, owner: str | None = None) -> BinaryIO:
        raise self._missing()

    def keys(
        self, bucket: str, prefix: str, *, owner: str | None = None
    ) -> Iterator[tuple[str, int]]:
        raise self._missing()

    def _missing(self) -> ObjectStoreError:
        return ObjectStoreError(
            "S3NoSuchBucket",
            "The specified bucket does not exist: this engine has no buckets. Add some with "
            "--buckets FOLDER or --s3-endpoint URL of `stator serve`, or buckets= of Engine.open",
        )


def open_buckets(given: ObjectStore | str | os.PathLike[str] | None) -> ObjectStore:
    if given is None:
        return NoBuckets()
    if not isinstance(given, (str, os.PathLike)):
        return given
    folder = os.fspath(given)
    if not Path(folder).is_dir():
        raise ConfigurationError(
            f"the folder {folder} for buckets does not exist",
            hint="create it, with a sub-folder for each bucket",
        )
    return FolderBuckets(folder)

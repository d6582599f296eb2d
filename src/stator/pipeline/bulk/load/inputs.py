"""The inputs of a load: files, globs, standard input and S3 objects, compressed or not.

A fingerprint shows whether an input has changed since the journal was begun. For a file it is the
size and time, for an S3 object the size and ETag. Standard input has no fingerprint, because it can
be read only once.
"""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, BinaryIO

from stator.errors import ConfigurationError
from stator.formats.compression import by_content, by_extension, open_decompressed
from stator.pipeline.bulk.s3 import s3_body, s3_listed

FORMATS = ("csv", "jsonl", "dynamodb-json", "parquet", "arrow", "dead-letters")
_EXTENSIONS = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".ipc", ".feather"),
}
_EARLIER_MANIFEST = "manifest.json"
_BY_EXTENSION = {each: name for name, extensions in _EXTENSIONS.items() for each in extensions}


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a load: a file, an S3 object or standard input.

    ``name`` is its path or URL, or ``-`` for standard input. ``format`` is one of FORMATS, or None
    if it is unknown.
    """

    name: str
    format: str | None
    compression: str | None
    size_bytes: int | None
    fingerprint: str | None

    def open(self) -> BinaryIO:
        """Open the input and return its content, decompressed."""
        return self.open_measured()[0]

    def open_measured(self) -> tuple[BinaryIO, Callable[[], float]]:
        """Open the input. Return its decompressed content, and a function to measure progress.

        The function returns the share read so far, from 0 to 1. It always returns 0 if the size is
        unknown or the input is not a local file.
        """
        raw = _opened(self.name)
        size = self.size_bytes or 0
        share = (lambda: raw.tell() / size) if size and self.is_local else (lambda: 0.0)
        return open_decompressed(raw, self.compression), share

    @property
    def can_seek(self) -> bool:
        """Whether reading can begin at any byte of the decompressed content."""
        return self.is_local and self.compression is None

    @property
    def is_stdin(self) -> bool:
        return self.name == "-"

    @property
    def is_local(self) -> bool:
        return not self.is_stdin and not self.name.startswith("s3://")


def find_inputs(names: Iterable[str], format_name: str | None = None) -> list[Input]:
    """Return the inputs that ``names`` stand for, in order.

    A name is a file, a folder, a pattern with ``*``, an ``s3://`` URL, or ``-`` for standard input.
    Raises ConfigurationError if a name stands for no input.
    """
    found: list[Input] = []
    for each in names:
        if each == "-":
            found.append(Input("-", format_name, None, None, None))
        elif each.startswith("s3://"):
            found += [
                _object(name, size, etag, format_name)
                for name, size, etag in s3_listed(each)
                if glob.has_magic(each)
                or _is_data(PurePosixPath(name.removeprefix(each).lstrip("/")), name)
            ]
        else:
            found += [_file(path, format_name) for path in _files(each)]
    if not found:
        raise ConfigurationError(
            "there is nothing to load",
            hint="name files, a pattern in quotes, s3://bucket/prefix, or - for stdin",
        )
    if sum(each.is_stdin for each in found) > 1:
        raise ConfigurationError(
            "stdin is named twice", hint="name - once: stdin can be read only once"
        )
    return found


def _files(name: str) -> list[str]:
    if os.path.isdir(name):
        files = sorted(
            str(path)
            for path in Path(name).rglob("*")
            if path.is_file()
            and _format(str(path))[0]
            and _is_data(path.relative_to(name), str(path))
        )
        if not files:
            raise ConfigurationError(
                f"the folder {name} has no file to load",
                hint="list the files explicitly, or give them one of these extensions:"
                f" {_extensions()}",
            )
        return files
    if os.path.exists(name):
        return [name]
    matched = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
    if not matched:
        problem = "matches no file" if glob.has_magic(name) else "does not exist"
        raise ConfigurationError(
            f"{name} {problem}", hint="check the path; it is relative to the current folder"
        )
    return matched


def _is_data(path: PurePath, name: str) -> bool:
    """Whether a file in a folder holds data, by the rule of Spark and pyarrow.

    ``path`` is relative to the folder. Files and folders whose names begin with a dot or an
    underscore, such as a manifest, are not data. Stator 0.1 called its manifest ``manifest.json``.
    """
    if any(part.startswith((".", "_")) for part in path.parts):
        return False
    return path.name != _EARLIER_MANIFEST or not _is_manifest(name)


def _is_manifest(name: str) -> bool:
    with _opened(name) as file:
        return b'"stator_export"' in file.read(64)


def _file(path: str, format_name: str | None) -> Input:
    stat = os.stat(path)
    own_format, compression = _format(path)
    compression = compression or _compression_by_content(path)
    fingerprint = f"{stat.st_size}:{stat.st_mtime_ns}"
    return Input(path, format_name or own_format, compression, stat.st_size, fingerprint)


def _object(name: str, size: int, etag: str, format_name: str | None) -> Input:
    own_format, compression = _format(name)
    return Input(name, format_name or own_format, compression, size, f"{size}:{etag}")


def _format(name: str) -> tuple[str | None, str | None]:
    base, extension = os.path.splitext(name.lower())
    compression = by_extension(extension)
    if compression is not None:
        extension = os.path.splitext(base)[1]
    return _BY_EXTENSION.get(extension), compression


def _compression_by_content(path: str) -> str | None:
    """Return the compression that the first bytes of a file show, or None."""
    with open(path, "rb") as file:
        return by_content(file.read(4))


def _extensions() -> str:
    return ", ".join(sorted(_BY_EXTENSION))


def _opened(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    if name.startswith("s3://"):
        return io.BufferedReader(_Body(s3_body(name)), 1 << 20)
    return open(name, "rb", buffering=1 << 20)


class _Body(io.RawIOBase):
    """The body of an S3 reply as a raw stream, for a BufferedReader."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()

"""Snapshots: exports that AWS wrote to S3 (ExportTableToPointInTime), in a folder or in S3.

    AWSDynamoDB/01693685827463-2d8752fd/
      manifest-summary.json    the export: table, number of items, format
      manifest-files.json      a line for each data file: itemCount, md5Checksum, dataFileS3Key
      data/asdl4bc3eh2xk4dr.json.gz

("DynamoDB table export output format" of the Developer Guide.) Both full and incremental exports
can be read, in DynamoDB JSON or Ion. Every data file is checked against its MD5 before it is read,
and its items are counted against the manifest.

An incremental export has changes, not items. A change becomes an item: its new image or, after a
deletion, its key. Two more attributes are added: ``_operation`` (put or delete) and ``_written_at``
(microseconds since 1970).
"""

from __future__ import annotations

import shutil
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from stator.errors import BulkError, ConfigurationError, DataDamaged, DataDiffers
from stator.formats import dynamodb_json, ion
from stator.formats.compression import by_extension, open_decompressed
from stator.model.values import Item
from stator.pipeline.bulk.export.paged_source import ItemPage
from stator.pipeline.bulk.s3 import s3_body, s3_errors, s3_keys, s3_place

_PAGE_ITEMS = 1_000
_SUMMARY, _FILES = "manifest-summary.json", "manifest-files.json"


@dataclass(frozen=True, slots=True)
class DataFile:
    name: str
    items: int
    md5: bytes | None


class Snapshot:
    """An export that AWS wrote, as a paged source; each data file is a piece."""

    def __init__(self, path: str) -> None:
        self.owned_transport = None
        self._place = _place(path)
        self.summary: dict[str, Any] = orjson.loads(self._place.checked(_SUMMARY))
        lines = self._place.checked(_FILES).splitlines()
        self.files = [_data_file(orjson.loads(line)) for line in lines if line.strip()]
        self.is_incremental = "INCREMENTAL" in str(self.summary.get("exportType", "FULL_EXPORT"))
        self.items = int(self.summary["itemCount"])
        counted = sum(each.items for each in self.files)
        if counted != self.items:
            raise DataDiffers(
                f"{_SUMMARY} announces {self.items:,} items, but {_FILES} lists {counted:,}",
                hint="download the export again; it is incomplete",
            )

    def stop(self) -> None:
        """Do nothing: files are not retried."""

    @property
    def table(self) -> str:
        return str(self.summary.get("tableArn", "")).rpartition("/")[2]

    @property
    def pieces(self) -> int:
        return len(self.files)

    def pages(self, piece: int, after: Any = None) -> Iterator[ItemPage]:
        """Yield the pages of one data file; ``after`` is the number of its records already read."""
        listed, skipped = self.files[piece], int(after or 0)
        read = 0
        held: list[Item] = []
        with self._place.opened(f"data/{listed.name}") as file:
            _check_md5(listed, file)
            for record in self._records(listed.name, file):
                read += 1
                if read > skipped:
                    held.append(self._item(record))
                if len(held) == _PAGE_ITEMS and read < listed.items:
                    yield ItemPage(held, read)
                    held = []
        if read != listed.items:
            raise DataDiffers(
                f"{listed.name} has {read:,} items, but the manifest lists {listed.items:,}",
                hint="download the export again",
            )
        yield ItemPage(held, None)

    def _records(self, name: str, file: BinaryIO) -> Iterator[dict[str, Any]]:
        stream = open_decompressed(file, by_extension(Path(name).suffix))
        try:
            yield from (ion if ".ion" in name else dynamodb_json).read_records(stream)
        except DataDamaged as error:
            raise DataDamaged(
                f"{name} cannot be read: {error.message}", hint="download the export again"
            ) from error

    def _item(self, record: dict[str, Any]) -> Item:
        if not self.is_incremental:
            item: Item = record["Item"]
            return item
        new = record.get("NewImage")
        written = record["Metadata"]["WriteTimestampMicros"]
        return {
            **(new or record["Keys"]),
            "_operation": {"S": "put" if new else "delete"},
            "_written_at": written,
        }


def _data_file(line: dict[str, Any]) -> DataFile:
    checksum = line.get("md5Checksum")
    name = str(line["dataFileS3Key"]).rpartition("/")[2]
    return DataFile(name, int(line["itemCount"]), None if checksum is None else b64decode(checksum))


def _check_md5(listed: DataFile, file: BinaryIO) -> None:
    if listed.md5 is None:
        return
    found = md5(usedforsecurity=False)
    while data := file.read(1 << 20):
        found.update(data)
    file.seek(0)
    if found.digest() != listed.md5:
        raise DataDiffers(
            f"{listed.name} is not what AWS wrote: its MD5 differs from the manifest's",
            hint="download the file again",
        )


# -- places


class _Folder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def opened(self, name: str) -> BinaryIO:
        try:
            return (self.folder / name).open("rb")
        except FileNotFoundError:
            raise BulkError(
                f"{self.folder / name} is missing",
                hint="download the export again; it is incomplete",
            ) from None

    def checked(self, name: str) -> bytes:
        with self.opened(name) as file:
            content = file.read()
        beside = self.folder / f"{name.removesuffix('.json')}.md5"
        if beside.exists():
            _check_manifest(name, content, beside.read_text())
        return content


class _Bucket:
    def __init__(self, url: str, keys: set[str]) -> None:
        self._url, self._keys = url, keys

    def opened(self, name: str) -> BinaryIO:
        """Return a temporary local copy of an S3 object.

        The object is read twice, first to check it and then to use it.
        """
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        with s3_errors(self._url + name):
            shutil.copyfileobj(s3_body(self._url + name), file, 1 << 20)
        file.seek(0)
        return file

    def checked(self, name: str) -> bytes:
        with self.opened(name) as file:
            content = file.read()
        beside = f"{name.removesuffix('.json')}.md5"
        if self._url + beside in self._keys:
            with self.opened(beside) as file:
                _check_manifest(name, content, file.read().decode())
        return content


def _check_manifest(name: str, content: bytes, checksum: str) -> None:
    found = md5(content, usedforsecurity=False).digest()
    if checksum.strip() not in (found.hex(), b64encode(found).decode()):
        raise DataDiffers(
            f"{name} is not what AWS wrote: its MD5 differs from the one in the .md5 file",
            hint="download the file again",
        )


def _place(path: str) -> _Folder | _Bucket:
    """Return the folder or bucket that holds an export.

    The export is at ``path`` itself, or it is the only one below ``path``.
    """
    if path.startswith("s3://"):
        bucket, _ = s3_place(path)
        keys = [f"s3://{bucket}/{each['Key']}" for each in s3_keys(path)]
        found = [each.removesuffix(_SUMMARY) for each in keys if each.endswith(f"/{_SUMMARY}")]
        return _Bucket(_the_one(found, path), set(keys))
    folder = Path(path)
    if (folder / _SUMMARY).exists():
        return _Folder(folder)
    return _Folder(
        Path(_the_one(sorted(str(each.parent) for each in folder.rglob(_SUMMARY)), path))
    )


def _the_one(found: list[str], path: str) -> str:
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigurationError(
            f"there is no export at {path}", hint=f"name the folder that has {_SUMMARY}"
        )
    raise ConfigurationError(
        f"there are {len(found)} exports at {path}", hint=f"name one, such as {found[0]}"
    )

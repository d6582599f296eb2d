"""The destination of an export: a folder, a single file, or S3.

Parts are always written to a local folder. If the destination is a folder, they are written there
directly. If it is a file or S3, they are written to a temporary folder, which is removed once
everything is in its place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from stator.errors import BulkError, ConfigurationError
from stator.formats.compression import COMPRESSIONS, by_extension, compress, open_decompressed
from stator.pipeline.bulk.export.parts import (
    PART_NAME,
    PartFile,
    check_part,
    extension,
    file_md5,
)
from stator.pipeline.bulk.job.journal import sync_folder, unwritable, write_whole
from stator.pipeline.bulk.s3 import s3_client, s3_errors, s3_place

MANIFEST = "_manifest.json"
"""The name of the manifest in a folder: Parquet readers skip names with a leading underscore."""
EARLIER_MANIFEST = "manifest.json"
"""The name of the manifest in exports of Stator 0.1."""
SPOOL = ".spool"
"""The sub-folder for parts of CSV and Parquet exports until their columns are known."""
_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "dynamodb-json",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of an export, and the local folder for its parts.

    ``out`` is the destination as the user named it: a folder, a file or an ``s3://`` URL.
    ``folder`` receives the parts. ``file`` is the single file into which the parts are joined, or
    None for a folder or S3.
    """

    out: str
    format: str | None
    compression: str | None
    folder: Path
    file: Path | None

    @classmethod
    def parse(cls, out: str, format_name: str | None, compression: str | None) -> Destination:
        if compression not in (None, *COMPRESSIONS):
            raise ConfigurationError(
                f"the compression {compression} is unknown",
                hint=f"use one of {', '.join(COMPRESSIONS)}",
            )
        if out.startswith("s3://"):
            bucket, key = s3_place(out)
            staging = Path(f"stator-export-{bucket}-{key.strip('/').replace('/', '-')}.parts")
            return cls(out, format_name or "jsonl", compression, staging, None)
        base, last = os.path.splitext(out)
        packed = by_extension(last)
        own = _BY_EXTENSION.get(os.path.splitext(base)[1] if packed else last)
        if own is None or out.endswith("/") or os.path.isdir(out):
            return cls(out, format_name or "jsonl", compression, Path(out), None)
        if last == ".json" or base.endswith(".json"):  # both kinds of JSON lines go by that name
            own = format_name if format_name == "jsonl" else own
        if format_name not in (None, own):
            raise ConfigurationError(
                f"the name {out} stands for the format {own}, but --format says {format_name}",
                hint="leave out --format, or use another file name",
            )
        return cls(out, own, packed or compression, Path(f"{out}.parts"), Path(out))

    @property
    def is_remote(self) -> bool:
        return self.out.startswith("s3://")

    @property
    def default_journal(self) -> Path:
        return self.folder / ".journal"

    @property
    def part_format(self) -> str:
        """The format in which parts are first written: DynamoDB JSON for CSV and Parquet exports.

        These parts are rewritten as CSV or Parquet once all columns are known.
        """
        return "dynamodb-json" if self.is_spooled else str(self.format)

    @property
    def is_spooled(self) -> bool:
        """Whether parts are first written as DynamoDB JSON, and rewritten at the end.

        CSV and Parquet need it: the columns are known only once all items were read.
        """
        return self.format in ("csv", "parquet")

    @property
    def part_compression(self) -> str | None:
        return None if self.is_spooled else self.compression

    @property
    def part_extension(self) -> str:
        return extension(self.part_format, self.part_compression)

    @property
    def published_folder(self) -> Path:
        return self.folder if self.file is None else self.file.parent

    def create_folder(self) -> None:
        """Create the folder that receives the parts, unless it exists."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(self.folder, error) from None

    def check_empty(self) -> None:
        """Raise BulkError if the export's folder has files, or if its file exists.

        S3 is not checked.
        """
        if self.file is None and not self.is_remote:
            found = sorted(
                path.name for path in self.folder.iterdir() if not path.name.startswith(".")
            )
            if found:
                is_finished = MANIFEST in found or EARLIER_MANIFEST in found
                raise BulkError(
                    f"the folder {self.folder} is not empty: it has {found[0]}",
                    hint="it holds a finished export; name an empty folder with --out"
                    if is_finished
                    else "name an empty folder with --out",
                )
        elif self.file is not None and self.file.exists():
            raise BulkError(
                f"the file {self.file} exists already",
                hint="delete it, or name another file with --out",
            )

    def remove_leftovers(self, kept: Container[str]) -> None:
        """Remove part files that a killed run wrote but did not record in its journal.

        ``kept`` holds the names of the recorded parts. A resumed run usually writes the other parts
        again under the same names. But if the source has changed since, there may be fewer, and an
        old part would remain in the export.
        """
        for path in sorted(self.folder.rglob("*")):
            name = path.relative_to(self.folder).as_posix()
            if PART_NAME.fullmatch(path.name) and name not in kept:
                path.unlink()

    def remove_unfinished(self) -> None:
        """Remove everything that a killed run wrote, because the export starts over."""
        self.remove_leftovers(())
        if self.file is not None:
            self.file.unlink(missing_ok=True)

    # -- at the end

    def publish(self, parts: list[PartFile]) -> list[PartFile]:
        return self.uploaded(parts) if self.file is None else [self._joined(parts, self.file)]

    def uploaded(self, parts: list[PartFile]) -> list[PartFile]:
        """Upload finished part files if the destination is S3. Return ``parts``."""
        if not self.is_remote:
            return parts
        client = s3_client()
        bucket, prefix = s3_place(self.out)
        for part in parts:
            with (self.folder / part.name).open("rb") as file, s3_errors(self.out):
                client.put_object(Bucket=bucket, Key=_below(prefix, part.name), Body=file)
            self._check_uploaded(client, part)
        return parts

    def _check_uploaded(self, client: Any, part: PartFile) -> None:
        bucket, prefix = s3_place(self.out)
        with s3_errors(self.out):
            found = client.head_object(Bucket=bucket, Key=_below(prefix, part.name))
        if found["ContentLength"] != part.size_bytes:
            raise BulkError(
                f"{part.name} has {found['ContentLength']:,} bytes in S3,"
                f" but {part.size_bytes:,} were uploaded",
                hint="run the export again with --resume",
            )

    def _joined(self, parts: list[PartFile], file: Path) -> PartFile:
        beside = file.with_name(f".{file.name}.tmp")
        paths = [self.folder / part.name for part in parts]
        try:
            _join_bytes(paths, beside, skip_header=self.format == "csv")
            with beside.open("rb") as joined:
                os.fsync(joined.fileno())
            found, size = file_md5(beside)
            beside.replace(file)
            sync_folder(file.parent)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise unwritable(file, error) from None
        return PartFile(file.name, sum(part.rows for part in parts), size, found)

    def write_manifest(self, content: bytes) -> str:
        """Write the manifest, last of all: an export with a manifest is complete."""
        if self.is_remote:
            bucket, prefix = s3_place(self.out)
            with s3_errors(self.out):
                s3_client().put_object(Bucket=bucket, Key=_below(prefix, MANIFEST), Body=content)
            return self.manifest
        write_whole(Path(self.manifest), content)
        return self.manifest

    @property
    def manifest(self) -> str:
        """The path or URL of the manifest."""
        return self._manifest_place(MANIFEST)

    def _manifest_place(self, name: str) -> str:
        if self.is_remote:
            bucket, prefix = s3_place(self.out)
            return f"s3://{bucket}/{_below(prefix, name)}"
        if self.file is None:
            return str(self.folder / name)
        beside = f"{self.file.name}.{EARLIER_MANIFEST}"
        return str(self.file.with_name(f"_{beside}" if name == MANIFEST else beside))

    def read_manifest(self) -> dict[str, Any] | None:
        """Return the manifest of a finished export.

        Returns None if there is no readable manifest, or if Stator did not write it.
        """
        for name in (MANIFEST, EARLIER_MANIFEST):
            with suppress(OSError, ValueError):
                found = orjson.loads(self._manifest_content(name))
                if isinstance(found, dict) and "stator_export" in found:
                    return found
        return None

    def _manifest_content(self, name: str) -> bytes:
        if not self.is_remote:
            return Path(self._manifest_place(name)).read_bytes()
        bucket, prefix = s3_place(self.out)
        client = s3_client()
        with s3_errors(self.out):
            try:
                reply = client.get_object(Bucket=bucket, Key=_below(prefix, name))
            except client.exceptions.NoSuchKey:
                raise FileNotFoundError(name) from None
            return bytes(reply["Body"].read())

    def check_published(self, part: PartFile) -> None:
        """Raise an error if a published file is missing or differs from its manifest entry."""
        if self.is_remote:
            self._check_uploaded(s3_client(), part)
        else:
            check_part(self.published_folder, part)

    def clean(self) -> None:
        """Remove the files that were needed only while the export ran.

        For a CSV or Parquet export, these are the temporary parts in DynamoDB JSON. If the
        destination is a single file or S3, the whole local folder is removed. If the process dies
        just before this call, the files stay until the export is resumed. Nothing reads them.
        """
        shutil.rmtree(self.folder / SPOOL, ignore_errors=True)
        if self.file is not None or self.is_remote:
            shutil.rmtree(self.folder, ignore_errors=True)


def _below(prefix: str, name: str) -> str:
    return f"{prefix.rstrip('/')}/{name}" if prefix else name


def _join_bytes(parts: list[Path], joined: Path, *, skip_header: bool) -> None:
    with joined.open("wb") as out:
        for number, part in enumerate(parts):
            with part.open("rb") as file:
                if not skip_header or number == 0:
                    shutil.copyfileobj(file, out, 1 << 20)
                    continue
                compression = by_extension(part.suffix)
                with open_decompressed(file, compression) as stream:
                    stream.readline()
                    out.write(compress(stream.read(), compression))

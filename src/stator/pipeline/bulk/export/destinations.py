"""Where an export goes: a folder, a single file, or a place in S3.

Parts are always written to a folder on this machine first. For a folder that is the folder itself; for a file and for S3 it is one beside it, which is
gone once the whole is where it belongs.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from stator.errors import BulkError, ConfigurationError
from stator.formats.compression import COMPRESSIONS, by_extension, compress, open_decompressed
from stator.formats.parquet import join_parquet
from stator.pipeline.bulk.export.parts import PartFile, extension, file_md5
from stator.pipeline.bulk.job.journal import sync_folder, unwritable, write_whole
from stator.pipeline.bulk.s3 import s3_client, s3_place, s3_trouble

MANIFEST = "manifest.json"
SPOOL = ".spool"
"""Below the folder of the parts: what waits there to become CSV."""
_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".json": "dynamodb-json",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """``folder`` is where parts are written; ``file`` the single file they become, where that is wanted."""

    given: str
    format: str | None
    compression: str | None
    folder: Path
    file: Path | None

    @classmethod
    def parse(cls, given: str, wanted_format: str | None, compression: str | None) -> Destination:
        if compression not in (None, *COMPRESSIONS):
            raise ConfigurationError(
                f"{compression} is no compression known here", hint="gzip or zstd"
            )
        if given.startswith("s3://"):
            bucket, key = s3_place(given)
            staging = Path(f"stator-export-{bucket}-{key.strip('/').replace('/', '-')}.parts")
            return cls(given, wanted_format or "jsonl", compression, staging, None)
        base, last = os.path.splitext(given)
        packed = by_extension(last)
        own = _BY_EXTENSION.get(os.path.splitext(base)[1] if packed else last)
        if own is None or given.endswith("/") or os.path.isdir(given):
            return cls(given, wanted_format or "jsonl", compression, Path(given), None)
        if last == ".json" or base.endswith(".json"):  # both kinds of JSON lines go by that name
            own = wanted_format if wanted_format == "jsonl" else own
        if wanted_format not in (None, own):
            raise ConfigurationError(
                f"{given} would hold {wanted_format}, and its name says {own}",
                hint="leave --format out, or name it otherwise",
            )
        return cls(given, own, packed or compression, Path(f"{given}.parts"), Path(given))

    @property
    def is_remote(self) -> bool:
        return self.given.startswith("s3://")

    @property
    def default_journal(self) -> Path:
        return self.folder / ".journal"

    @property
    def part_format(self) -> str:
        """CSV waits until all its columns are known."""
        return "dynamodb-json" if self.format == "csv" else str(self.format)

    @property
    def part_compression(self) -> str | None:
        return None if self.format == "csv" else self.compression

    @property
    def part_extension(self) -> str:
        return extension(self.part_format, self.part_compression)

    @property
    def published_folder(self) -> Path:
        return self.folder if self.file is None else self.file.parent

    def check_empty(self) -> None:
        """Files of somebody else's would stand among ours."""
        if self.file is None and not self.is_remote:
            strange = next(
                (path for path in self.folder.iterdir() if not path.name.startswith(".")), None
            )
            if strange is not None:
                raise BulkError(
                    f"{self.folder} is not empty: {strange.name}",
                    hint="choose a folder of its own with --out",
                )
        elif self.file is not None and self.file.exists():
            raise BulkError(
                f"{self.file} is there already", hint="choose another name, or delete it first"
            )

    # -- at the end

    def publish(self, parts: list[PartFile], first: tuple[str, ...]) -> list[PartFile]:
        if self.is_remote:
            return self._uploaded(parts)
        return parts if self.file is None else [self._joined(parts, self.file)]

    def _uploaded(self, parts: list[PartFile]) -> list[PartFile]:
        client = s3_client()
        bucket, prefix = s3_place(self.given)
        for part in parts:
            with (self.folder / part.name).open("rb") as file, s3_trouble(self.given):
                client.put_object(Bucket=bucket, Key=_below(prefix, part.name), Body=file)
            with s3_trouble(self.given):
                told = client.head_object(Bucket=bucket, Key=_below(prefix, part.name))
            if told["ContentLength"] != part.size_bytes:
                raise BulkError(
                    f"{part.name} has {told['ContentLength']:,} bytes in S3, not {part.size_bytes:,}"
                )
        return parts

    def _joined(self, parts: list[PartFile], file: Path) -> PartFile:
        beside = file.with_name(f".{file.name}.tmp")
        paths = [self.folder / part.name for part in parts]
        try:
            if self.format == "parquet":
                join_parquet(paths, beside)
            else:
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
        """Written last: what has a manifest is complete."""
        if self.is_remote:
            bucket, prefix = s3_place(self.given)
            with s3_trouble(self.given):
                s3_client().put_object(Bucket=bucket, Key=_below(prefix, MANIFEST), Body=content)
            return f"s3://{bucket}/{_below(prefix, MANIFEST)}"
        path = (
            self.folder / MANIFEST
            if self.file is None
            else self.file.with_name(f"{self.file.name}.{MANIFEST}")
        )
        write_whole(path, content)
        return str(path)

    def clean(self) -> None:
        """Nothing of this is needed any more; a crash before it leaves files that nobody looks at."""
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

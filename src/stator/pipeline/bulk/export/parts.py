"""Part files of an export: written under a temporary name, checked, then renamed, so always whole.

A part holds the items of a few pages of one piece of the source. Its name says which piece and part
(``part-003-00012.jsonl``: piece 3, part 12), so a resumed run writes the same name again and leaves
no second copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

from stator.errors import DataDamaged, DataDiffers
from stator.formats import dynamodb_json
from stator.formats.compression import EXTENSIONS, by_extension, compress, open_decompressed
from stator.formats.csv_rows import write_rows
from stator.formats.plain import cell_text, plain_line
from stator.model.values import Item
from stator.pipeline.bulk.checksum import Digest, digest
from stator.pipeline.bulk.job.journal import unwritable, write_whole

PART_NAME = re.compile(r"\.?part-\d{3,}-\d{5,}\.[a-z0-9.]+")
"""The names of part files, finished and temporary."""
EXPORT_FORMATS = ("jsonl", "csv", "parquet", "dynamodb-json")
_EXTENSIONS = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet", "dynamodb-json": ".json"}


@dataclass(frozen=True, slots=True)
class PartFile:
    """One file that an export has written.

    ``name`` is relative to the export's folder; ``md5`` is the MD5 of the file's bytes.
    """

    name: str
    rows: int
    size_bytes: int
    md5: str

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def extension(format_name: str, compression: str | None) -> str:
    is_packed = compression is not None and format_name != "parquet"
    return _EXTENSIONS[format_name] + (EXTENSIONS[str(compression)] if is_packed else "")


def encode_part(
    items: list[Item],
    format_name: str,
    compression: str | None,
    columns: list[str] | None = None,
) -> bytes:
    """Return the bytes of a part file that holds ``items``: lines of JSON, or CSV.

    All CSV parts of an export have the same ``columns``.
    """
    match format_name:
        case "jsonl":
            return compress(b"".join(map(plain_line, items)), compression)
        case "dynamodb-json":
            return compress(b"".join(map(dynamodb_json.item_line, items)), compression)
    assert format_name == "csv" and columns is not None
    return compress(csv_content(items, columns), compression)


def csv_content(items: list[Item], columns: list[str]) -> bytes:
    return write_rows(columns, ([cell_text(item.get(name)) for name in columns] for item in items))


def write_part(folder: Path, name: str, content: bytes, rows: int) -> PartFile:
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None
    write_whole(path, content)
    return PartFile(name, rows, len(content), md5(content, usedforsecurity=False).hexdigest())


def check_part(folder: Path, part: PartFile) -> None:
    """Raise DataDiffers if the file on disk differs from the part that was written."""
    try:
        found, size = file_md5(folder / part.name)
    except OSError as error:
        raise DataDiffers(
            f"{part.name} was written, but cannot be read: {error.strerror or error}",
            hint="put the file back, or delete the export and start over with --restart",
        ) from None
    if size != part.size_bytes or found != part.md5:
        raise DataDiffers(
            f"{part.name} has {size:,} bytes with MD5 {found};"
            f" {part.size_bytes:,} bytes with MD5 {part.md5} were written",
            hint="check the disk, then export again",
        )


def file_md5(path: Path) -> tuple[str, int]:
    """Return the MD5 of a file in hexadecimal, and its size in bytes."""
    found = md5(usedforsecurity=False)
    size = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
            size += len(data)
    return found.hexdigest(), size


def read_items(path: Path) -> Iterator[Item]:
    """Yield the items of a part file in DynamoDB JSON, which may be compressed."""
    with open_decompressed(path.open("rb"), by_extension(path.suffix)) as stream:
        try:
            yield from dynamodb_json.read_items(stream)
        except DataDamaged as error:
            raise DataDamaged(
                f"the part {path} cannot be read: {error.message}",
                hint="check the disk, then export again with --restart",
            ) from error


def digest_of_file(path: Path) -> Digest:
    return sum((digest([item]) for item in read_items(path)), Digest())

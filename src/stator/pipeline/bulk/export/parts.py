"""Part files of an export: written beside, checked, and then named, so that what has its name is whole.

A part holds the items of a few pages of one piece. Its name says which (``part-003-00012.jsonl``: piece 3, the twelfth), so that a run that is taken up
writes the same name again and leaves no second copy.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

import orjson

from stator.errors import ConfigurationError, DataDiffers
from stator.model.values import Item
from stator.pipeline.bulk.checksum import Digest, digest
from stator.pipeline.bulk.export.plain import arrow_table, plain_item, text_of
from stator.pipeline.bulk.job.journal import sync_folder
from stator.pipeline.bulk.load.readers import pyarrow

EXPORT_FORMATS = ("jsonl", "csv", "parquet", "dynamodb-json")
_EXTENSIONS = {"jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet", "dynamodb-json": ".json"}
_PACKED = {"gzip": ".gz", "zstd": ".zst"}


@dataclass(frozen=True, slots=True)
class PartFile:
    """``name`` is seen from the export's folder; ``md5`` is of its bytes."""

    name: str
    rows: int
    size_bytes: int
    md5: str

    def to_data(self) -> dict[str, Any]:
        return asdict(self)


def extension(format_name: str, compression: str | None) -> str:
    return _EXTENSIONS[format_name] + (
        "" if compression is None or format_name == "parquet" else _PACKED[compression]
    )


def encode_part(
    items: list[Item],
    format_name: str,
    compression: str | None,
    first: tuple[str, ...],
    columns: list[str] | None = None,
) -> bytes:
    """The bytes of a file with these items. ``columns`` are those of a CSV, whose parts all have the same."""
    match format_name:
        case "jsonl":
            return pack(
                b"".join(
                    orjson.dumps(plain_item(item), None, orjson.OPT_APPEND_NEWLINE)
                    for item in items
                ),
                compression,
            )
        case "dynamodb-json":
            return pack(
                b"".join(
                    orjson.dumps({"Item": item}, None, orjson.OPT_APPEND_NEWLINE) for item in items
                ),
                compression,
            )
        case "csv":
            assert columns is not None
            return pack(csv_text(items, columns).encode(), compression)
    buffer = io.BytesIO()
    pyarrow("pyarrow.parquet").write_table(
        arrow_table(items, pyarrow(), first), buffer, compression=compression or "zstd"
    )
    return buffer.getvalue()


def csv_text(items: list[Item], columns: list[str], *, header: bool = True) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([text_of(item.get(name)) for name in columns] for item in items)
    return text.getvalue()


def pack(content: bytes, compression: str | None) -> bytes:
    """Packed files can be put one behind the other, and are read as one."""
    if compression is None:
        return content
    if compression == "gzip":
        return gzip.compress(content, 6, mtime=0)
    try:
        zstandard: Any = importlib.import_module("zstandard")
    except ImportError:
        raise ConfigurationError(
            "zstd is not installed", hint="pip install 'stator[blobs]'"
        ) from None
    made: bytes = zstandard.ZstdCompressor().compress(content)
    return made


def write_part(folder: Path, name: str, content: bytes, rows: int) -> PartFile:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.tmp")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    sync_folder(path.parent)
    return PartFile(name, rows, len(content), md5(content, usedforsecurity=False).hexdigest())


def check_part(folder: Path, part: PartFile) -> None:
    """What is on the disk is what was written."""
    with (folder / part.name).open("rb") as file:
        found = md5(usedforsecurity=False)
        size = 0
        while data := file.read(1 << 20):
            found.update(data)
            size += len(data)
    if size != part.size_bytes or found.hexdigest() != part.md5:
        raise DataDiffers(
            f"{part.name} is not what was written: {size:,} bytes with MD5 {found.hexdigest()}, not {part.size_bytes:,} with {part.md5}",
            hint="look at the disk; export it again",
        )


def read_items(path: Path) -> Iterator[Item]:
    """The items of a part in DynamoDB JSON."""
    with path.open("rb") as file:
        for line in gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file:
            yield orjson.loads(line)["Item"]


def digest_of_file(path: Path) -> Digest:
    return sum((digest([item]) for item in read_items(path)), Digest())

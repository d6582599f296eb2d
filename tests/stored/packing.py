"""Fixture folders as archives: packed by the script that makes them, unpacked by every test."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

V1 = Path(__file__).parent / "v1"


def pack(folder: Path, archive: Path) -> None:
    """Write a folder as ``.tar.gz``. Modification times stay: a bulk journal compares them.

    RocksDB's own log names the machine and its paths, and is not needed to open a folder.
    """
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.name == "LOG" or path.name.startswith("LOG.old"):
                continue
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(name: str, to: Path) -> Path:
    """A copy of a version 1 fixture that a test may change."""
    folder = to / name
    with tarfile.open(V1 / f"{name}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder


def record(name: str, recorded: Any) -> None:
    text = json.dumps(recorded, sort_keys=True)
    (V1 / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def expected(name: str) -> Any:
    """What was recorded when the fixture was made."""
    return json.loads(gzip.decompress((V1 / f"{name}.json.gz").read_bytes()))

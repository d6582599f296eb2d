"""gzip and zstd: decompresses streams while they are read, and compresses content in one piece.

A compressed file is a sequence of members (gzip) or frames (zstd), and its content is their
contents joined together. So the output of ``cat a.gz b.gz`` is a gzip file. The reader here
decompresses one member at a time and notices when the input ends inside a member. Not every library
does. The stream reader of ``zstandard`` mistakes the end of the input for the end of the content,
and returns half a file as if it were whole. Reading therefore ends in one of two ways: at the end
of a member or frame, or with ``DataDamaged``.

Other data after the last member counts as damage, except zero bytes after gzip. Tapes and block
devices add such zeros, and every gzip reader skips them.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Final, cast

from stator.errors import DataDamaged
from stator.formats.extras import library

COMPRESSIONS: Final = ("gzip", "zstd")
EXTENSIONS: Final = {"gzip": ".gz", "zstd": ".zst"}
"""The file extension that Stator uses for each compression."""
_BY_EXTENSION = {".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_CHUNK_BYTES = 64 << 10
_BUFFER_BYTES = 256 << 10
_GZIP_MEMBER = 16 + zlib.MAX_WBITS
_AGAIN = "copy or download the file again; it is not complete"


def by_extension(extension: str) -> str | None:
    """Return the compression that a file extension such as ``.gz`` stands for, or None."""
    return _BY_EXTENSION.get(extension)


def by_content(head: bytes) -> str | None:
    """Detect a file's compression from its first four bytes. None means uncompressed."""
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    return "zstd" if head[:4] == b"\x28\xb5\x2f\xfd" else None


def open_decompressed(file: BinaryIO, compression: str | None) -> BinaryIO:
    """Return a file object with the decompressed content; ``file`` itself if it is not compressed.

    Reads raise ``DataDamaged`` where the compressed data is damaged or ends early. Closing the
    result closes ``file``.
    """
    if compression is None:
        return file
    return cast("BinaryIO", io.BufferedReader(_Decompressed(file, compression), _BUFFER_BYTES))


def compress(content: bytes, compression: str | None) -> bytes:
    """Compress content as one member or frame. Joined results can be read as one file."""
    if compression is None:
        return content
    if compression == "gzip":
        return gzip.compress(content, 6, mtime=0)
    compressor = library("zstandard").ZstdCompressor(write_checksum=True)
    compressed: bytes = compressor.compress(content)
    return compressed


class _Decompressed(io.RawIOBase):
    """The content of a compressed file, decompressed one member or frame after the other."""

    def __init__(self, file: BinaryIO, compression: str) -> None:
        self._file = file
        self._name = compression
        self._new_member, self._errors = _decompressor(compression)
        self._member: Any = None
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            if not self._packed:
                self._packed = self._file.read(_CHUNK_BYTES)
            if not self._packed:
                if self._member is not None:
                    raise DataDamaged(f"the {self._name} data ends too early", hint=_AGAIN)
                return 0
            self._unpack()
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count

    def _unpack(self) -> None:
        if self._member is None:
            if self._name == "gzip":
                self._packed = self._packed.lstrip(b"\0")
                if not self._packed:
                    return
            self._member = self._new_member()
        try:
            self._plain = memoryview(self._member.decompress(self._packed))
        except self._errors as error:
            raise DataDamaged(f"the {self._name} data is damaged: {error}", hint=_AGAIN) from None
        self._packed = b""
        if self._member.eof:
            self._packed, self._member = self._member.unused_data, None

    def close(self) -> None:
        self._file.close()
        super().close()


def _decompressor(compression: str) -> tuple[Callable[[], Any], type[Exception]]:
    """Return a factory of decompressors, and the error they raise for damaged data.

    Each decompressor reads one member or frame.
    """
    if compression == "gzip":
        return lambda: zlib.decompressobj(_GZIP_MEMBER), zlib.error
    zstandard = library("zstandard")
    return zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError

"""Compression of large values.

A packed value names its compression method, so values of every method can be read.
"""

from __future__ import annotations

import gzip
import importlib
from typing import Any, Literal

from stator.errors import ConfigurationError

Method = Literal["gzip", "lz4", "zstd"]


def compress(content: bytes, method: str) -> tuple[str, bytes]:
    """Return the name of the compression method, and the compressed content.

    With ``auto``, every installed method is tried, and the smallest result is returned.
    """
    if method != "auto":
        return method, _COMPRESS[method](content)
    made = [
        (each, _COMPRESS[each](content))
        for each in ("zstd", "gzip", "lz4")
        if each == "gzip" or _is_there(each)
    ]
    return min(made, key=lambda pair: len(pair[1]))


def decompress(content: bytes, method: str) -> bytes:
    if method not in _DECOMPRESS:
        raise ConfigurationError(
            f"a value was compressed with {method}, which this version of Stator does not know",
            hint="read it with a newer version of Stator",
        )
    return _DECOMPRESS[method](content)


def _library(method: str) -> Any:
    name = {"zstd": "zstandard", "lz4": "lz4.frame"}[method]
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigurationError(
            f"the library for {method} compression is not installed",
            hint="pip install 'stator[blobs]'",
        ) from None


def _is_there(method: str) -> bool:
    try:
        _library(method)
    except ConfigurationError:
        return False
    return True


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _zstd(content: bytes) -> bytes:
    made: bytes = _library("zstd").ZstdCompressor(level=6).compress(content)
    return made


def _unzstd(content: bytes) -> bytes:
    made: bytes = _library("zstd").ZstdDecompressor().decompress(content)
    return made


def _lz4(content: bytes) -> bytes:
    made: bytes = _library("lz4").compress(content)
    return made


def _unlz4(content: bytes) -> bytes:
    made: bytes = _library("lz4").decompress(content)
    return made


_COMPRESS = {"gzip": _gzip, "zstd": _zstd, "lz4": _lz4}
_DECOMPRESS = {"gzip": gzip.decompress, "zstd": _unzstd, "lz4": _unlz4}

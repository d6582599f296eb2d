"""Which encoding an Accept-Encoding header gets, as AWS reads the header; compressed bodies."""

from __future__ import annotations

import gzip
import random
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from stator.errors import InternalServerError, RequestTooLarge
from stator.server.http.compression import best_encoding, decode_body


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"", None),
        (b"identity", None),
        (b"br, zstd, compress, x-gzip", None),
        (b"GZIP, identity", b"gzip"),
        (b"dog, gzip ,, cat", b"gzip"),
        (b"gzip, deflate", b"gzip"),
        (b"br, identity, deflate, gzip", b"deflate"),
    ],
)
def test_the_first_it_names_of_gzip_and_deflate(header: bytes, encoding: bytes | None) -> None:
    assert best_encoding(header) == encoding


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"gzip;q=0.8, deflate;q=0.5", b"gzip"),
        (b"deflate;q=0.5, gzip;q=0.2", b"deflate"),
        (b"br, gzip;q=0, deflate; q = 0.5 , identity;q=0", b"deflate"),
        (b"gzip ;q=0", None),
        (b"identity;q=0", None),
        (b"gzip;q=0.5,identity;q=0.8", b"gzip"),
        (b"br,identity;q=0.5,gzip;q=0.0001", b"gzip"),
        (b"gzip;q=0, gzip;q=1, gzip;q=0", b"gzip"),
        (b"gzip;level=1;q=0", None),
    ],
)
def test_the_one_of_the_higher_quality_and_identity_never(
    header: bytes, encoding: bytes | None
) -> None:
    assert best_encoding(header) == encoding


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"*", b"gzip"),
        (b"*, identity", b"gzip"),
        (b"*;q=0.5,identity", b"gzip"),
        (b"*, deflate", b"deflate"),
        (b"*, deflate;q=0.5", b"gzip"),
        (b"*, gzip;q=0.5", b"deflate"),
        (b"*;q=0", None),
        (b"br;q=0.8,identity;q=0.5,*;q=0", None),
    ],
)
def test_a_star_stands_for_what_the_header_does_not_name(
    header: bytes, encoding: bytes | None
) -> None:
    assert best_encoding(header) == encoding


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b'"gzip"', None),
        (b"gzip br", None),
        (b"gzip:q=1", None),
        (b"deflate;q=0.5, gzip;q=31", b"gzip"),
        (b"gzip;q=31,deflate;q=51", b"gzip"),
        (b"deflate;q=0.5, gzip;q=1;q=0.2", b"gzip"),
        (b"deflate;q=0.5,gzip;q=0.", b"deflate"),
        (b"deflate;q=0.5,gzip;q=0.x", b"gzip"),
        (b"deflate;q=-0.5,gzip;q=0.2", b"gzip"),
    ],
)
def test_a_malformed_quality_is_one_and_a_malformed_name_is_nobody(
    header: bytes, encoding: bytes | None
) -> None:
    assert best_encoding(header) == encoding


def test_gzip_members_are_decoded_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte reaches a decoder about once, however many members the body has."""
    fed = 0

    class Counting:
        def __init__(self, window_bits: int) -> None:
            self._decoder = zlib.decompressobj(window_bits)

        def decompress(self, data: bytes, limit: int) -> bytes:
            nonlocal fed
            fed += len(data)
            return self._decoder.decompress(data, limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._decoder, name)

    body = gzip.compress(b"") * 900 + gzip.compress(random.Random(1).randbytes(200_000))
    with monkeypatch.context() as patched:
        module = SimpleNamespace(decompressobj=Counting, MAX_WBITS=zlib.MAX_WBITS, error=zlib.error)
        patched.setattr("stator.server.http.compression.zlib", module)
        plain = decode_body(body, b"gzip", 1_000_000)
    assert plain == gzip.decompress(body)
    assert fed < 2 * len(body) + 900 * 512


def test_a_body_of_very_many_members_is_refused() -> None:
    with pytest.raises(InternalServerError):
        decode_body(gzip.compress(b"") * 1001, b"gzip", 1000)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 70_000, 1_000_000])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_any_body_decodes_to_what_was_compressed(encoding: str, size: int, level: int) -> None:
    plain = random.Random(size).randbytes(size)
    compress = gzip.compress if encoding == "gzip" else zlib.compress
    body = compress(plain, level)
    assert decode_body(body, encoding.encode(), size) == plain
    if size:
        with pytest.raises(RequestTooLarge):
            decode_body(body, encoding.encode(), size - 1)

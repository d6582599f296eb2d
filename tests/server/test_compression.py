"""Which encoding an Accept-Encoding header gets, as AWS reads the header."""

from __future__ import annotations

import pytest

from stator.server.http.compression import best_encoding


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

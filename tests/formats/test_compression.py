"""Compressed streams are read whole or end in DataDamaged, never early and in silence."""

from __future__ import annotations

import io
import sys

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from stator.errors import ConfigurationError, DataDamaged
from stator.formats.compression import by_content, compress, open_decompressed

from .damage import COMPRESS, DAMAGE, WHOLE, lines

CONTENT = lines(3000)


def read_all(packed: bytes, compression: str) -> bytes:
    return open_decompressed(io.BytesIO(packed), compression).read()


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", WHOLE)
def test_every_member_is_read(compression: str, way: str) -> None:
    packed = WHOLE[way](COMPRESS[compression], CONTENT)
    assert by_content(packed[:4]) == compression
    assert read_all(packed, compression) == CONTENT


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("way", DAMAGE)
def test_damage_is_an_error(compression: str, way: str) -> None:
    with pytest.raises(DataDamaged, match=compression):
        read_all(DAMAGE[way](COMPRESS[compression], CONTENT), compression)


@pytest.mark.parametrize("compression", COMPRESS)
@settings(max_examples=60)
@given(data=st.data())
def test_no_prefix_of_a_file_passes_for_the_whole(compression: str, data: st.DataObject) -> None:
    content = CONTENT[:5000]
    first = COMPRESS[compression](content)
    packed = first + COMPRESS[compression](content)
    cut = data.draw(st.integers(1, len(packed) - 1))
    if cut == len(first):
        assert read_all(packed[:cut], compression) == content
        return
    with pytest.raises(DataDamaged):
        read_all(packed[:cut], compression)


@pytest.mark.parametrize("compression", COMPRESS)
@settings(max_examples=60)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4))
def test_what_is_compressed_comes_back_and_can_be_joined(
    compression: str, contents: list[bytes]
) -> None:
    packed = b"".join(compress(content, compression) for content in contents)
    assert read_all(packed, compression) == b"".join(contents)


def test_zeros_after_gzip_and_skippable_frames_of_zstd_are_no_content() -> None:
    assert read_all(COMPRESS["gzip"](b"abc") + bytes(1000), "gzip") == b"abc"
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"
    packed = skippable + COMPRESS["zstd"](b"abc") + skippable + COMPRESS["zstd"](b"def")
    assert read_all(packed, "zstd") == b"abcdef"


def test_an_empty_file_is_empty_and_an_uncompressed_one_is_itself() -> None:
    assert read_all(b"", "gzip") == read_all(b"", "zstd") == b""
    file = io.BytesIO(b"abc")
    assert open_decompressed(file, None) is file


def test_zstd_without_content_size_or_checksum_is_read() -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed = compressor.compress(CONTENT) + compressor.flush()
    assert read_all(packed, "zstd") == CONTENT
    with pytest.raises(DataDamaged, match="ends too early"):
        read_all(packed[:-1], "zstd")


def test_lines_are_read_before_the_damage() -> None:
    packed = COMPRESS["zstd"](CONTENT)
    stream, count = open_decompressed(io.BytesIO(packed[: len(packed) // 2]), "zstd"), 0
    with pytest.raises(DataDamaged):
        for _ in stream:
            count += 1
    assert 0 < count < 3000


def test_closing_the_stream_closes_the_file() -> None:
    file = io.BytesIO(COMPRESS["gzip"](b"abc"))
    open_decompressed(file, "gzip").close()
    assert file.closed


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ConfigurationError) as caught:
        open_decompressed(io.BytesIO(b""), "zstd")
    assert caught.value.hint == "pip install 'stator[blobs]'"

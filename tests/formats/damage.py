"""Ways in which a compressed file goes wrong, and ways in which it only looks as if it did."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

import zstandard

Compress = Callable[[bytes], bytes]


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


COMPRESS: dict[str, Compress] = {"gzip": gzip.compress, "zstd": zstd}


def flipped(packed: bytes) -> bytes:
    """One bit in the middle is another."""
    middle = len(packed) // 2
    return packed[:middle] + bytes([packed[middle] ^ 0x10]) + packed[middle + 1 :]


DAMAGE: dict[str, Callable[[Compress, bytes], bytes]] = {
    "truncated in the middle": lambda pack, content: pack(content)[: len(pack(content)) // 2],
    "truncated by a byte": lambda pack, content: pack(content)[:-1],
    "truncated in the header": lambda pack, content: pack(content)[:3],
    "second member truncated": lambda pack, content: pack(content[:100]) + pack(content[100:])[:-5],
    "second member truncated to a byte": lambda pack, content: pack(content) + pack(content)[:1],
    "a bit flipped": lambda pack, content: flipped(pack(content)),
    "trailing garbage": lambda pack, content: pack(content) + b"and more of it",
    "not compressed at all": lambda pack, content: content,
}
WHOLE: dict[str, Callable[[Compress, bytes], bytes]] = {
    "one member": lambda pack, content: pack(content),
    "three members": lambda pack, content: b"".join(
        map(pack, (content[:10], content[10:2000], content[2000:]))
    ),
    "an empty member between": lambda pack, content: (
        pack(content[:500]) + pack(b"") + pack(content[500:])
    ),
}


def lines(count: int) -> bytes:
    """Lines of DynamoDB JSON that do not compress well, so that every cut hits data."""
    noise = random.Random(5)
    return b"".join(
        b'{"Item":{"pk":{"S":"p%d"},"sk":{"N":"%d"},"noise":{"S":"%x"}}}\n'
        % (number, number, noise.getrandbits(400))
        for number in range(count)
    )

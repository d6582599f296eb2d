"""How many shards a partition key needs, so that no single one of its values is too hot.

One partition of DynamoDB takes 1,000 write units and 3,000 read units a second, and one key value lives in one partition. Where a
pattern's peak on a value is above that, a shard number is written behind the value, taken from a hash of the item's identity:
``STATUS#open#07``. Whoever knows the identity computes the shard; whoever reads the whole value asks every shard.
Shards are made to be seven tenths full, for the hash is not perfect and neither is the estimate.
"""

from __future__ import annotations

import math
import zlib
from typing import Final

WRITE_LIMIT: Final = 1000.0
READ_LIMIT: Final = 3000.0
TARGET: Final = 0.7


def shards_for(peak: float, limit: float) -> int:
    """Shards for a peak of units a second on one key value; 1 when it fits as it is."""
    return 1 if peak <= limit else math.ceil(peak / limit / TARGET)


def shard_of(identity: str, shards: int) -> int:
    """The shard of an item, from the key text of its identity: the same in every program and on every day."""
    return zlib.crc32(identity.encode()) % shards


def shard_text(shard: int, shards: int) -> str:
    return f"{shard:0{len(str(shards - 1))}d}"

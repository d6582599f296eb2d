"""Stream shards that a test splits or closes at any time, without waiting for hours.

On AWS a shard closes after about four hours, and a hot one splits in two. Programs that read a
stream must then read the parent to its end before its children.
"""

from __future__ import annotations

import random

from stator.engine import Engine
from stator.errors import ConfigurationError


def open_shards(engine: Engine, table: str) -> list[str]:
    """Return the ids of the shards that take new records, oldest first."""
    return [
        shard.id for shard in engine.streams.find(_stream(engine, table)).shards if shard.is_open
    ]


def split_shard(
    engine: Engine, table: str, shard_id: str | None = None, *, seed: int = 0
) -> tuple[str, str]:
    """Split an open shard in two, as if it were hot, and return the ids of its children.

    Without ``shard_id`` the seed chooses one of the open shards.
    """
    if shard_id is None:
        shard_id = random.Random(seed).choice(open_shards(engine, table))  # noqa: S311 - repeatable
    low, high = engine.streams.split(_stream(engine, table), shard_id)
    return low.id, high.id


def roll_shards(engine: Engine, table: str) -> list[str]:
    """Close every open shard, as after four hours, and return the ids of their children."""
    return [shard.id for shard in engine.streams.roll(_stream(engine, table))]


def _stream(engine: Engine, table: str) -> str:
    description = engine.call("DescribeTable", {"TableName": table})["Table"]
    if not (description.get("StreamSpecification") or {}).get("StreamEnabled"):
        raise ConfigurationError(
            f"the table {table} has no stream",
            hint='enable it with db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))',
        )
    return str(description["LatestStreamArn"])

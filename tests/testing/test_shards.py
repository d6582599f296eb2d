"""Shards split and close when a test says so, and a reader still sees every record."""

from __future__ import annotations

import pytest

from stator.engine import Engine
from stator.errors import ConfigurationError, ResourceNotFound
from stator.testing import open_shards, roll_shards, split_shard
from tests.engine.streams.reading import create, read_all, table


def test_shards_split_and_roll() -> None:
    with Engine.open() as engine:
        arn = create(engine)
        before = open_shards(engine, "orders")
        children = split_shard(engine, "orders", before[0])
        assert open_shards(engine, "orders") == [*before[1:], *children]
        assert split_shard(engine, "orders", seed=4) != children
        rolled = roll_shards(engine, "orders")
        assert open_shards(engine, "orders") == rolled
        with pytest.raises(ResourceNotFound, match="is not open"):
            split_shard(engine, "orders", before[0])
        for number in range(20):
            engine.call("PutItem", {"TableName": "orders", "Item": {"pk": {"S": str(number)}}})
            if number % 5 == 0:
                split_shard(engine, "orders", seed=number)
        assert len(read_all(engine, arn)) == 20


def test_the_seed_chooses_the_shard() -> None:
    chosen = []
    for _ in range(2):
        with Engine.open() as engine:
            create(engine)
            before = open_shards(engine, "orders")
            split_shard(engine, "orders", seed=11)
            after = open_shards(engine, "orders")
            chosen.append([at for at, shard in enumerate(before) if shard not in after])
    assert len(chosen[0]) == 1 and chosen[0] == chosen[1]


def test_a_table_without_a_stream_is_refused() -> None:
    with Engine.open() as engine:
        engine.call("CreateTable", table("plain", view=None))
        with pytest.raises(ConfigurationError, match="the table plain has no stream"):
            open_shards(engine, "plain")

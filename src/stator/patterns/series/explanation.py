"""What a series costs, and where its items are."""

from __future__ import annotations

from collections.abc import Sequence

from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.rollups.rollup import RollupRule
from stator.patterns.series.directory import BucketDirectory
from stator.patterns.series.layout import SeriesLayout


def explain_series(
    layout: SeriesLayout,
    directory: BucketDirectory,
    rules: Sequence[RollupRule],
    counted_with_writes: int,
) -> PatternExplanation:
    place = layout.place
    shards = directory.shards
    spread = f"{shards} shard{'' if shards == 1 else 's'}{' and more when throttled' if directory.adaptive else ''}"
    where = (
        f"tables {layout.period_table('<' + layout.table_per + '>')}"
        if layout.table_per
        else place.table
    )
    head = layout.tables_partition
    items = [
        f"{place.partition} {head}#<{layout.by.name}>#<{layout.bucket}>#<shard>  {place.sort} <{layout.at.name}>#<identity>",
        f"{place.partition} {head}#<{layout.by.name}>  {place.sort} BUCKET#<{layout.bucket}>  _shards, _history",
        *(
            f"{place.partition} {head}#<{layout.by.name}>#ROLLUP#{rule.field}#{rule.period}#...#<shard>  {place.sort} <{rule.period}>"
            for rule in rules
        ),
    ]
    return PatternExplanation(
        f"series {layout.name}, a bucket for each {layout.bucket} over {spread}, in {where}",
        tuple(items),
        (*_writes(counted_with_writes), *_reads(shards, rules)),
        (
            "shards take 1,000 write units a second each; every read of a bucket asks all of its shards",
            *(
                ("tables of a period are made at the first write into it, which waits for them",)
                if layout.table_per
                else ()
            ),
        ),
    )


def _writes(rollups: int) -> tuple[OperationCost, ...]:
    opening = OperationCost(
        "add, the first into a bucket by a process", "UpdateItem before it", 0, 1
    )
    if not rollups:
        return (
            OperationCost("add", "PutItem", 0, 1),
            OperationCost("add_many", "BatchWriteItem of 25", 0, 25),
            opening,
        )
    one = OperationCost("add", f"TransactWriteItems of {rollups + 1}", 0, 2.0 * (rollups + 1))
    many = OperationCost(
        "add_many",
        "TransactWriteItems of up to 100",
        0,
        2.0,
        "per reading, and 2 for each roll-up that it shares with others",
    )
    return (one, many, opening)


def _reads(shards: int, rules: Sequence[RollupRule]) -> tuple[OperationCost, ...]:
    listing = "Query for the buckets"
    found = [
        OperationCost(
            "range",
            f"{listing}, {shards} Query for each bucket",
            1 + 0.5 * shards,
            0,
            "per bucket, and what it gives",
        ),
        OperationCost("latest", f"{listing}, {shards} Query", 1 + 0.5 * shards),
        OperationCost(
            "count",
            f"{listing}, {shards} Query for each bucket",
            1 + 0.5 * shards,
            0,
            "and all the items counted",
        ),
    ]
    if rules:
        found.append(
            OperationCost(
                "rollup range", f"GetItem, {shards} Query for each partition", 1 + 0.5 * shards
            )
        )
    return tuple(found)

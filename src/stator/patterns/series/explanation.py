"""The layout and cost of a series, for ``print(series.explain())``."""

from __future__ import annotations

from collections.abc import Sequence

from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
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
    spread = f"{shards} shard{'' if shards == 1 else 's'}"
    if directory.adaptive is not None:
        spread += f", up to {directory.adaptive.most} where a key is hot"
        if directory.adaptive.tables > 1:
            spread += f", in up to {directory.adaptive.tables} tables where one table is the limit"
    where = (
        f"tables {layout.period_table('<' + layout.table_per + '>')}"
        if layout.table_per
        else place.table
    )
    series = f"{layout.tables_partition}#<{layout.by.name}>"
    items = [
        item_layout(place, f"{series}#<{layout.bucket}>#<shard>", f"<{layout.at.name}>#<identity>"),
        item_layout(place, series, f"BUCKET#<{layout.bucket}>", "_shards, _history"),
        *(
            item_layout(
                rule.place,
                f"{series}#ROLLUP#{rule.field}#{rule.period}#...#<shard>",
                f"<{rule.period}>",
            )
            for rule in rules
        ),
    ]
    return PatternExplanation(
        f"series {layout.name}, one bucket per {layout.bucket} over {spread}, in {where}",
        tuple(items),
        (*_writes(counted_with_writes), *_reads(shards, rules)),
        (
            "a shard takes 1,000 write units per second; a read of a bucket queries all its shards",
            *_adaptive(directory),
            *(
                ("the first write of a period creates its table and waits for it",)
                if layout.table_per
                else ()
            ),
        ),
    )


def _adaptive(directory: BucketDirectory) -> tuple[str, ...]:
    adaptive = directory.adaptive
    if adaptive is None:
        return ()
    return (
        (
            f"a hot bucket gets one more shard for every {adaptive.target * 1000:,.0f} write units"
            " a second, in powers of two; each more costs a read of the bucket 0.5 read units"
        ),
        (
            "a process writes 1 unit a minute for each bucket that it uses, and 1 unit in 10"
            " seconds if the bucket is hot"
        ),
    )


def _writes(rollups: int) -> tuple[OperationCost, ...]:
    opening = OperationCost("add, the first of a process to a bucket", "one more UpdateItem", 0, 1)
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
        "per reading, and 2 per roll-up that it shares with others",
    )
    return (one, many, opening)


def _reads(shards: int, rules: Sequence[RollupRule]) -> tuple[OperationCost, ...]:
    listing = "Query for the buckets"
    found = [
        OperationCost(
            "range",
            f"{listing}, {shards} Query per bucket",
            1 + 0.5 * shards,
            0,
            "per bucket, plus the items returned",
        ),
        OperationCost("latest", f"{listing}, {shards} Query", 1 + 0.5 * shards),
        OperationCost(
            "count",
            f"{listing}, {shards} Query per bucket",
            1 + 0.5 * shards,
            0,
            "per bucket, plus the items counted",
        ),
    ]
    if rules:
        found.append(
            OperationCost(
                "rollup range", f"GetItem, {shards} Query per partition", 1 + 0.5 * shards
            )
        )
    return tuple(found)

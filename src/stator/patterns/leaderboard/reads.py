"""Reads of a leaderboard: entries before or after a position, and counts.

All shards are read in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.model.values import Item
from stator.patterns.item_pages import query_count
from stator.patterns.leaderboard.items import BoardItems, Standing
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.expressions import Expressions


class BoardReads:
    """Queries over all shards of one leaderboard."""

    def __init__(self, items: BoardItems, shards: int, label: str, *, consistent: bool) -> None:
        self.items = items
        self.shards = shards
        self.label = label
        self.consistent = consistent

    def next(self, after: str | None, n: int, *, backwards: bool = False) -> Work[list[Standing]]:
        """Return the ``n`` entries after the sort key ``after``, the nearest first.

        If ``backwards``, return the ``n`` entries before ``after`` instead. If ``after`` is None,
        start at the first entry of the board or, if ``backwards``, at the last.
        """
        parts = [self._page(shard, after, n, backwards) for shard in range(self.shards)]
        found = [item for part in gathered((yield Gather(parts))) for item in part]
        found.sort(key=lambda item: item[self.items.place.sort]["S"].encode(), reverse=backwards)
        return [self.items.read_entry(item) for item in found[:n]]

    def _page(self, shard: int, after: str | None, n: int, backwards: bool) -> Work[list[Item]]:
        terms = {} if after is None else {"<" if backwards else ">": after}
        request = self._query(self.items.entries(shard), terms) | {
            "ScanIndexForward": not backwards
        }
        return (yield from self._all(request, n))

    def count(self, first: str | None = None, last: str | None = None) -> Work[int]:
        """Return the number of entries from sort key ``first`` to ``last``, both included.

        If ``first`` or ``last`` is None, the range has no bound at that end.
        """
        parts = [self._count(shard, first, last) for shard in range(self.shards)]
        counts: Sequence[int] = gathered((yield Gather(parts)))
        return sum(counts)

    def _count(self, shard: int, first: str | None, last: str | None) -> Work[int]:
        terms = {sign: text for sign, text in ((">=", first), ("<=", last)) if text is not None}
        request = self._query(self.items.entries(shard), terms)
        return (yield from query_count(request, self.label))

    def histogram(self, bucket: int | None = None) -> Work[tuple[int, int]]:
        """Return how many scores are in buckets better than ``bucket``, and how many in ``bucket``.

        If ``bucket`` is None, return the number of all scores, and 0.
        """
        terms = {} if bucket is None else {"<=": self.items.bucket_text(bucket)}
        parts = [
            self._all(self._query(self.items.counts(shard), terms)) for shard in range(self.shards)
        ]
        found = [item for part in gathered((yield Gather(parts))) for item in part]
        within = [item for item in found if bucket is not None and self._is_of(item, bucket)]
        total, inside = (sum(int(item["_n"]["N"]) for item in items) for items in (found, within))
        return total - inside, inside

    def _is_of(self, item: Item, bucket: int) -> bool:
        return bool(item[self.items.place.sort]["S"] == self.items.bucket_text(bucket))

    def _all(self, request: dict[str, Any], n: int | None = None) -> Work[list[Item]]:
        found: list[Item] = []
        while n is None or len(found) < n:
            limit = {} if n is None else {"Limit": n - len(found)}
            reply = yield Call("Query", request | limit, self.label)
            found += reply["Items"]
            if "LastEvaluatedKey" not in reply:
                break
            request = request | {"ExclusiveStartKey": reply["LastEvaluatedKey"]}
        return found

    def _query(self, partition: str, terms: dict[str, str]) -> dict[str, Any]:
        """Return a Query of one shard's entries, limited to a range of sort keys.

        ``terms`` maps comparison operators to sort keys: ``{"<=": "k"}``. Two of them,
        ``{">=": "a", "<=": "k"}``, become BETWEEN.
        """
        place = self.items.place
        written = Expressions()
        condition = f"{written.name(place.partition)} = {written.value({'S': partition})}"
        values = [written.value({"S": text}) for text in terms.values()]
        if len(values) == 2:
            condition += f" AND {written.name(place.sort)} BETWEEN {values[0]} AND {values[1]}"
        elif values:
            condition += f" AND {written.name(place.sort)} {next(iter(terms))} {values[0]}"
        request: dict[str, Any] = {"TableName": place.table, "KeyConditionExpression": condition}
        if self.consistent:
            request["ConsistentRead"] = True
        return written.into(request)

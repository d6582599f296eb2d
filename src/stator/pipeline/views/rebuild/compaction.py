"""Compaction: merges the partials of ended shards, so that each group keeps only a few.

A partial may be merged when no worker can write it any more. That is so when its shard's lease
ended more than an hour ago, or no longer exists. (A lease is deleted at the earliest a day after
its end.) One transaction adds such partials to the partial named BASE and empties them.

An emptied partial stays until the next merge deletes it. It is marked ``merged``, and BASE names it
in ``merged``. Readers need both marks, because a Query may see BASE before the merge and a partial
after it, or the reverse. A reader leaves out partials that BASE names. It reads again if it finds a
marked partial that BASE does not name.

Merging happens after a shard has written to a group for the first time, because that is when the
group gets another partial.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from stator.errors import ConnectionTrouble, ServiceError
from stator.model.values import Item
from stator.model.wide_numbers import EXACT, whole_name, wide_attributes
from stator.patterns.item_pages import prefix_query, query_all
from stator.pipeline.views.layout import BASE, LABEL, ViewGroup, ViewLayout
from stator.pipeline.workers.shards.leases import LeaseTable
from stator.tables.context import Context
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions

SAFE_SECONDS: Final = 3600.0
_AT_ONCE: Final = 20
_TURN_GROUPS: Final = 5


class Compaction:
    def __init__(self, context: Context, layout: ViewLayout) -> None:
        self._context = context
        self._layout = layout

    def some(
        self, app: str, fresh: dict[tuple[int, ViewGroup], None], generation: int
    ) -> Work[None]:
        """Merge the partials of a few groups for which new partials were created.

        ``fresh`` lists these groups; those that were tried are removed from it. Only groups in
        ``generation``, the generation in use, are merged. A rebuild that builds the next generation
        may repeat a write to a partial. The write would count twice if the partial were merged in
        between. Errors of the service are ignored, because nothing depends on a merge.
        """
        known = list(fresh)
        for each in known:
            if each[0] < generation:
                fresh.pop(each, None)
        turn = [each for each in known if each[0] == generation][:_TURN_GROUPS]
        if not turn:
            return
        try:
            over = yield from self._over(app)
        except (ServiceError, ConnectionTrouble):
            return
        for each in turn:
            fresh.pop(each, None)
            try:
                yield from self.merge(generation, each[1], over)
            except (ServiceError, ConnectionTrouble):
                continue  # another worker merges it, or a later call does: nothing depends on it

    def _over(self, app: str) -> Work[Any]:
        """Return a function that takes a shard and says whether its partials may be merged.

        Partials may be merged if the shard's lease ended so long ago that no worker can still
        believe that it holds the lease.
        """
        leases = (yield from LeaseTable(self._context, app, 1.0, 0.0).load()).leases.values()
        limit = self._context.now() - SAFE_SECONDS
        live = {lease.shard for lease in leases if not lease.is_ended or lease.ended_at > limit}
        return lambda shard: shard not in live

    def merge(self, generation: int, group: ViewGroup, over: Any) -> Work[int]:
        """Merge the partials of a group that belong to ended shards. Return their number.

        First deletes the partials that an earlier merge emptied. ``over`` is a function that takes
        a shard and says whether its partials may be merged (``_over``).
        """
        request = prefix_query(
            self._layout.place, self._layout.partials(generation, group.by), f"{group.bucket}#"
        )
        items = yield from query_all(request, LABEL)
        named = {self._layout.split_partial(item)[1]: item for item in items}
        base = named.pop(BASE, None)
        old = {
            name: item for name, item in named.items() if not name.startswith("~") and over(name)
        }
        done = {name: item for name, item in old.items() if "merged" in item}
        fresh = [(name, item) for name, item in old.items() if "merged" not in item][:_AT_ONCE]
        if not fresh:
            return 0
        for item in done.values():
            yield Call(
                "DeleteItem", {"TableName": self._layout.place.table, "Key": self._key(item)}, LABEL
            )
        yield Call(
            "TransactWriteItems",
            {"TransactItems": self._merged(generation, group, base, fresh)},
            LABEL,
        )
        return len(fresh)

    def _merged(
        self, generation: int, group: ViewGroup, base: Item | None, fresh: list[tuple[str, Item]]
    ) -> list[Any]:
        """Return the statements that add the partials in ``fresh`` to BASE and empty them.

        BASE is put as a whole, because a percentile sketch has more numbers than an update takes.
        """
        count = 0 if base is None else int(base["merges"]["N"])
        merged = self._layout.partial(generation, group, BASE)
        sums = added([item for _, item in fresh] + ([] if base is None else [base]))
        for name, amount in sums.items():
            if amount:
                merged |= wide_attributes(name, amount)
        merged["merged"] = {"SS": sorted(name for name, _ in fresh)}
        merged["merges"] = {"N": str(count + 1)}
        ttl = self._layout.place.ttl
        if ttl in fresh[0][1]:
            merged[ttl] = fresh[0][1][ttl]
        written = Expressions()
        merges = written.name("merges")
        as_seen = (
            f"attribute_not_exists({merges})"
            if base is None
            else f"{merges} = {written.value(base['merges'])}"
        )
        put = written.into(
            {"TableName": self._layout.place.table, "Item": merged, "ConditionExpression": as_seen}
        )
        return [{"Put": put}, *(self._emptied(item) for _, item in fresh)]

    def _emptied(self, item: Item) -> dict[str, Any]:
        """Return the statement that removes the sums from a partial that was merged.

        It fails if the partial has changed since it was read.
        """
        written = Expressions()
        left = {**self._key(item), "applied": item["applied"], "merged": {"BOOL": True}}
        ttl = self._layout.place.ttl
        if ttl in item:
            left[ttl] = item[ttl]
        condition = f"{written.name('applied')} = {written.value(item['applied'])}"
        condition += f" AND attribute_not_exists({written.name('merged')})"
        return {
            "Put": written.into(
                {
                    "TableName": self._layout.place.table,
                    "Item": left,
                    "ConditionExpression": condition,
                }
            )
        }

    def _key(self, item: Item) -> Item:
        return {
            name: item[name] for name in (self._layout.place.partition, self._layout.place.sort)
        }


def added(items: Iterable[Item]) -> dict[str, Decimal]:
    """Return the sum of each numeric attribute over several partials."""
    sums: dict[str, Decimal] = {}
    for item in items:
        for name, value in item.items():
            if name in _OWN or "N" not in value or name.startswith("_"):
                continue
            whole = whole_name(name)
            sums[whole] = EXACT.add(sums.get(whole, Decimal(0)), Decimal(value["N"]))
    return sums


_OWN: Final = frozenset({"applied", "merged", "merges"})

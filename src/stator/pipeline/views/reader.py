"""Reads of a view: one group and bucket, a range of buckets, or a whole group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from stator.design.plan.key_text import SEPARATOR
from stator.errors import DesignError
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.pipeline.views.layout import BASE, LABEL, NO_BUCKET, ViewGroup, after
from stator.pipeline.views.metrics import Additive, Metric, Ordered
from stator.pipeline.views.rebuild.compaction import added
from stator.pipeline.views.rebuild.rebuild import (
    Rebuild,
    RebuildOptions,
    RebuildProgress,
    RebuildReport,
)
from stator.pipeline.views.rows import Row
from stator.pipeline.views.sketch import Percentiles
from stator.pipeline.views.updater import MaintainedView
from stator.tables.operation import D, OnDb, operation
from stator.tables.reads.item_list import ItemList
from stator.tables.reads.items import decoded
from stator.tables.schema.missing_attributes import missing_attribute
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.expressions import Expressions

_SIDE_BY_SIDE: Final = 100


@dataclass(frozen=True, slots=True)
class BucketRange:
    """The time buckets from ``first`` to ``last``, both included, as key text."""

    first: str
    last: str


class MaintainedReader(OnDb[D]):
    """Reads a view or projection in a database."""

    def __init__(self, db: D, view: MaintainedView) -> None:
        super().__init__(db)
        self.view = view

    @operation
    def rebuild(
        self, options: RebuildOptions | None = None, progress: RebuildProgress | None = None
    ) -> Work[RebuildReport]:
        """Build the view again from its table, while workers update it and readers read it.

        ``progress`` is called from time to time. ``rebuild.rebuild`` explains how this works.
        """
        return (yield from Rebuild(self.view, options, progress).run())

    def generation(self) -> Work[int]:
        """Return the number of the generation in use. A rebuild increases it."""
        head = yield from self.view.heads.load()
        return 1 if head is None else head.generation


class ViewReader(MaintainedReader[D]):
    """Reads the rows of a view. A group without source items has no row."""

    @operation
    def get(self, /, **group: Any) -> Work[Row | None]:
        """Return the row of a group and a time bucket, or None if there is none.

        Pass the group's fields and any time in the bucket: ``get(isp=..., at=...)``.
        """
        asked = self.view.source.group_of(group, with_bucket=True)
        rows = yield from self._rows(asked.by, BucketRange(asked.bucket, asked.bucket))
        return rows[0] if rows else None

    @operation
    def many(self, groups: Iterable[Mapping[str, Any]], /) -> Work[list[Row | None]]:
        """Return a row or None for each group: ``many([{"isp": ..., "at": ...}, ...])``."""
        asked = [self.view.source.group_of(group, with_bucket=True) for group in groups]
        generation = yield from self.generation()
        while True:
            found: list[list[Row]] = []
            for at in range(0, len(asked), _SIDE_BY_SIDE):
                some = asked[at : at + _SIDE_BY_SIDE]
                work = [
                    self._rows_of(generation, each.by, BucketRange(each.bucket, each.bucket))
                    for each in some
                ]
                found += gathered((yield Gather(work)))
            before, generation = generation, (yield from self.generation())
            if before == generation:
                return ItemList(rows[0] if rows else None for rows in found)

    @operation
    def range(self, start: datetime, end: datetime, /, **group: Any) -> Work[list[Row]]:
        """Return the rows of a group whose time buckets overlap the range, oldest first.

        Pass the group's fields by name: ``range(start, end, isp="acme")``.
        """
        asked = self.view.source.group_of(group, with_bucket=False)
        text = self.view.source.bucket_text
        if end <= start:
            return ItemList()
        buckets = BucketRange(text(start), text(end - timedelta(microseconds=1)))
        return (yield from self._rows(asked.by, buckets))

    @operation
    def all(self, /, **group: Any) -> Work[list[Row]]:
        """Return the rows of a group for all time buckets, oldest first.

        Pass the group's fields by name: ``all(isp="acme")``.
        """
        asked = self.view.source.group_of(group, with_bucket=False)
        return (yield from self._rows(asked.by, None))

    @operation
    def groups(self) -> Work[list[dict[str, Any]]]:
        """Return the groups that have or once had items, as dictionaries of their field values."""
        generation = yield from self.generation()
        place = self.view.layout.place
        items = yield from query_all(
            prefix_query(place, self.view.layout.groups(generation), ""), LABEL
        )
        names = [field.name for field in self.view.source.declared.by]
        found = []
        for item in items:
            text = item[place.sort]["S"] if names else ""
            bucket = "1970" if self.view.source.declared.bucket is not None else NO_BUCKET
            values = self.view.source.values_of(ViewGroup(text, bucket))
            found.append({name: values[name] for name in names})
        return found

    # -- how

    def _rows(self, by: str, buckets: BucketRange | None) -> Work[list[Row]]:
        while True:
            generation = yield from self.generation()
            rows = yield from self._rows_of(generation, by, buckets)
            if rows or generation == (yield from self.generation()):
                return rows  # otherwise another generation took over, and this one may be deleted

    def _rows_of(self, generation: int, by: str, buckets: BucketRange | None) -> Work[list[Row]]:
        now = self.view.context.now()
        partials = yield from self._partials(generation, by, buckets)
        groups = {
            ViewGroup(by, bucket): added(items)
            for bucket, items in partials.items()
            if not self.view.source.is_over(bucket, now)
        }
        groups = {group: totals for group, totals in groups.items() if totals.get("n", 0) > 0}
        work = [self._row(generation, group, totals) for group, totals in groups.items()]
        return ItemList(gathered((yield Gather(work))))

    def _partials(
        self, generation: int, by: str, buckets: BucketRange | None
    ) -> Work[dict[str, list[Item]]]:
        """Return the partials to sum, by bucket.

        Partials that are already merged into BASE are left out (``rebuild.compaction``).
        """
        layout = self.view.layout
        request = _range_query(layout.place, layout.partials(generation, by), buckets)
        while True:
            items = yield from query_all(request, LABEL)
            found: dict[str, dict[str, Item]] = {}
            for item in items:
                bucket, shard = layout.split_partial(item)
                found.setdefault(bucket, {})[shard] = item
            if all(_is_whole(shards) for shards in found.values()):
                return {bucket: _to_sum(shards) for bucket, shards in found.items()}

    def _row(self, generation: int, group: ViewGroup, totals: Any) -> Work[Row]:
        source = self.view.source
        values = source.values_of(group)
        for name, metric in source.declared.metrics.items():
            if isinstance(metric, Additive):
                kind = (
                    source.kind(metric.field)
                    if metric.field is not None and metric.numeric
                    else int
                )
                values[name] = metric.read(name, totals, kind)
            else:
                values[name] = yield from ranked(self.view, generation, group, metric)
        return Row(_bounded(values, source.declared.metrics))


def _bounded(values: dict[str, Any], metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """Add the exact lowest and highest value to the percentiles of a field, if the row has them.

    The row has them if the view also has a ``minimum`` or ``maximum`` metric of the same field.
    """
    for name, metric in metrics.items():
        if not isinstance(values[name], Percentiles) or metric.field is None:
            continue
        for other, extreme in metrics.items():
            if (
                isinstance(extreme, Ordered)
                and extreme.gives == "value"
                and extreme.field.name == metric.field.name
                and values[other] is not None
            ):
                bound = "highest" if extreme.descending else "lowest"
                values[name] = replace(values[name], **{bound: float(values[other])})
    return values


def ranked(view: MaintainedView, generation: int, group: ViewGroup, metric: Ordered) -> Work[Any]:
    """Return the result of an ordered metric, such as ``top`` or ``minimum``.

    Reads the group's rank rows in the metric's order, up to the metric's count.
    """
    layout = view.layout
    name = metric.field.name
    request = prefix_query(
        layout.place, layout.rows(generation, group), f"{name}{SEPARATOR}", metric.count
    )
    request["ScanIndexForward"] = not metric.descending
    found: list[Item] = []
    while len(found) < metric.count:
        reply = yield Call("Query", request, LABEL)
        found += [item["source"]["M"] for item in reply["Items"]]
        if "LastEvaluatedKey" not in reply:
            break
        request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]
    found = found[: metric.count]
    if metric.gives == "value":
        return _field(view, name, found[0]) if found else None
    copies = yield from copied(view, found, metric)
    return copies if metric.gives == "many" else (copies[0] if copies else None)


def copied(view: MaintainedView, items: Sequence[Item], metric: Ordered) -> Work[list[Any]]:
    """Return the stored copies of source items: entities, or rows with only the chosen fields."""
    of = view.source.of
    if metric.copies is None:
        return (yield from decoded(view.context, of, [dict(item) for item in items]))
    names = list(dict.fromkeys([*(field.name for field in metric.copies), metric.field.name]))
    return [Row({name: _field(view, name, item) for name in names}) for item in items]


def _field(view: MaintainedView, name: str, copy: Item) -> Any:
    """Return a field of a stored copy. A source item without the attribute gives the default."""
    of = view.source.of
    if name in copy:
        return of.codec.decode_field[name](copy[name])
    value = missing_attribute(of, name, copy)
    return None if value is None else of.codec.decode_field[name](value)


def _range_query(place: Any, partition: str, buckets: BucketRange | None) -> dict[str, Any]:
    if buckets is None:
        return prefix_query(place, partition, "")
    written = Expressions()
    low, high = (
        written.value({"S": f"{buckets.first}{SEPARATOR}"}),
        written.value({"S": after(buckets.last)}),
    )
    condition = f"{written.name(place.partition)} = {written.value({'S': partition})}"
    condition += f" AND {written.name(place.sort)} BETWEEN {low} AND {high}"
    return written.into(
        {"TableName": place.table, "KeyConditionExpression": condition, "ConsistentRead": True}
    )


def _names_merged(shards: dict[str, Item]) -> set[str]:
    return set(shards.get(BASE, {}).get("merged", {}).get("SS", ()))


def _is_whole(shards: dict[str, Item]) -> bool:
    """Whether the read saw each merge of partials either completely or not at all.

    If not, the partials must be read again (``rebuild.compaction``). ``shards`` has one bucket's
    partials by shard.
    """
    emptied = {name for name, item in shards.items() if name != BASE and "merged" in item}
    return emptied <= _names_merged(shards)


def _to_sum(shards: dict[str, Item]) -> list[Item]:
    left_out = _names_merged(shards)
    return [item for name, item in shards.items() if name not in left_out]


def check_groupable(given: Sequence[Any]) -> None:
    if len({field.name for field in given}) != len(given):
        raise DesignError(f"{[*given]!r} has the same field twice", hint="name each field once")

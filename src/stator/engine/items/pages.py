"""A page of a Query or Scan: up to 1 MB of entries, filtered and projected.

A page costs as much as the entries it reads. The limit, the size and the capacity all count entries
before the filter, as on AWS. Without a filter or a projection only the last entry is decoded,
because its key becomes the LastEvaluatedKey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from stator.engine.items import capacity, records
from stator.engine.items.capacity import Consumed
from stator.engine.items.key_ranges import Range, start_names
from stator.engine.items.page_spread import PageSpread
from stator.engine.items.stale_reader import EntryReader
from stator.engine.partitions.capacity_meter import CapacityMeter
from stator.engine.tables.item_keys import check_key_paths
from stator.engine.tables.table import Index, Table
from stator.errors import ValidationFailed
from stator.expr.condition import evaluate
from stator.expr.paths import project
from stator.expr.tree import Condition, ProjectionExpression, attribute_names, paths_in
from stator.model.limits import PAGE_BYTES
from stator.model.values import INVALID, Item


@dataclass(slots=True, init=False)
class ReadView:
    """The table or index that a Query or Scan reads, its filter, and the attributes it returns."""

    table: Table
    index: Index | None
    filter: Condition | None
    projection: ProjectionExpression | None
    count_only: bool
    # Entries of a local index may lack requested attributes: then each item is fetched from the
    # table.
    fetch: bool
    consistent: bool

    def __init__(
        self,
        table: Table,
        index: Index | None,
        filter: Condition | None,
        projection: ProjectionExpression | None,
        count_only: bool,
        fetch: bool,
        consistent: bool,
    ) -> None:
        self.table = table
        self.index = index
        self.filter = filter
        self.projection = projection
        self.count_only = count_only
        self.fetch = fetch
        self.consistent = consistent


@dataclass(slots=True, init=False)
class EntryPage:
    response: dict[str, Any]
    consumed: Consumed

    def __init__(self, response: dict[str, Any], consumed: Consumed) -> None:
        self.response = response
        self.consumed = consumed


def find_index(table: Table, name: str | None, consistent: bool) -> Index | None:
    if name is None:
        return None
    index = table.index(name)
    if index is None:
        raise ValidationFailed(f"The table does not have the specified index: {name}")
    if index.is_global:
        if consistent:
            raise ValidationFailed("Consistent reads are not supported on global secondary indexes")
        if index.backfilled_to is not None:
            raise ValidationFailed(f"Cannot read from backfilling global secondary index: {name}")
    return index


def make_view(
    table: Table,
    index: Index | None,
    filter: Condition | None,
    projection: ProjectionExpression | None,
    select: str | None,
    consistent: bool,
    *,
    is_query: bool,
) -> ReadView:
    """Check that the table or index can serve the read, and return the read view.

    With ``is_query``, a filter may use only attributes that the index projects.
    """
    if projection is not None:
        check_key_paths(table.schema, list(projection.paths))
    if filter is not None:
        check_key_paths(table.schema, paths_in(filter))
    fetch = False
    if index is not None and index.projected is not None:
        requested = set() if projection is None else attribute_names(projection)
        beyond = (
            [name for name in _ordered(projection) if name not in index.projected]
            if requested
            else []
        )
        if index.is_global:
            _refuse_beyond(index, beyond, select)
        filtered = [] if filter is None else sorted(attribute_names(filter) - index.projected)
        if is_query and filtered:
            raise ValidationFailed(
                f"{INVALID}Secondary index {index.name} does not project one or more filter "
                f"attributes: [{', '.join(filtered)}]"
            )
        fetch = not index.is_global and (bool(beyond) or select == "ALL_ATTRIBUTES")
    return ReadView(table, index, filter, projection, select == "COUNT", fetch, consistent)


def _ordered(projection: ProjectionExpression | None) -> list[str]:
    return (
        []
        if projection is None
        else list(dict.fromkeys(str(path.parts[0]) for path in projection.paths))
    )


def _refuse_beyond(index: Index, beyond: list[str], select: str | None) -> None:
    if select == "ALL_ATTRIBUTES":
        raise ValidationFailed(
            f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index "
            f"{index.name} because its projection type is not ALL"
        )
    if beyond:
        raise ValidationFailed(
            f"{INVALID}Global secondary index {index.name} does not project [{', '.join(beyond)}]"
        )


def read_page(
    storage: EntryReader,
    meter: CapacityMeter,
    view: ReadView,
    span: Range,
    limit: int | None,
    *,
    forward: bool = True,
) -> EntryPage:
    """Return one page of the storage keys in ``span``, and charge the partitions that serve it.

    ``limit`` is the request's Limit. Raises SlowDown if a throughput limit refuses the read.
    """
    if not meter.charges_keys and view.table.traffic.keys is None:
        entries = storage.values(span.low, span.high, reverse=not forward)
        page = read_records(storage, view, entries, limit)
        if meter.counts_units:
            meter.count_read(view.table, view.index, page.consumed.total)
        return page
    spread = PageSpread(storage, meter, view.table, view.index)
    entries = spread.values(span.low, span.high, reverse=not forward)
    page = read_records(storage, view, entries, limit)
    spread.charge(page.consumed.total)
    return page


def read_records(
    storage: EntryReader, view: ReadView, entries: Iterable[bytes], limit: int | None
) -> EntryPage:
    """Return one page of the stored records that ``entries`` yields, filtered and projected.

    The page ends after ``limit`` records or 1 MB. PartiQL passes the records of several key ranges
    as one iterator.
    """
    if view.filter is None and view.projection is None and not view.fetch:
        walked = _walk_raw(entries, limit, keep=not view.count_only)
    else:
        walked = _walk(storage, view, entries, limit)
    response: dict[str, Any] = {}
    if not view.count_only:
        response["Items"] = walked.items
    response["Count"] = walked.count
    response["ScannedCount"] = walked.scanned
    if walked.last is not None:
        item = records.unpack(walked.last)
        response["LastEvaluatedKey"] = {name: item[name] for name in _key_order(view)}
    return EntryPage(response, _consumed(view, walked))


def _key_order(view: ReadView) -> list[str]:
    names = start_names(view.table, view.index)
    ordered = [
        *(view.index.schema.names if view.index is not None else ()),
        *view.table.schema.names,
    ]
    return [name for name in dict.fromkeys(ordered) if name in names]


@dataclass(slots=True, init=False)
class _Walked:
    items: Any
    count: int
    scanned: int
    size: int
    last: bytes | None
    fetched_units: float

    def __init__(
        self,
        items: Any,
        count: int,
        scanned: int,
        size: int,
        last: bytes | None,
        fetched_units: float = 0.0,
    ) -> None:
        self.items = items
        self.count = count
        self.scanned = scanned
        self.size = size
        self.last = last
        self.fetched_units = fetched_units


def _walk_raw(entries: Iterable[bytes], limit: int | None, *, keep: bool) -> _Walked:
    """Collect a page of whole items as stored, without decoding them.

    With ``keep=False``, only count them. This is the engine's hottest loop (see ``bench/``).
    """
    parts: list[bytes] = []
    append = parts.append
    size = scanned = 0
    last: bytes | None = None
    most = limit if limit is not None else -1
    from_bytes = int.from_bytes
    for record in entries:
        size += from_bytes(record[1:5], "big")
        scanned += 1
        if keep:
            append(record[records.HEADER_BYTES :])
        if scanned == most or size >= PAGE_BYTES:
            last = record
            break
    items = orjson.Fragment(b"[" + b",".join(parts) + b"]") if keep else None
    return _Walked(items, scanned, scanned, size, last)


def _walk(
    storage: EntryReader, view: ReadView, entries: Iterable[bytes], limit: int | None
) -> _Walked:
    shape = _shaper(view)
    items: list[Any] = []
    size = scanned = 0
    units = 0.0
    last: bytes | None = None
    for record in entries:
        size += records.size_of(record)
        scanned += 1
        item = records.unpack(record)
        whole = record
        if view.fetch:
            whole = _fetched(storage, view.table, item) or record
            units += capacity.read_units(records.size_of(whole), view.consistent)
            item = records.unpack(whole)
        if view.filter is None or evaluate(view.filter, item):
            items.append(shape(item, whole))
        if scanned == limit or size >= PAGE_BYTES:
            last = record
            break
    return _Walked(items, len(items), scanned, size, last, units)


def _shaper(view: ReadView) -> Callable[[Item, bytes], Any]:
    projection = view.projection
    if view.count_only:
        return lambda item, record: None
    if projection is None:
        return lambda item, record: records.fragment(record)
    return lambda item, record: project(item, projection.paths)


def _fetched(storage: EntryReader, table: Table, item: Item) -> bytes | None:
    return storage.get(table.encode_key(item))


def _consumed(view: ReadView, walked: _Walked) -> Consumed:
    units = capacity.read_units(walked.size, view.consistent)
    if view.index is None:
        return Consumed(units)
    return Consumed(walked.fetched_units, {view.index.name: units})

"""The tables of a series besides the design's own: by period of time, and against table limits.

    PK  SERIES#readings         SK  TABLE#2026-11
    PK  SERIES#readings         SK  TABLE-2#2026-11
    PK  SERIES#readings         SK  DROPPED              _before 2026-10-01T00:00:00.000000Z

The TABLE# entry is written before its table is created and removed after the table is deleted, so
that no table is ever forgotten. A process that dies in between leaves the entry of a table that
does not exist. The next process that needs the table creates it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from stator.design.plan.key_text import encode
from stator.design.table_settings import TableSettings
from stator.errors import ConditionFailed, ResourceNotFound
from stator.model.periods import period_text
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query, query_all
from stator.patterns.series.layout import SeriesLayout
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.work import Call, Work
from stator.tables.writes.expressions import Expressions


@dataclass(frozen=True, slots=True, order=True)
class OwnTable:
    """A table that a series has created.

    ``period`` is the period whose readings it holds, or "" for all time. ``number`` counts the
    tables of that period from 0.
    """

    period: str
    number: int

    @property
    def sort_key(self) -> str:
        """The sort key of its entry: TABLE#2026-11, and TABLE-2#2026-11 for the second table."""
        return f"TABLE-{self.number + 1}#{self.period}" if self.number else f"TABLE#{self.period}"

    @classmethod
    def of(cls, sort_key: str) -> OwnTable:
        head, _, period = sort_key.partition("#")
        number = head.removeprefix("TABLE").removeprefix("-")
        return cls(period, int(number) - 1 if number else 0)


class SeriesTables:
    """Creates, lists and deletes the tables of a series.

    ``most`` is the largest number of tables that a bucket can be divided among.
    """

    def __init__(self, context: Context, layout: SeriesLayout, most: int) -> None:
        self.context = context
        self.layout = layout
        self.most = most
        self._ready: set[str] = set()
        self._label = f"series {layout.name}"

    def forget(self, table: str) -> None:
        """Discard what is remembered of a table, because it may be gone."""
        self._ready.discard(table)

    def open_all(self, text: str, tables: int) -> Work[None]:
        """Create the further tables of a bucket that is divided among several."""
        for number in range(1, tables):
            yield from self.open(self.layout.period(text), number)

    def open(self, period: str, number: int = 0) -> Work[None]:
        place = self.layout.period_place(period, number)
        if place.table in self._ready:
            return
        listed = self._entry(OwnTable(period, number))
        yield Call("PutItem", {"TableName": self.layout.place.table, "Item": listed}, self._label)
        yield from TableSetup(self.context, TableSettings()).place(place)
        self._ready.add(place.table)

    def ensure(self) -> Work[list[str]]:
        """Create all further tables of the series, or of its current period. Return what was done.

        With ``table_per``, the period's first table is created as well.
        """
        period = ""
        if self.layout.table_per is not None:
            period = period_text(
                self.layout.table_per, datetime.fromtimestamp(self.context.now(), UTC)
            )
        known = set(self._ready)
        if self.most > 1:
            for number in range(0 if period else 1, self.most):
                yield from self.open(period, number)
        return [f"{table} is ready" for table in sorted(self._ready - known)]

    def listed(self) -> Work[list[OwnTable]]:
        """Return the tables that the series has created, the earliest period first."""
        request = prefix_query(self.layout.place, self.layout.tables_partition, "TABLE")
        items = yield from query_all(request, self._label)
        return sorted(OwnTable.of(self.layout.sort_of(item)) for item in items)

    def periods(self) -> Work[list[str]]:
        """Return the periods that have tables of their own, the earliest first."""
        tables = yield from self.listed()
        return list(dict.fromkeys(table.period for table in tables))

    def _entry(self, table: OwnTable) -> Item:
        return self.layout.place.key(self.layout.tables_partition, table.sort_key)

    def record_drop(self, moment: datetime) -> Work[None]:
        """Record that readings before ``moment`` are gone. Call it before a table is deleted."""
        written = Expressions()
        before, value = written.name("_before"), written.value({"S": encode("datetime", moment)})
        request = {
            "TableName": self.layout.place.table,
            "Key": self._dropped_key(),
            "UpdateExpression": f"SET {before} = {value}",
            "ConditionExpression": f"attribute_not_exists({before}) OR {before} < {value}",
        }
        with suppress(ConditionFailed):  # an earlier drop went further
            yield Call("UpdateItem", written.into(request), self._label)

    def dropped_before(self) -> Work[datetime | None]:
        if self.layout.table_per is None:
            return None
        request = {
            "TableName": self.layout.place.table,
            "Key": self._dropped_key(),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, self._label)
        return datetime.fromisoformat(reply["Item"]["_before"]["S"]) if reply.get("Item") else None

    def _dropped_key(self) -> Item:
        return self.layout.place.key(self.layout.tables_partition, "DROPPED")

    def drop(self, period: str) -> Work[None]:
        """Delete the tables of a period, with their readings.

        If a process died half-way, call it again.
        """
        for each in (yield from self.listed()):
            if each.period != period:
                continue
            table = self.layout.period_table(period, each.number)
            with suppress(ResourceNotFound):  # deleted by an earlier attempt, or never created
                yield Call("DeleteTable", {"TableName": table}, self._label)
            request = {"TableName": self.layout.place.table, "Key": self._entry(each)}
            yield Call("DeleteItem", request, self._label)
            self._ready.discard(table)

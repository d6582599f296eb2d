"""``Projection``: copies of chosen fields of every item under another key, updated by a stream app.

by_email = Projection("by_email", of=User, key=User.email, fields=[User.user_id, User.name])
app.add(by_email)
by_email.on(db).first(email="anna@example.org").user_id
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from stator.design.entities.conditions import FieldRef
from stator.design.plan.key_text import SEPARATOR
from stator.errors import DesignError
from stator.model.values import Item
from stator.patterns.item_pages import prefix_query
from stator.pipeline.views.layout import LABEL, ViewGroup
from stator.pipeline.views.metrics import Ordered, field_of
from stator.pipeline.views.reader import MaintainedReader, check_groupable, copied
from stator.pipeline.views.sources import ViewDeclaration
from stator.pipeline.views.updater import MaintainedView, ViewUpdater, as_fields
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, context_of, iteration, operation
from stator.tables.reads.cursors import make_cursor, read_cursor
from stator.tables.reads.pattern_read import Page, check_limit
from stator.tables.work import Call, Work

# The options of the reader's methods, which take the fields of the key by name, too.
_OPTIONS: Final = ("newest_first", "limit", "cursor")


@checks_arguments("Projection")
class Projection(ViewUpdater):
    """A copy of items under another key, kept up to date by workers.

    It answers what an index would, also for fields that cannot be index keys, and it can be rebuilt
    while it is in use. ``app.add(projection)`` maintains it, and ``projection.on(db)`` reads it.
    """

    def __init__(
        self,
        name: str,
        /,
        *,
        of: type[Any],
        key: Sequence[Any] | Any,
        sort: Any = None,
        fields: Sequence[Any] | None = None,
        where: Any = None,
    ) -> None:
        """Declare a projection.

        Items are found by all fields of ``key`` and returned in the order of ``sort``. ``fields``
        are copied; without it, everything is copied. Items for which ``where`` does not hold, or
        that have None in a field of ``key`` or ``sort``, are left out.
        """
        keys = tuple(field_of(each, "key") for each in as_fields(key))
        check_groupable(keys)
        _check_names(name, keys)
        order = keys[0] if sort is None else field_of(sort, "sort")
        copies = (
            None if fields is None else tuple(field_of(each, "fields") for each in (*keys, *fields))
        )
        self.rows = Ordered(order, descending=False, count=1, gives="many", copies=copies)
        super().__init__(
            name, ViewDeclaration(of, keys, None, where, None, {"rows": self.rows}), has_sums=False
        )

    def on(self, db: D) -> ProjectionReader[D]:
        """Return a reader of the projection in a database. With an AsyncDb, await every call."""
        context = context_of(db, "projection.on()", "projection.on(connect(shop))")
        return ProjectionReader(db, self.in_database(context), self.rows)


class ProjectionReader(MaintainedReader[D]):
    """Reads a projection: a view that keeps a copy of every item under another key.

    The results are entities or, if the projection copies only some fields, rows with these fields.
    """

    def __init__(self, db: D, view: MaintainedView, rows: Ordered) -> None:
        super().__init__(db, view)
        self._rows = rows

    @iteration
    def find(
        self, /, *, newest_first: bool = False, limit: int | None = None, **key: Any
    ) -> ProjectionPages:
        """Return all items with this key, in the order of ``sort``, or the first ``limit``.

        ``newest_first=True`` reverses the order.
        """
        return self._pages(key, newest_first=newest_first, limit=limit)

    @operation
    def page(
        self, /, *, limit: int, cursor: str | None = None, newest_first: bool = False, **key: Any
    ) -> Work[Page[Any]]:
        """Return up to ``limit`` items with this key, and the cursor of the next page.

        The items are in the order of ``find``. The cursor is None after the last page. It is valid
        for the same key and order only. Items are paged forward only: ``previous`` of the page is
        always None.
        """
        check_limit(limit)
        pages = self._pages(key, newest_first=newest_first, limit=limit)
        about, secret = f"projection {self.view.layout.name}", self.context.cursor_key
        bound = {"key": pages.group.by, "newest": newest_first}
        if cursor is not None:
            [position] = read_cursor(cursor, about, bound, secret).positions
            assert isinstance(position, dict)
            pages.after = position["after"]["S"]
        items: list[Any] = []
        while not pages.is_done:
            items += yield from pages.page()
        if not pages.has_more or pages.after is None:
            return Page(items, None)
        return Page(items, make_cursor([{"after": {"S": pages.after}}], about, bound, secret))

    @operation
    def first(self, /, *, newest_first: bool = False, **key: Any) -> Work[Any]:
        """Return the first item with this key, or None if there is none."""
        pages = self._pages(key, newest_first=newest_first, limit=1)
        found: list[Any] = []
        while not pages.is_done and not found:
            found = yield from pages.page()
        return found[0] if found else None

    def _pages(
        self, key: dict[str, Any], *, newest_first: bool, limit: int | None
    ) -> ProjectionPages:
        check_limit(limit)
        group = self.view.source.group_of(key, with_bucket=False)
        return ProjectionPages(self, group, self._rows, newest_first=newest_first, limit=limit)


class ProjectionPages:
    """The items of one key, page by page, up to ``limit``.

    ``after`` is the sort key of the last item returned. Once the last page has been read,
    ``has_more`` says whether more items follow.

    A rebuild may replace the generation between two pages. The items have the same sort keys in
    every generation, so the next page continues in the new one. A page that was read while the
    generation was replaced is read again, because the old generation may already be deleted.
    """

    def __init__(
        self,
        reader: ProjectionReader[Any],
        group: ViewGroup,
        rows: Ordered,
        *,
        newest_first: bool,
        limit: int | None,
    ) -> None:
        self.group = group
        self.after: str | None = None
        self.has_more = False
        self.is_done = False
        self._reader = reader
        self._rows = rows
        self._newest_first = newest_first
        self._left = limit
        self._generation: int | None = None

    def page(self) -> Work[list[Any]]:
        view, place = self._reader.view, self._reader.view.layout.place
        if self._generation is None:
            self._generation = yield from self._reader.generation()
        while True:
            reply = yield Call("Query", self._request(self._generation), LABEL)
            read, self._generation = self._generation, (yield from self._reader.generation())
            if read == self._generation:
                break
        items: list[Item] = reply["Items"]
        found = items if self._left is None else items[: self._left]
        self.has_more = "LastEvaluatedKey" in reply or len(found) < len(items)
        if "LastEvaluatedKey" in reply:
            self.after = reply["LastEvaluatedKey"][place.sort]["S"]
        if found:
            self.after = found[-1][place.sort]["S"]
        if self._left is not None:
            self._left -= len(found)
        self.is_done = not self.has_more or self._left == 0
        return (yield from copied(view, [item["source"]["M"] for item in found], self._rows))

    def _request(self, generation: int) -> dict[str, Any]:
        layout = self._reader.view.layout
        partition = layout.rows(generation, self.group)
        # One item more than wanted shows whether others follow.
        limit = None if self._left is None else self._left + 1
        prefix = f"{self._rows.field.name}{SEPARATOR}"
        request = prefix_query(layout.place, partition, prefix, limit)
        request["ScanIndexForward"] = not self._newest_first
        if self.after is not None:
            request["ExclusiveStartKey"] = layout.place.key(partition, self.after)
        return request


def _check_names(name: str, keys: Sequence[FieldRef]) -> None:
    for field in keys:
        if field.name in _OPTIONS:
            raise DesignError(
                f"projection '{name}': find() and page() have an option {field.name},"
                f" so a field {field.name} cannot be part of the key",
                hint="give the field another name in the entity",
            )

"""``Projection``: copies of chosen fields of every item under another key, updated by a stream app.

by_email = Projection("by_email", of=User, key=User.email, fields=[User.user_id, User.name])
app.add(by_email)
by_email.on(db).first(email="anna@example.org").user_id
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stator.pipeline.views.metrics import Ordered, field_of
from stator.pipeline.views.reader import MaintainedReader, check_groupable, ranked
from stator.pipeline.views.sources import ViewDeclaration
from stator.pipeline.views.updater import MaintainedView, ViewUpdater, as_fields
from stator.tables.operation import D, operation
from stator.tables.work import Work


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
        return ProjectionReader(db, self.in_database(db.context), self.rows)


class ProjectionReader(MaintainedReader[D]):
    """Reads entities, or rows with the copied fields."""

    def __init__(self, db: D, view: MaintainedView, rows: Ordered) -> None:
        super().__init__(db, view)
        self._rows = rows

    @operation
    def find(
        self, limit: int = 1000, /, *, newest_first: bool = False, **key: Any
    ) -> Work[list[Any]]:
        """Return up to ``limit`` items with this key, in the order of ``sort``."""
        group = self._view.source.group_of(key, with_bucket=False)
        generation = yield from self._generation()
        rows = Ordered(self._rows.field, newest_first, limit, "many", self._rows.copies)
        found: list[Any] = yield from ranked(self._view, generation, group, rows)
        return found

    @operation
    def first(self, /, **key: Any) -> Work[Any]:
        """Return the first item with this key, or None if there is none."""
        found = yield from self.find.work(1, **key)
        return found[0] if found else None

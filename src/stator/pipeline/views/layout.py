"""The keys of a view's items. The package's docstring lists them."""

from __future__ import annotations

from typing import Final, NamedTuple

from stator.design.plan.key_text import AFTER, SEPARATOR, escape
from stator.model.values import Item
from stator.tables.schema.place import Place

NO_BUCKET: Final = "ALL"
BASE: Final = "BASE"
LABEL: Final = "view"


class ViewGroup(NamedTuple):
    """A group of a view and a time bucket, both as key text: ``("acme", "2026-11-16T07")``."""

    by: str
    bucket: str = NO_BUCKET


class ViewLayout:
    def __init__(self, place: Place, name: str) -> None:
        self.place = place
        self.name = name
        self._start = f"VIEW#{escape(name)}"

    @property
    def directory(self) -> str:
        """The partition key of the view's HEAD and START items."""
        return self._start

    def head(self) -> Item:
        return self.place.key(self._start, "HEAD")

    def start(self, generation: int, shard: str) -> Item:
        return self.place.key(self._start, f"{self.start_prefix(generation)}{shard}")

    def start_prefix(self, generation: int) -> str:
        return f"START#{generation}#"

    def prefix(self, generation: int) -> str:
        """Return the common prefix of a generation's partition keys."""
        return f"{self._start}#{generation}#"

    def groups(self, generation: int) -> str:
        return f"{self.prefix(generation)}G"

    def group(self, generation: int, by: str) -> Item:
        return self.place.key(self.groups(generation), by or NO_BUCKET)

    def partials(self, generation: int, by: str) -> str:
        return f"{self.prefix(generation)}P#{by}"

    def partial(self, generation: int, group: ViewGroup, shard: str) -> Item:
        return self.place.key(
            self.partials(generation, group.by), f"{group.bucket}{SEPARATOR}{shard}"
        )

    def rows(self, generation: int, group: ViewGroup) -> str:
        return f"{self.prefix(generation)}R#{group.by}{SEPARATOR}{group.bucket}"

    def row(self, generation: int, group: ViewGroup, sort: str) -> Item:
        return self.place.key(self.rows(generation, group), sort)

    def state(self, generation: int, mark: str) -> Item:
        return self.place.key(f"{self.prefix(generation)}S#{mark}", "STATE")

    def split_partial(self, item: Item) -> tuple[str, str]:
        """Return the time bucket and the shard that a partial's sort key names."""
        bucket, _, shard = item[self.place.sort]["S"].partition(SEPARATOR)
        return bucket, shard


def after(bucket: str) -> str:
    """Return a sort key that sorts after every partial of a time bucket."""
    return bucket + AFTER

"""The version of a stored layout, carried by one item of each family.

A pattern or a pipeline stores several kinds of items. One of them (the record, lease or head that
is read before the others) names the version of the whole family in ``_format``:

    PK  VIEW#isp_hours    SK  HEAD    app  billing   generation  3   _format  1

Items without the attribute were written before it existed and have version 1. A version newer than
this program knows is refused, because a program that guesses would overwrite data that it does not
understand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stator.errors import ItemFormatUnsupported
from stator.model.values import Item
from stator.tables.writes.expressions import Expressions

ATTRIBUTE: Final = "_format"


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """The version of the layout in which a family of items is stored, such as all items of a lock.

    ``family`` is the word for these items in error messages, such as ``lock`` or ``view``.
    """

    family: str
    version: int = 1

    def attributes(self) -> Item:
        """Return the attribute ``_format`` with the version, to add to the item that carries it."""
        return {ATTRIBUTE: {"N": str(self.version)}}

    def readable(self, written: Expressions) -> str:
        """Return the condition that the item's version is not newer than this program knows.

        Use it in a write that does not read the item first. The attribute name and the value in the
        condition are added to ``written``.
        """
        name = written.name(ATTRIBUTE)
        version = written.value({"N": str(self.version)})
        return f"(attribute_not_exists({name}) OR {name} <= {version})"

    def check(self, item: Item, name: str) -> None:
        """Raise an error if the item's version is newer than this program knows.

        ``name`` is the name of the lock, view and so on that the item belongs to, for the message.
        """
        found = int(item[ATTRIBUTE]["N"]) if ATTRIBUTE in item else 1
        if found > self.version:
            raise ItemFormatUnsupported(f"{self.family} {name}", found, self.version)

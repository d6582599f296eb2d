"""Lists of items that a notebook shows as a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from stator.design.plan.html_table import html_table
from stator.model.quantities import plural

E = TypeVar("E")
_MOST_SHOWN = 50


class ItemList(list[E]):
    """The list that a read returns: a list in every respect, and a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return items_table("", self)


def items_table(caption: str, items: Sequence[Any], more: str = "") -> str:
    """Return an HTML table with a row for each item and a column for each field.

    The table shows only the first items. Its caption is ``caption``, the number of all items, and
    ``more``.
    """
    rows = [_shown_fields(item) for item in items[:_MOST_SHOWN]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = f", the first {_MOST_SHOWN} shown" if len(items) > _MOST_SHOWN else ""
    return html_table(
        f"{caption}{plural(len(items), 'item')}{shown}{more}",
        columns,
        ([row.get(name) for name in columns] for row in rows),
    )


def _shown_fields(item: Any) -> Mapping[str, Any]:
    """Return the values of an item by column.

    A read with ``only`` returns tuples. Their columns are numbered from 1. A missing item is None,
    and has no columns.
    """
    if item is None:
        return {}
    if isinstance(item, tuple):
        return {str(at): value for at, value in enumerate(item, 1)}
    if isinstance(item, Mapping):
        return item
    return {"entity": type(item).__name__, **{name: getattr(item, name) for name in _names(item)}}


def _names(item: Any) -> Iterable[str]:
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)]
    fields = getattr(item, "__struct_fields__", None)  # of msgspec; pydantic keeps a dictionary
    if fields is not None:
        return tuple(fields)
    return [name for name in getattr(item, "__dict__", ()) if not name.startswith("_")]

"""Markers: the role of a field, such as identity, uniqueness, version, time or counter.

Each marker is a PEP 681 field specifier, so type checkers know which arguments ``__init__`` takes.
A marker only records the declaration. The layers above act on it: for example, the data layer
writes the guard of a unique field.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from stator.errors import DesignError
from stator.model.seconds import is_seconds

_METADATA: Final = "stator"
_STORED: Final = "stator_stored"
NOT_YET: Final = datetime.fromtimestamp(0, UTC)

Role = Literal[
    "ident",
    "unique",
    "version",
    "ttl",
    "created",
    "updated",
    "counter",
    "large",
    "write_token",
    "soft_delete",
]


@dataclass(frozen=True, slots=True)
class Marker:
    """A role with its options."""

    role: Role
    after: timedelta | None = None
    compress: str | None = None
    offload_over_bytes: int | None = None
    starts_at_clock: bool = False


def marker_of(declared: dataclasses.Field[Any]) -> Marker | None:
    found = declared.metadata.get(_METADATA)
    return found if isinstance(found, Marker) else None


def stored_name(declared: dataclasses.Field[Any]) -> str:
    """Return the name of the attribute that holds a field: the field's own, or a shorter one."""
    return str(declared.metadata.get(_STORED) or declared.name)


def _metadata(marker: Marker | None, stored: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if marker is None else {_METADATA: marker}
    return found if stored is None else found | {_STORED: stored}


def _marked(
    marker: Marker | None,
    default: Any,
    default_factory: Callable[[], Any] | Any = dataclasses.MISSING,
    stored: str | None = None,
) -> Any:
    metadata = _metadata(marker, stored)
    if default_factory is not dataclasses.MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    if default is not dataclasses.MISSING:
        return field(default=default, metadata=metadata)
    return field(metadata=metadata)


def _set_by_writes(
    marker: Marker, default_factory: Callable[[], Any], stored: str | None = None
) -> Any:
    """Return a field whose value is set by each write, not by the program.

    Type checkers refuse the field as an argument of ``__init__``, but at run time ``__init__``
    accepts it. ``dataclasses.replace`` needs that: it copies only the fields that ``__init__``
    accepts. A copy would otherwise lose its version and its time of creation.
    """
    return field(default_factory=default_factory, metadata=_metadata(marker, stored))


def ident(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Callable[[], Any] | Any = dataclasses.MISSING,
    stored: str | None = None,
) -> Any:
    """Mark a field as part of the item's identity.

    Several such fields together form a compound identity. ``stored`` is the name of the attribute
    that holds the field; see ``stored``. All markers have this argument.
    """
    return _marked(Marker("ident"), default, default_factory, stored)


def stored(
    name: str,
    /,
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Callable[[], Any] | Any = dataclasses.MISSING,
) -> Any:
    """Store a field under another name: ``temperature: float = stored("t")``.

    DynamoDB bills the names of attributes with every item, so short names save money at volume.
    Programs use the long name everywhere. Items, indexes, exports and upcasts have the short one.
    """
    return _marked(None, default, default_factory, name)


def unique(*, default: Any = dataclasses.MISSING, stored: str | None = None) -> Any:
    """Mark a field as unique: no two items of the entity have the same value."""
    return _marked(Marker("unique"), default, stored=stored)


def version(
    *,
    start: Literal["one", "clock"] = "one",
    stored: str | None = None,
    init: Literal[False] = False,
) -> Any:
    """Mark a field as the item's version number, for optimistic locking.

    Each write increments the version. A write fails if another write has changed the version since
    the item was read. A copy made with ``dataclasses.replace`` has the version of its original.

    A new item has version 1, also if it takes the key of a deleted item: an object of the earlier
    item then fits it. With ``start="clock"``, a new item's version is the time in microseconds, so
    that no version of a key is ever used twice.
    """
    if start not in ("one", "clock"):
        raise DesignError(
            f"version(start={start!r}) is not supported", hint='use start="one" or start="clock"'
        )
    return _set_by_writes(Marker("version", starts_at_clock=start == "clock"), int, stored)


def ttl(
    *, days: float = 0, hours: float = 0, default: Any = None, stored: str | None = None
) -> Any:
    """Mark a field as the time when the item expires.

    With ``days`` or ``hours``, the item expires that long after it is written, unless the field is
    set.

    Name the default, as in ``ttl(days=90, default=None)``, if programs may omit the field. Type
    checkers see a default only where the declaration names it (PEP 681).
    """
    after = _duration("ttl", days, hours)
    return _marked(Marker("ttl", after=after), default, stored=stored)


def soft_delete(
    *, days: float = 0, hours: float = 0, stored: str | None = None, init: Literal[False] = False
) -> Any:
    """Mark an optional time that a delete sets, instead of removing the item.

    Reads skip such an item, writes treat it as absent, and its unique values are free again.
    ``db.restore`` brings it back. With ``days`` or ``hours``, the item expires that long after it
    is deleted; the entity then needs a ``ttl()`` field. Declare it as
    ``deleted_at: datetime | None = soft_delete(days=30)``.
    """
    after = _duration("soft_delete", days, hours)
    return _set_by_writes(Marker("soft_delete", after=after), _none, stored)


def _duration(marker: str, days: float, hours: float) -> timedelta | None:
    """Return ``days`` and ``hours`` together, or None if both are 0.

    ``marker`` is the name of the marker that has these arguments, for the error.
    """
    if days == 0 and hours == 0:
        return None
    if not (is_seconds(days, or_zero=True) and is_seconds(hours, or_zero=True)) or not is_seconds(
        days * 86_400 + hours * 3_600
    ):
        raise DesignError(
            f"{marker}(days={days!r}, hours={hours!r}) is not a duration",
            hint="use numbers of 0 or more, together up to a hundred years",
        )
    return timedelta(days=days, hours=hours)


def created(*, stored: str | None = None, init: Literal[False] = False) -> Any:
    """Mark a field that is set to the time of the write that creates the item."""
    return _set_by_writes(Marker("created"), _not_yet, stored)


def updated(*, stored: str | None = None, init: Literal[False] = False) -> Any:
    """Mark a field that is set to the time of every write."""
    return _set_by_writes(Marker("updated"), _not_yet, stored)


def counter(*, default: int = 0, stored: str | None = None, shards: int | None = None) -> Any:
    """Mark a number that many writers add to.

    It is one attribute of one item, which takes about 1,000 writes a second. For more, use the
    pattern object ``Counter(db, name, shards=8)``, which spreads a number over several items. A
    field has no ``shards``: setting them raises DesignError.
    """
    if shards is not None:
        raise DesignError(
            f"counter(shards={shards!r}): a field is one attribute of one item and has no shards",
            hint=f"use the pattern object Counter(db, name, shards={shards!r}) of stator.patterns",
        )
    return _marked(Marker("counter"), default, stored=stored)


def write_token(*, stored: str | None = None, init: Literal[False] = False) -> Any:
    """Mark a text field that every write sets to a new random token, of 16 characters.

    If the answer to a write is lost, the token proves that the write was applied, as long as the
    token is still in the item. Without this field, the write ends in OutcomeUnknown.
    """
    return _set_by_writes(Marker("write_token"), str, stored)


def large(
    *,
    compress: Literal["auto", "gzip", "lz4", "zstd"] | None = "auto",
    offload_over_bytes: int | None = None,
    default: Any = dataclasses.MISSING,
    stored: str | None = None,
) -> Any:
    """Mark a value that may be large, so that it is compressed before it is stored.

    ``auto`` picks the compression with the smallest result; None turns compression off. If
    ``offload_over_bytes`` is set, a value that is larger even after compression is stored outside
    the table.
    """
    marker = Marker("large", compress=compress, offload_over_bytes=offload_over_bytes)
    return _marked(marker, default, stored=stored)


def _none() -> None:
    return None


def _not_yet() -> datetime:
    return NOT_YET

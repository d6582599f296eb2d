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

_METADATA: Final = "stator"
NOT_YET: Final = datetime.fromtimestamp(0, UTC)

Role = Literal[
    "ident", "unique", "version", "ttl", "created", "updated", "counter", "large", "write_token"
]


@dataclass(frozen=True, slots=True)
class Marker:
    """A role with its options."""

    role: Role
    after: timedelta | None = None
    compress: str | None = None
    offload_over_bytes: int | None = None


def marker_of(declared: dataclasses.Field[Any]) -> Marker | None:
    found = declared.metadata.get(_METADATA)
    return found if isinstance(found, Marker) else None


def _marked(
    marker: Marker, default: Any, default_factory: Callable[[], Any] | Any = dataclasses.MISSING
) -> Any:
    metadata = {_METADATA: marker}
    if default_factory is not dataclasses.MISSING:
        return field(default_factory=default_factory, metadata=metadata)
    if default is not dataclasses.MISSING:
        return field(default=default, metadata=metadata)
    return field(metadata=metadata)


def _set_by_writes(marker: Marker, default_factory: Callable[[], Any]) -> Any:
    """Return a field whose value is set by each write, not by the program.

    Type checkers refuse the field as an argument of ``__init__``. At run time ``__init__`` accepts
    it, for the sake of ``dataclasses.replace``. That function copies only the fields that
    ``__init__`` accepts and resets all others to their defaults. A copy would otherwise lose its
    version and its time of creation.
    """
    return field(default_factory=default_factory, metadata={_METADATA: marker})


def ident(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Callable[[], Any] | Any = dataclasses.MISSING,
) -> Any:
    """Mark a field as part of the item's identity.

    Several such fields together form a compound identity.
    """
    return _marked(Marker("ident"), default, default_factory)


def unique(*, default: Any = dataclasses.MISSING) -> Any:
    """Mark a field as unique: no two items of the entity have the same value."""
    return _marked(Marker("unique"), default)


def version(*, init: Literal[False] = False) -> Any:
    """Mark a field as the item's version number, for optimistic locking.

    Each write increments the version. A write fails if another write has changed the version since
    the item was read. A copy made with ``dataclasses.replace`` has the version of its original.
    """
    return _set_by_writes(Marker("version"), int)


def ttl(*, days: float = 0, hours: float = 0, default: Any = None) -> Any:
    """Mark a field as the time when the item expires.

    With ``days`` or ``hours``, the item expires that long after it is written, unless the field is
    set.

    Write ``ttl(days=90, default=None)``: PEP 681 lets type checkers see a default only where it is
    written out.
    """
    after = timedelta(days=days, hours=hours)
    return field(default=default, metadata={_METADATA: Marker("ttl", after=after or None)})


def created(*, init: Literal[False] = False) -> Any:
    """Mark a field that is set to the time of the write that creates the item."""
    return _set_by_writes(Marker("created"), _not_yet)


def updated(*, init: Literal[False] = False) -> Any:
    """Mark a field that is set to the time of every write."""
    return _set_by_writes(Marker("updated"), _not_yet)


def counter(*, default: int = 0) -> Any:
    """Mark a number that many writers add to.

    It is one attribute of one item, which takes about 1,000 writes a second. For more, use the
    pattern object ``Counter(db, name, shards=8)``, which spreads a number over several items.
    """
    return field(default=default, metadata={_METADATA: Marker("counter")})


def write_token(*, init: Literal[False] = False) -> Any:
    """Mark a text field that every write sets to a new random token, of 16 characters.

    If the answer to a write is lost, the token proves that the write was applied, as long as it is
    still in the item. Without it, the write ends in OutcomeUnknown.
    """
    return _set_by_writes(Marker("write_token"), str)


def large(
    *,
    compress: Literal["auto", "gzip", "lz4", "zstd"] | None = "auto",
    offload_over_bytes: int | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Mark a value that may be large, so that it is compressed before it is stored.

    ``auto`` picks the compression with the smallest result; None turns compression off. If
    ``offload_over_bytes`` is set, a value that is still larger is stored outside the table.
    """
    return _marked(
        Marker("large", compress=compress, offload_over_bytes=offload_over_bytes), default
    )


def _not_yet() -> datetime:
    return NOT_YET

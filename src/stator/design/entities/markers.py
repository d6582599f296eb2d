"""What a field is for, beside its type: identity, uniqueness, versions, times, counters, large and
secret values.

Each marker is a PEP 681 field specifier, so type checkers know which arguments ``__init__`` takes.
Markers only record what was declared; the layers above keep the promise (a unique guard is written
by the data layer, and so on).
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
    "ident", "unique", "version", "ttl", "created", "updated", "counter", "large", "encrypted"
]


@dataclass(frozen=True, slots=True)
class Marker:
    """A role and what it was declared with."""

    role: Role
    after: timedelta | None = None
    shards: int = 1
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


def ident(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Callable[[], Any] | Any = dataclasses.MISSING,
) -> Any:
    """Part of what identifies the item. Several fields may be; together they are its identity."""
    return _marked(Marker("ident"), default, default_factory)


def unique(*, default: Any = dataclasses.MISSING) -> Any:
    """No two items of the entity have the same value."""
    return _marked(Marker("unique"), default)


def version(*, init: Literal[False] = False) -> Any:
    """Optimistic lock: counted up by each write, which fails if somebody else wrote meanwhile."""
    return field(default_factory=int, init=init, metadata={_METADATA: Marker("version")})


def ttl(*, days: float = 0, hours: float = 0, default: Any = None) -> Any:
    """When the item expires.

    With ``days`` or ``hours``, that long after it is written unless a time is given.

    Write ``ttl(days=90, default=None)``: PEP 681 lets type checkers see a default only where it is
    written out.
    """
    after = timedelta(days=days, hours=hours)
    return field(default=default, metadata={_METADATA: Marker("ttl", after=after or None)})


def created(*, init: Literal[False] = False) -> Any:
    """Set to the time of the write that creates the item."""
    return field(default_factory=_not_yet, init=init, metadata={_METADATA: Marker("created")})


def updated(*, init: Literal[False] = False) -> Any:
    """Set to the time of every write."""
    return field(default_factory=_not_yet, init=init, metadata={_METADATA: Marker("updated")})


def counter(*, shards: int = 1, default: int = 0) -> Any:
    """A number that is added to, spread over ``shards`` items where one could not take the writes."""
    if shards < 1:
        raise ValueError("a counter has at least one shard")
    return field(default=default, metadata={_METADATA: Marker("counter", shards=shards)})


def large(
    *,
    compress: Literal["auto", "gzip", "lz4", "zstd"] | None = "auto",
    offload_over_bytes: int | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """A value that may be large: compressed (``auto`` takes the smallest), and stored outside the
    table past a size.
    """
    return _marked(
        Marker("large", compress=compress, offload_over_bytes=offload_over_bytes), default
    )


def encrypted(*, default: Any = dataclasses.MISSING) -> Any:
    """A value that is encrypted before it leaves the program."""
    return _marked(Marker("encrypted"), default)


def _not_yet() -> datetime:
    return NOT_YET

"""Routes: what an app does with the records of a topic, before and after it has a database.

A declared route, such as a ``PutRoute``, is what the user wrote. ``bind``
checks it against a schema. A bound route turns a record into an event to write (``event``), the
events of a key into a guarded write (``plan``), and the outcome into what is left (``after``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from stator.errors import (
    AccessDenied,
    CredentialsMissing,
    DesignError,
    IncompleteSignature,
    InvalidSignature,
    MissingAuthenticationToken,
    ResourceNotFound,
    StatorError,
    StorageError,
    UnknownOperation,
    UnrecognizedClient,
)
from stator.pipeline.ingest.source_record import PendingEvent, SourceRecord
from stator.pipeline.ingest.values.decoders import Decoder, UnknownFields
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap

FATAL: Final = (
    AccessDenied,
    MissingAuthenticationToken,
    IncompleteSignature,
    InvalidSignature,
    UnrecognizedClient,
    UnknownOperation,
    ResourceNotFound,
    CredentialsMissing,
    StorageError,
)
"""Errors that every write would have: the app stops, and commits nothing more."""


@dataclass(slots=True)
class RunOutcome:
    """The outcomes of the events of a run.

    ``left`` must be written again, at once or after a while (``error`` is the reason). ``dead`` are
    refused for good.
    """

    applied: int = 0
    folded: int = 0
    stale: int = 0
    left: Sequence[PendingEvent] = ()
    dead: list[tuple[PendingEvent, str]] = field(default_factory=list)
    error: StatorError | None = None


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """The options of any route: topic, decoder, name of the source, and filter."""

    topic: str
    decode: Decoder
    source: str
    when: Callable[[Any], Any] | None
    unknown: UnknownFields


class DeclaredRoute(Protocol):
    """A route as the user declared it."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> RouteOptions: ...

    def bind(self, context: Context, app: str) -> BoundRoute:
        """Check the route against the schema. Raises DesignError if it does not fit."""
        ...


class BoundRoute(Protocol):
    """A route bound to the tables of a schema."""

    options: RouteOptions

    def event(self, record: SourceRecord, value: Any) -> tuple[Any, Any] | None:
        """Return the key and the content of a record's event, or None if there is none.

        ``value`` is what the decoder returned, or None for a deletion. Raises an error for a record
        that cannot become an event.
        """
        ...


def refuse_unsupported(of: EntityMap, verb: str) -> None:
    """Refuse entities whose writes need more than one conditional request."""
    reasons = (
        (bool(of.unique), "unique() fields"),
        (bool(of.guarded), "an identity with a guard"),
        (bool(of.large), "large() fields"),
        (of.version is not None, "a version() field"),
        (of.deleted is not None, "a soft_delete() field"),
        (of.write_token is not None, "a write_token() field"),
        (verb == "put" and of.created is not None, "a created() field, which a put would reset"),
    )
    found = next((reason for applies, reason in reasons if applies), None)
    if found is not None:
        raise DesignError(
            f"{of.name} cannot be ingested with {verb}: it has {found}",
            hint="write it in a handler: @app.on(topic) gets a transaction, which handles these",
        )


def reason_of(error: StatorError) -> str:
    code = getattr(error, "code", None) or type(error).__name__
    return f"{code}: {error.message}"

"""The outcomes of guarded writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from stator.errors import ConnectionTrouble, ServiceError, StatorError
from stator.model.values import Item


@dataclass(frozen=True, slots=True)
class Applied:
    """The write has been applied."""


@dataclass(frozen=True, slots=True)
class Stale:
    """The guard condition is false: usually the stored item is newer than the write, or the same.

    ``old`` is the stored item, or None if there is no item or the writer did not read it.
    A writer with ``old_items=True`` always reads it.
    """

    old: Item | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """DynamoDB refuses the write for good, for example because the item is too large."""

    error: StatorError


@dataclass(frozen=True, slots=True)
class Later:
    """The write should be tried again: the service throttled it, failed, or gave no answer."""

    error: ServiceError | ConnectionTrouble


@dataclass(frozen=True, slots=True)
class Unknown:
    """An answer was lost, and the repeated write was refused, so the first attempt may have worked.

    ``stored`` is the item that is stored now. It does not show who wrote it.
    """

    error: StatorError
    stored: Item | None = None


Outcome = Union[Applied, Stale, Refused, Later, Unknown]

"""Applied once: a write that carries the position of the change it applies.

The idea. A stream delivers every change at least once. It may deliver a change again after a crash,
in different batches, or for a moment to two workers at once. A sum over changes must still count
each exactly once. So the sum and the *position* of the last change in it are written together, in
one request, on condition that the position is still below the added changes. A replay finds the
position at or above its changes and adds nothing.

    PK  VIEW#isp_hours#1#P#acme    SK  2026-11-16T07#shardId-0001...    n  812   applied  "000...42"

Positions are comparable only within one source that numbers its changes in order: a shard of a
stream. Two forms:

- ``AppliedPosition``: one attribute of an item that is updated by the changes of a single shard.
- ``ShardPositions``: a map in an item that is updated by the changes of several shards, with an
  entry for each shard. A shard is forgotten two days after its last change, which is longer than a
  stream keeps a change.

Some batches have a name but no number, such as a parked change that is retried. Such a batch is
applied in one transaction with an item of that name: ``applied_marker``. If the marker exists, so
does the effect. Changes whose shard is unknown, as on AWS Lambda, are applied in the same way, each
with a marker of its own (``coordination.named_changes``).

What fails: when two writers write the same changes, the second writer's condition fails. It reads
the position from the refusal, drops the changes that are already applied, and writes the rest, if
any. A writer that crashes has written everything or nothing, because there is only one request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.tables.schema.place import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement

_SEQUENCE_DIGITS: Final = 40
_SHARD_SECONDS: Final = 48 * 3600.0
# How long a marker stays: much longer than a stream can deliver a change again.
APPLIED_SECONDS: Final = 7 * 86_400.0


def sequence_text(sequence: str) -> str:
    """Format a sequence number as text that sorts in numeric order.

    AWS's sequence numbers have up to 40 digits, but a DynamoDB Number has only 38.
    """
    return (sequence or "0").rjust(_SEQUENCE_DIGITS, "0")


class Positioned(Protocol):
    """A change with its sequence number, as text that ``sequence_text`` has formatted."""

    @property
    def sequence(self) -> str: ...


C = TypeVar("C", bound=Positioned)


def unapplied(changes: Sequence[C], position: str) -> list[C]:
    """Return the changes whose sequence numbers are above ``position``, or all if it is empty."""
    return [change for change in changes if change.sequence > position]


@dataclass(frozen=True, slots=True)
class AppliedPosition:
    """The attribute of an item that holds the sequence number of the last applied change.

    Methods that take ``written`` return a clause for an expression of a request. They add the
    attribute names and values that the clause uses to ``written``.
    """

    attribute: str

    def read(self, item: Item | None) -> str:
        """Return the stored position, or empty text if nothing has been applied."""
        return item[self.attribute]["S"] if item and self.attribute in item else ""

    def assignment(self, written: Expressions, last: str) -> str:
        """Return a SET clause that stores ``last``, the number of the last applied change."""
        return f"{written.name(self.attribute)} = {written.value({'S': last})}"

    def below(self, written: Expressions, first: str) -> str:
        """Return the condition that the stored position is below ``first``, or that none is stored.

        ``first`` is the lowest sequence number of the changes to apply. If the condition holds,
        none of them has been applied yet.
        """
        name = written.name(self.attribute)
        return f"(attribute_not_exists({name}) OR {name} < {written.value({'S': first})})"

    def unchanged(self, written: Expressions, item: Item) -> str:
        """Return the condition that the stored position is still the same as in ``item``.

        ``item`` was read earlier.
        """
        name = written.name(self.attribute)
        if self.attribute not in item:
            return f"attribute_not_exists({name})"
        return f"{name} = {written.value(item[self.attribute])}"


@dataclass(frozen=True, slots=True)
class ShardPositions:
    """The last applied sequence number of each shard, and when it was stored.

    Stored as a map of texts, with the time in seconds since the epoch after the ``@``:
    ``{shardId-0001...: "000...42@1791489600"}``.
    """

    marks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, item: Item, attribute: str) -> ShardPositions:
        stored = item[attribute]["M"] if attribute in item else {}
        return cls({shard: mark["S"] for shard, mark in stored.items()})

    def of(self, shard: str) -> str:
        """Return the last applied sequence number of a shard, or empty text if there is none."""
        return self.marks.get(shard, "").partition("@")[0]

    def moved(self, shard: str, last: str, now: float) -> ShardPositions:
        """Return the positions with ``last`` as the last applied sequence number of ``shard``.

        ``now`` is stored as the time of this change. Shards without a change in the last two days
        are dropped.
        """
        oldest = now - _SHARD_SECONDS
        recent = {
            name: mark
            for name, mark in self.marks.items()
            if float(mark.partition("@")[2]) > oldest
        }
        return ShardPositions({**recent, shard: f"{last}@{int(now)}"})

    def attributes(self, attribute: str) -> Item:
        """Return the positions as an attribute to store, or no attribute if there are none."""
        if not self.marks:
            return {}
        return {attribute: {"M": {shard: {"S": mark} for shard, mark in self.marks.items()}}}


def applied_marker(place: Place, name: str, expires_at: float) -> Statement:
    """Return a transaction action that puts an item to mark the batch ``name`` as applied.

    The transaction fails with ConditionFailed if the marker exists, that is, if the batch has
    already been applied. The marker expires at ``expires_at``, in seconds since the epoch.
    """
    written = Expressions()
    request = {
        "TableName": place.table,
        "Item": {
            **place.key(f"APPLIED#{name}", "APPLIED"),
            place.ttl: {"N": str(math.ceil(expires_at))},
        },
        "ConditionExpression": f"attribute_not_exists({written.name(place.partition)})",
    }
    return Statement(
        "Put", written.into(request), f"apply {name}", lambda item: ConditionFailed(item=item)
    )

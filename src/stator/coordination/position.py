"""Applied once: a write that carries the position of the change it applies.

The idea. A stream hands out every change at least once: again after a crash, in other batches, for
a moment from two workers at once. Whoever adds changes up must add each exactly once in effect. So
the sum and the *position* of the last change in it are written together, in one request, on
condition that the position is still below the changes that are added. A replay finds the position
above its changes and adds nothing.

    PK  VIEW#isp_hours#1#P#acme    SK  2026-11-16T07#shardId-0001...    n  812   applied  "000...42"

Positions are comparable only within one source that numbers its changes in order: a shard of a
stream. Two forms:

- ``AppliedPosition``: one attribute of an item that only one shard's changes go to.
- ``ShardPositions``: a map in an item that the changes of several shards go to, one entry each. A
  shard is forgotten two days after its last change, longer than a stream remembers it.

A batch that has a name but no number, such as a parked change that is retried, is applied in one
transaction with an item of that name: ``applied_marker``. If the marker exists, so does the effect.

What fails: of two writers of the same changes the second finds its condition failed, reads the
position from the refusal, drops what is applied, and writes the rest, if there is any. A writer
that crashes before its request has written nothing, and after it everything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from stator.errors import ConditionFailed
from stator.model.values import Item
from stator.tables.schema import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Statement

_SEQUENCE_DIGITS: Final = 40
_SHARD_SECONDS: Final = 48 * 3600.0


def sequence_text(sequence: str) -> str:
    """A sequence number as text that sorts as the number does.

    AWS's sequence numbers have up to 40 digits; DynamoDB's Number has 38.
    """
    return (sequence or "0").rjust(_SEQUENCE_DIGITS, "0")


class Positioned(Protocol):
    """A change with its sequence number as ``sequence_text`` writes it."""

    @property
    def sequence(self) -> str: ...


C = TypeVar("C", bound=Positioned)


def unapplied(changes: Sequence[C], position: str) -> list[C]:
    """The changes after a position; all of them if it is empty."""
    return [change for change in changes if change.sequence > position]


@dataclass(frozen=True, slots=True)
class AppliedPosition:
    """The attribute that holds the last sequence number in an item."""

    attribute: str

    def read(self, item: Item | None) -> str:
        """Empty if nothing has been applied."""
        return item[self.attribute]["S"] if item and self.attribute in item else ""

    def assignment(self, written: Expressions, last: str) -> str:
        """A term of SET: everything up to ``last`` is in the item now."""
        return f"{written.name(self.attribute)} = {written.value({'S': last})}"

    def below(self, written: Expressions, first: str) -> str:
        """A condition: nothing from ``first`` on is in the item yet."""
        name = written.name(self.attribute)
        return f"(attribute_not_exists({name}) OR {name} < {written.value({'S': first})})"

    def unchanged(self, written: Expressions, item: Item) -> str:
        """A condition: nothing was applied since the item was read."""
        name = written.name(self.attribute)
        if self.attribute not in item:
            return f"attribute_not_exists({name})"
        return f"{name} = {written.value(item[self.attribute])}"


@dataclass(frozen=True, slots=True)
class ShardPositions:
    """The last sequence number of each shard, with the second it was written at.

    Stored as a map of texts: ``{shardId-0001...: "000...42@1791489600"}``.
    """

    marks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, item: Item, attribute: str) -> ShardPositions:
        stored = item[attribute]["M"] if attribute in item else {}
        return cls({shard: mark["S"] for shard, mark in stored.items()})

    def of(self, shard: str) -> str:
        """Empty if nothing of the shard has been applied."""
        return self.marks.get(shard, "").partition("@")[0]

    def moved(self, shard: str, last: str, now: float) -> ShardPositions:
        """With everything of ``shard`` up to ``last`` applied, and old shards forgotten."""
        oldest = now - _SHARD_SECONDS
        recent = {
            name: mark
            for name, mark in self.marks.items()
            if float(mark.partition("@")[2]) > oldest
        }
        return ShardPositions({**recent, shard: f"{last}@{int(now)}"})

    def attributes(self, attribute: str) -> Item:
        """What to store; nothing if there is no shard."""
        if not self.marks:
            return {}
        return {attribute: {"M": {shard: {"S": mark} for shard, mark in self.marks.items()}}}


def applied_marker(place: Place, name: str, expires_at: float) -> Statement:
    """For a transaction: fails with ConditionFailed if the batch of this name has been applied."""
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

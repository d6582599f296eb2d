"""The items of a leaderboard: their keys, and the statements that change the items.

``leaderboard`` explains the layout. Attribute names begin with ``_``, so that no index of the table
picks them up by accident.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context as Arithmetic
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from stator.design.plan.key_text import AFTER, SEPARATOR, encode, escape
from stator.errors import ConditionFailed, RequestRefused
from stator.model.limits import NUMBER_DIGITS
from stator.model.values import Item
from stator.patterns.series.layout import seconds
from stator.tables.schema.place import Place
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.statements import Kind, Statement

Score = int | float | Decimal
# DynamoDB's numbers range from 1e-130 to 1e126. With 300 digits the sum of any two is exact.
EXACT: Final = Arithmetic(prec=300)
_REMEMBER_SECONDS: Final = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A member's score and rank on a leaderboard.

    ``since`` is when the member reached the score. ``rank`` counts from 1; it is None if the caller
    did not request it.
    """

    member: str
    score: Decimal
    since: datetime
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class BoardEntry:
    """A member's score as stored in the member's own item. Every change sets a new ``version``."""

    standing: Standing
    shard: int
    version: str


def exact_score(value: Score) -> Decimal:
    """Return a score as a Decimal that DynamoDB stores without rounding.

    Raises RequestRefused if that is not possible.
    """
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        raise RequestRefused(
            f"a score is a number, not a {type(value).__name__}", hint="pass an int or a Decimal"
        ) from None
    if not number.is_finite() or len(number.normalize(EXACT).as_tuple().digits) > NUMBER_DIGITS:
        raise RequestRefused(
            f"this {type(value).__name__} cannot be stored exactly as a score",
            hint=f"use a finite number of at most {NUMBER_DIGITS} digits",
        )
    return number


class BoardItems:
    """The keys of one leaderboard, and the statements that change its items."""

    def __init__(self, place: Place, name: str, histogram: Decimal | None) -> None:
        self.place = place
        self.head = f"BOARD{SEPARATOR}{escape(name)}"
        self.histogram = histogram

    # -- keys

    def meta_key(self) -> Item:
        return self.place.key(self.head, "META")

    def member_key(self, member: str) -> Item:
        return self.place.key(SEPARATOR.join((self.head, "MEMBER", escape(member))), "SCORE")

    def shard(self, member: str, shards: int) -> int:
        return int.from_bytes(hashlib.blake2b(member.encode(), digest_size=8).digest()) % shards

    def entries(self, shard: int) -> str:
        return SEPARATOR.join((self.head, "ENTRIES", str(shard)))

    def counts(self, shard: int) -> str:
        return SEPARATOR.join((self.head, "HISTOGRAM", str(shard)))

    def sort_text(self, standing: Standing) -> str:
        score = encode("decimal", standing.score, inverted=True)
        return SEPARATOR.join((score, encode("datetime", standing.since), escape(standing.member)))

    def entry_key(self, entry: BoardEntry) -> Item:
        return self.place.key(self.entries(entry.shard), self.sort_text(entry.standing))

    def bucket(self, score: Decimal) -> int:
        """Return the number of the histogram bucket that holds a score."""
        assert self.histogram is not None
        try:
            found = EXACT.divide_int(score, self.histogram)
        except InvalidOperation:
            raise RequestRefused(
                f"the score {score:.6g} is too large for histogram={self.histogram}",
                hint="use a coarser histogram, or smaller scores",
            ) from None
        return int(found) - (
            1 if score < 0 and EXACT.multiply(found, self.histogram) != score else 0
        )

    def bucket_text(self, bucket: int) -> str:
        return encode("int", bucket, inverted=True)

    def bucket_begin(self, bucket: int) -> str:
        """Return the sort key at which the entries of a histogram bucket begin.

        Entries are ordered from the highest score to the lowest, so the entries of better buckets
        come before this key.
        """
        assert self.histogram is not None
        return (
            encode("decimal", EXACT.multiply(Decimal(bucket + 1), self.histogram), inverted=True)
            + AFTER
        )

    def count_key(self, entry: BoardEntry) -> Item | None:
        if self.histogram is None:
            return None
        return self.place.key(
            self.counts(entry.shard), self.bucket_text(self.bucket(entry.standing.score))
        )

    # -- stored items

    def read_member(self, item: Item) -> BoardEntry:
        return BoardEntry(self.read_entry(item), int(item["_shard"]["N"]), item["_version"]["S"])

    def read_entry(self, item: Item) -> Standing:
        return Standing(
            item["_member"]["S"],
            Decimal(item["_score"]["N"]),
            datetime.fromisoformat(item["_since"]["S"]).astimezone(UTC),
        )

    # -- changes

    def change(self, stored: BoardEntry | None, entry: BoardEntry) -> list[Statement]:
        """Return the statements that change a member's score from ``stored`` to ``entry``.

        ``stored`` is None if the member is new.
        """
        statements = [self._member("Put", entry, stored)]
        if stored is not None and self.entry_key(stored) == self.entry_key(entry):
            return statements
        statements.append(self._put_entry(entry))
        if stored is not None:
            statements.append(self._delete_entry(stored))
        if stored is None or self.count_key(stored) != self.count_key(entry):
            statements += self._count(entry, 1)
            statements += [] if stored is None else self._count(stored, -1)
        return statements

    def removal(self, stored: BoardEntry) -> list[Statement]:
        return [
            self._member("Delete", stored, stored),
            self._delete_entry(stored),
            *self._count(stored, -1),
        ]

    def record_once(self, once: str, now: float) -> Statement:
        """Return the statement that stores ``once``, the caller's identifier of an addition.

        The statement fails if the identifier was stored within the last week.
        """
        written = Expressions()
        partition, ttl = written.name(self.place.partition), written.name(self.place.ttl)
        key = self.place.key(SEPARATOR.join((self.head, "ONCE", escape(once))), "ONCE")
        request = {
            "Item": key | {self.place.ttl: seconds(now + _REMEMBER_SECONDS)},
            "ConditionExpression": f"attribute_not_exists({partition})"
            f" OR {ttl} <= {written.value({'N': str(int(now))})}",
        }
        return self._statement("Put", request, f"add once: {once:.100}", written)

    def _member(self, kind: Kind, entry: BoardEntry, stored: BoardEntry | None) -> Statement:
        written = Expressions()
        version = written.name("_version")
        if stored is None:
            condition = f"attribute_not_exists({version})"
        else:
            condition = f"{version} = {written.value({'S': stored.version})}"
        member = entry.standing.member
        request: dict[str, Any] = {"ConditionExpression": condition}
        if kind == "Delete":
            request["Key"] = self.member_key(member)
        else:
            own = {"_shard": {"N": str(entry.shard)}, "_version": {"S": entry.version}}
            request["Item"] = self.member_key(member) | _attributes(entry.standing) | own
        return self._statement(kind, request, f"the score of {member}", written)

    def _put_entry(self, entry: BoardEntry) -> Statement:
        item = self.entry_key(entry) | _attributes(entry.standing)
        return self._statement("Put", {"Item": item}, f"enter {entry.standing.member}")

    def _delete_entry(self, stored: BoardEntry) -> Statement:
        return self._statement(
            "Delete", {"Key": self.entry_key(stored)}, f"take {stored.standing.member} out"
        )

    def _count(self, entry: BoardEntry, amount: int) -> list[Statement]:
        key = self.count_key(entry)
        if key is None:
            return []
        written = Expressions()
        change = f"ADD {written.name('_n')} {written.value({'N': str(amount)})}"
        return [
            self._statement(
                "Update", {"Key": key, "UpdateExpression": change}, "count scores", written
            )
        ]

    def _statement(
        self, kind: Kind, request: dict[str, Any], shown: str, written: Expressions | None = None
    ) -> Statement:
        whole = (written or Expressions()).into({"TableName": self.place.table, **request})
        return Statement(kind, whole, shown, lambda item: ConditionFailed(item=item))


def _attributes(standing: Standing) -> Item:
    return {
        "_member": {"S": standing.member},
        "_score": {"N": str(standing.score)},
        "_since": {"S": encode("datetime", standing.since)},
    }

"""Writes a view's partial sums, in which each change counts once (see ``pipeline.views``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Final

from stator.coordination.position import AppliedPosition, sequence_text, unapplied
from stator.coordination.retry import retry, retry_call
from stator.errors import ConditionFailed, ValidationFailed
from stator.model.values import Item
from stator.model.wide_numbers import EXACT, is_wide, whole_name, wide_attributes, wide_number
from stator.pipeline.views.layout import LABEL, ViewGroup, ViewLayout
from stator.pipeline.views.metrics import Number, Parts, add
from stator.pipeline.views.sources import ItemShare, ViewSource
from stator.pipeline.workers.handlers.change import Record
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.expressions import Expressions

# An expression may have 4 KB and 300 operators (AWS, "Expressions in DynamoDB", limits); each
# number takes about 14 bytes.
MAX_NUMBERS: Final = 120
_REMEMBERED: Final = 200_000
APPLIED: Final = AppliedPosition("applied")


@dataclass(frozen=True, slots=True)
class MeasuredChange:
    """A change, with its item's contributions to the view before and after the change.

    Each contribution is an ``ItemShare``, or None if the item is not in the view.
    """

    record: Record
    mark: str
    old: ItemShare | None
    new: ItemShare | None


@dataclass(frozen=True, slots=True)
class PartialEntry:
    """The amounts that one image of a change adds to, or subtracts from, the sums of a group.

    ``sign`` is 1 for the new image and -1 for the old one.
    """

    sequence: str
    sums: Parts
    sign: int


class Partials:
    """Writes the partial sums of a view.

    ``fresh`` holds the groups for which a new partial was created. Such a group may have older
    partials that can be merged.
    """

    def __init__(self, context: Context, layout: ViewLayout, source: ViewSource) -> None:
        self._context = context
        self._layout = layout
        self._source = source
        self._applied: dict[tuple[int, ViewGroup, str], str] = {}
        self._listed: set[tuple[int, str]] = set()
        self.fresh: dict[tuple[int, ViewGroup], None] = {}

    def apply(
        self,
        generation: int,
        shard: str,
        measured: Iterable[MeasuredChange],
        check: Callable[[], Any],
    ) -> Work[None]:
        groups = entries_by_group(measured)
        if not groups:
            return
        yield from self.list_groups(generation, groups, check)
        parts = [
            self._add(generation, group, shard, entries, check) for group, entries in groups.items()
        ]
        gathered((yield Gather(parts)))

    def list_groups(
        self, generation: int, groups: Iterable[ViewGroup], check: Callable[[], Any]
    ) -> Work[None]:
        """Add groups to the view's stored list of groups, before they are written."""
        names = {group.by for group in groups}
        yield from retry(self._context, check, partial(self._list, generation, names))

    def _list(self, generation: int, names: set[str]) -> Work[None]:
        """Add groups to the view's stored list of groups, before their first partial is written.

        ``names`` are the groups as key text (``ViewGroup.by``).
        """
        unknown = [by for by in sorted(names) if (generation, by) not in self._listed]
        if len(self._listed) > _REMEMBERED:
            self._listed.clear()
        calls = [
            Call(
                "PutItem",
                {"TableName": self._layout.place.table, "Item": self._layout.group(generation, by)},
                LABEL,
            )
            for by in unknown
        ]
        gathered((yield Gather(calls)) if calls else ())
        self._listed.update((generation, by) for by in unknown)

    def _add(
        self,
        generation: int,
        group: ViewGroup,
        shard: str,
        entries: Sequence[PartialEntry],
        check: Callable[[], Any],
    ) -> Work[None]:
        key = (generation, group, shard)
        while True:
            applied = self._applied.get(key, "")
            left = unapplied(entries, applied)
            if not left:
                return
            part, sums = _first_part(left)
            call = Call("UpdateItem", self._request(generation, group, shard, part, sums), LABEL)
            try:
                try:
                    reply = yield from retry_call(self._context, check, call)
                except ValidationFailed as refusal:
                    reply = yield from self._add_wide(
                        generation, group, shard, (part, sums), refusal, check
                    )
            except ConditionFailed as refused:
                self._remember(key, APPLIED.read(refused.item))
            else:
                self._remember(key, part[-1].sequence)
                if not reply.get("Attributes"):
                    self.fresh[generation, group] = None

    def _add_wide(
        self,
        generation: int,
        group: ViewGroup,
        shard: str,
        change: tuple[Sequence[PartialEntry], dict[str, Number]],
        refusal: ValidationFailed,
        check: Callable[[], Any],
    ) -> Work[dict[str, Any]]:
        """Add to sums that need more digits than a DynamoDB Number can hold.

        DynamoDB has answered the usual ADD with ``refusal``. Read the partial, add ``change`` (its
        entries and their sums), and write each long total in several pieces. The write succeeds
        only if the partial has not changed since it was read. If no total is that long, raise
        ``refusal``. Return DynamoDB's reply.
        """
        entries, sums = change
        rewritten, written = yield from retry(
            self._context, check, partial(self.rewritten, generation, group, shard, sums)
        )
        if rewritten is None:
            raise refusal
        request = self._request(generation, group, shard, entries, written, rewritten)
        return (yield from retry_call(self._context, check, Call("UpdateItem", request, LABEL)))

    def rewritten(
        self, generation: int, group: ViewGroup, shard: str, sums: dict[str, Number]
    ) -> Work[tuple[RewrittenPartial | None, dict[str, Number]]]:
        """Read a partial. Return the totals that must be replaced to add ``sums``, if any.

        Also returns the amounts that ADD can still add.
        """
        request = {
            "TableName": self._layout.place.table,
            "Key": self._layout.partial(generation, group, shard),
            "ConsistentRead": True,
        }
        reply = yield Call("GetItem", request, LABEL)
        stored: Item = reply.get("Item") or {}
        totals = {
            name: EXACT.add(wide_number(stored, name), amount) for name, amount in sums.items()
        }
        wide = {name for name, total in totals.items() if is_wide(total) or is_wide(sums[name])}
        if not wide:
            return None, sums
        left = {name: amount for name, amount in sums.items() if name not in wide}
        return RewrittenPartial(stored, {name: totals[name] for name in wide}), left

    def _remember(self, key: tuple[int, ViewGroup, str], sequence: str) -> None:
        if len(self._applied) > _REMEMBERED:
            self._applied.clear()  # only a shortcut: a refusal shows the position, too
        self._applied[key] = sequence

    def _request(
        self,
        generation: int,
        group: ViewGroup,
        shard: str,
        entries: Sequence[PartialEntry],
        sums: dict[str, Number],
        rewritten: RewrittenPartial | None = None,
    ) -> dict[str, Any]:
        written = Expressions()
        # Changes that cancel each other out still move the position: one may come again alone.
        changes = self.additions(written, group, entries[-1].sequence, sums, rewritten)
        condition = APPLIED.below(written, entries[0].sequence)
        if rewritten is not None:
            condition += f" AND {APPLIED.unchanged(written, rewritten.stored)}"
        return written.into(
            {
                "TableName": self._layout.place.table,
                "Key": self._layout.partial(generation, group, shard),
                "UpdateExpression": changes,
                "ConditionExpression": condition,
                "ReturnValues": "UPDATED_OLD",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        )

    def additions(
        self,
        written: Expressions,
        group: ViewGroup,
        applied: str,
        sums: dict[str, Number],
        rewritten: RewrittenPartial | None = None,
    ) -> str:
        """Return the update expression that adds ``sums`` to a partial and sets ``applied``.

        Adds its names and values to ``written``.
        """
        changes = f"SET {APPLIED.assignment(written, applied)}"
        end = self._source.end(group.bucket)
        if end is not None:
            changes += (
                f", {written.name(self._layout.place.ttl)} = {written.value({'N': str(int(end))})}"
            )
        if rewritten is not None:
            changes += rewritten.changes(written)
        added = [
            f"{written.name(name)} {written.value({'N': str(amount)})}"
            for name, amount in sums.items()
            if amount
        ]
        return changes + (f" ADD {', '.join(added)}" if added else "")


@dataclass(frozen=True, slots=True)
class RewrittenPartial:
    """A partial as it was read (``stored``), and the new totals that replace some of its sums.

    A sum with too many digits for a DynamoDB Number is replaced, because ADD cannot change it.
    """

    stored: Item
    totals: dict[str, Decimal]

    def changes(self, written: Expressions) -> str:
        """Return the assignments of the new totals, as text to append to a SET clause.

        Adds their names and values to ``written``. The text ends with a REMOVE clause if some
        pieces of the old sums are no longer needed.
        """
        wanted: Item = {}
        for name, total in self.totals.items():
            wanted |= wide_attributes(name, total)
        gone = [
            name for name in self.stored if whole_name(name) in self.totals and name not in wanted
        ]
        text = "".join(
            f", {written.name(name)} = {written.value(value)}" for name, value in wanted.items()
        )
        return text + (f" REMOVE {', '.join(map(written.name, gone))}" if gone else "")


def entries_by_group(measured: Iterable[MeasuredChange]) -> dict[ViewGroup, list[PartialEntry]]:
    """Return the amounts that changes add to and subtract from each group, in the stream's order.

    A change that alters no sum is left out: both of its images add the same amounts to the same
    group. If the change is delivered again, its images are the same, and it is left out again.
    """
    found: dict[ViewGroup, list[PartialEntry]] = {}
    for each in measured:
        old, new = each.old, each.new
        if old is not None and new is not None and old.group == new.group and old.sums == new.sums:
            continue
        sequence = sequence_text(each.record.sequence)
        if old is not None:
            found.setdefault(old.group, []).append(PartialEntry(sequence, old.sums, -1))
        if new is not None:
            found.setdefault(new.group, []).append(PartialEntry(sequence, new.sums, 1))
    return found


def _first_part(entries: Sequence[PartialEntry]) -> tuple[list[PartialEntry], dict[str, Number]]:
    """Return the first entries that fit into one UpdateItem, and the amounts that it must add.

    All entries of one change go into the same request.
    """
    taken: list[PartialEntry] = []
    sums: dict[str, Number] = {}
    for entry in entries:
        is_same = taken and taken[-1].sequence == entry.sequence
        if len(sums) > MAX_NUMBERS and not is_same:
            break
        taken.append(entry)
        add(sums, entry.sums, entry.sign)
    return taken, sums

"""Writes a view's sums when the shard of a change is unknown, as on AWS Lambda.

Each change is marked as applied by an item of its own (``coordination.named_changes``), so no
partial needs a position. A group has a few partials for such changes, the *lanes*, and each
transaction takes one by chance: functions that run at the same time rarely wait for each other.

``applied`` names the last change that was added to a partial. Every write gives it another value,
so it also serves as a version: a sum that is too long for ADD is read, and replaced on condition
that ``applied`` is as it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stator.coordination.named_changes import apply_named, parts_of
from stator.model.values import Item
from stator.pipeline.views.layout import LABEL, ViewGroup, ViewLayout
from stator.pipeline.views.metrics import Number, add
from stator.pipeline.views.partials import (
    APPLIED,
    MAX_NUMBERS,
    MeasuredChange,
    PartialEntry,
    Partials,
    RewrittenPartial,
    entries_by_group,
)
from stator.tables.context import Context
from stator.tables.work import Work
from stator.tables.writes.expressions import Expressions

_LANES: Final = 8
GroupSums = dict[ViewGroup, dict[str, Number]]


@dataclass(frozen=True, slots=True)
class NamedEntries:
    """A change by its name, with what it adds to, or subtracts from, each group."""

    name: str
    entries: Mapping[ViewGroup, Sequence[PartialEntry]]


class NamedPartials:
    """Adds changes to the partial sums of a view, each once by its name."""

    def __init__(self, context: Context, layout: ViewLayout, partials: Partials) -> None:
        self._context = context
        self._layout = layout
        self._partials = partials

    def apply(
        self,
        generation: int,
        stream: str,
        measured: Iterable[MeasuredChange],
        check: Callable[[], Any],
    ) -> Work[None]:
        """Add the changes of a stream, whose label is ``stream``, to the sums."""
        changes: dict[str, NamedEntries] = {}
        for each in measured:
            found = entries_by_group([each])
            if found:
                name = f"{stream}#{each.record.sequence}"
                marker = f"{self._layout.prefix(generation)}{name}"
                changes[marker] = NamedEntries(name, found)
        groups = {group for each in changes.values() for group in each.entries}
        if not groups:
            return
        yield from self._partials.list_groups(generation, groups, check)
        for part in parts_of(changes, lambda change: change.entries):
            for small in _split(part):
                effects = _Additions(self._layout, self._partials, generation, self._lane())
                yield from apply_named(
                    self._context, self._layout.place, small, effects, check, LABEL
                )

    def _lane(self) -> str:
        # Never the name of a shard; compaction leaves names with ~ alone.
        return f"~lambda-{self._context.random.randrange(_LANES)}"


class _Additions:
    """The updates that add named changes to the partials of one lane.

    ADD is refused if a sum needs more digits than a Number holds. Then the partials are read, and
    such sums are replaced.
    """

    def __init__(self, layout: ViewLayout, partials: Partials, generation: int, lane: str) -> None:
        self._layout = layout
        self._partials = partials
        self._generation = generation
        self._lane = lane
        self._reads_first = False

    def actions(self, changes: Sequence[NamedEntries]) -> Work[list[dict[str, Any]]]:
        applied = changes[-1].name
        actions: list[dict[str, Any]] = []
        for group, sums in _sums(changes).items():
            if self._reads_first:
                rewritten, left = yield from self._partials.rewritten(
                    self._generation, group, self._lane, sums
                )
                actions.append({"Update": self._update(group, applied, left, rewritten)})
            else:
                actions.append({"Update": self._update(group, applied, sums)})
        return actions

    def _update(
        self,
        group: ViewGroup,
        applied: str,
        sums: dict[str, Number],
        rewritten: RewrittenPartial | None = None,
    ) -> dict[str, Any]:
        written = Expressions()
        request: dict[str, Any] = {
            "TableName": self._layout.place.table,
            "Key": self._layout.partial(self._generation, group, self._lane),
            "UpdateExpression": self._partials.additions(written, group, applied, sums, rewritten),
        }
        if rewritten is not None:
            request["ConditionExpression"] = APPLIED.unchanged(written, rewritten.stored)
        return written.into(request)

    def applied(self) -> None:
        """Do nothing: nothing is remembered."""

    def refused(self, at: int, item: Item | None) -> None:
        """Do nothing: the next attempt reads the partials again."""

    def invalid(self) -> bool:
        """Read the partials first from now on. Returns False if that cannot help."""
        if self._reads_first:
            return False
        self._reads_first = True
        return True


def _sums(changes: Iterable[NamedEntries]) -> GroupSums:
    sums: GroupSums = {}
    for change in changes:
        for group, entries in change.entries.items():
            mine = sums.setdefault(group, {})
            for entry in entries:
                add(mine, entry.sums, entry.sign)
    return sums


def _split(part: dict[str, NamedEntries]) -> Iterator[dict[str, NamedEntries]]:
    """Split a part until no update has too many numbers, or only one change is left."""
    is_large = any(len(each) > MAX_NUMBERS for each in _sums(part.values()).values())
    if not is_large or len(part) == 1:
        yield part
        return
    names = list(part)
    middle = len(names) // 2
    yield from _split({name: part[name] for name in names[:middle]})
    yield from _split({name: part[name] for name in names[middle:]})

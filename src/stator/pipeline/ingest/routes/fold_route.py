"""Fold routes: each record changes an entity, and many records become one update of it.

An update of the events from offset ``first`` to ``last`` applies only if the item's mark is below
``first``. After a crash, batches begin elsewhere, and the item may have some of the events. The
update is then refused. The events after the stored mark are folded again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stator.errors import DesignError, OutcomeUnknown, TransactionConflict
from stator.model.values import Item
from stator.pipeline.ingest.routes.folds import FoldedChanges, check_foldable, number_value
from stator.pipeline.ingest.routes.guards import mark_attribute, offset_value, position_guard
from stator.pipeline.ingest.routes.route import (
    RouteOptions,
    RunOutcome,
    reason_of,
    refuse_unsupported,
)
from stator.pipeline.ingest.source_record import PendingEvent, SourceRecord
from stator.pipeline.ingest.values.decoders import class_reader
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.writes.guarded.guard_condition import GuardCondition
from stator.tables.writes.guarded.guarded_write import AppliedProof, GuardedUpdate, GuardedWrite
from stator.tables.writes.guarded.outcomes import Applied, Later, Outcome, Refused, Stale, Unknown
from stator.tables.writes.recorder import Recorder, Recording


@dataclass(frozen=True, slots=True)
class FoldRoute:
    """Each record changes an entity; the changes of many records become one update."""

    entity: type[Any]
    options: RouteOptions
    function: Callable[[Any, Any], Any]
    by: Callable[[Any], Mapping[str, Any]]
    event: type[Any] | None = None

    @property
    def name(self) -> str:
        return f"fold {self.entity.__name__}"

    def bind(self, context: Context, app: str) -> BoundFold:
        of = context.schema.of(self.entity)
        refuse_unsupported(of, "fold")
        if of.variants:
            raise DesignError(
                f"{of.name} has variants, and a fold creates items without one",
                hint="fold into an entity without variants",
            )
        needed = [
            name
            for name in of.own_fields
            if name not in of.identity and of.info.default_maker(name) is None
        ]
        if needed:
            raise DesignError(
                f"a fold cannot create a {of.name}: {needed[0]} has no default",
                hint="give every field outside the identity a default, such as 0 or None",
            )
        return BoundFold(self, of, context)


@dataclass(frozen=True, slots=True)
class _FoldContent:
    identity: Mapping[str, Any]
    recording: Recording


class BoundFold:
    def __init__(self, route: FoldRoute, of: EntityMap, context: Context) -> None:
        self.route = route
        self.options = route.options
        self.of = of
        self._context = context
        self._reader = class_reader(route.event, route.options.unknown)
        self._keyed = {name for name in of.fields if of.is_keyed_by(name)} | set(of.identity)
        if of.updated is not None and of.updated in self._keyed:
            raise DesignError(
                f"a key of {of.name} contains its updated() field, which a fold would change",
                hint="take the field out of the patterns, or use a handler",
            )
        self._missing: dict[Any, frozenset[str]] = {}
        """Numbers that stored items lack, because they are older than the field."""

    def event(self, record: SourceRecord, value: Any) -> tuple[Any, Any] | None:
        if value is None:
            return None
        event = self._reader(value)
        if self.options.when is not None and not self.options.when(event):
            return None
        identity = dict(self.of.given(self.route.by(event)))
        key = self.of.key_from(identity)
        recording = Recording(self.of)
        self.route.function(event, Recorder(recording))
        check_foldable(self.of, recording, self._keyed)
        if not recording.actions:
            return None
        return self.of.key_values(key), _FoldContent(identity, recording)

    def plan(self, events: Sequence[PendingEvent]) -> tuple[GuardedWrite, int]:
        changes = FoldedChanges()
        used = 0
        for event in events:
            if not changes.add(event.content.recording):
                break
            used += 1
        first, last = events[0], events[used - 1]
        mark = mark_attribute(self.options.source, first.record.partition)
        identity = first.content.identity
        key = self.of.key_from(identity)
        now = self._context.now()
        created = changes.created(self._default_item(identity, now))
        created[mark] = offset_value(last.offset)
        missing = self._missing.get(first.key, frozenset()) & changes.added.keys()
        guard = position_guard(mark, first.offset)
        if missing:
            changes.start_sums(missing)
            guard = _absent_too(guard, missing)
        assigned = changes.assigned | {mark: offset_value(last.offset)}
        if self.of.updated is not None:
            assigned[self.of.updated] = created[self.of.updated]
        return GuardedUpdate(
            self.of.table.name,
            key,
            guard,
            assigned=assigned,
            added={name: number_value(amount) for name, amount in changes.added.items()},
            united=changes.united,
            removed=sorted(changes.removed),
            created=created,
            proof=AppliedProof(mark, offset_value(last.offset), reached=True),
        ), used

    def _default_item(self, identity: Mapping[str, Any], now: float) -> Item:
        python = self.of.info.python_names
        values = {python.get(name, name): value for name, value in identity.items()}
        entity = self.of.cls(**values)
        return self.of.item(self.of.stamped_or_refused(entity, now, fresh=True).made)

    def after(self, events: Sequence[PendingEvent], outcome: Outcome) -> RunOutcome:
        match outcome:
            case Applied():
                self._missing.pop(events[0].key, None)
                return RunOutcome(applied=1, folded=len(events) - 1)
            case Stale(stored) | Unknown(OutcomeUnknown(), stored):
                return self._unfolded(events, stored)
            case Later(error):
                return RunOutcome(left=events, error=error)
            case Refused(error) | Unknown(error, _):
                return RunOutcome(left=events[1:], dead=[(events[0], reason_of(error))])
        raise AssertionError(outcome)

    def _unfolded(self, events: Sequence[PendingEvent], stored: Item | None) -> RunOutcome:
        """Keep only the events after the stored mark. The item already includes the others.

        If the mark is not the reason, another writer added the numbers that the item lacked, or the
        item is gone. The update is then planned again, after a while.
        """
        mark = (stored or {}).get(mark_attribute(self.options.source, events[0].record.partition))
        reached = -1 if mark is None else int(mark["N"])
        left = [event for event in events if event.offset > reached]
        if len(left) < len(events):
            return RunOutcome(stale=len(events) - len(left), left=left)
        self._missing.pop(events[0].key, None)
        changed = TransactionConflict("another writer changed the item in the meantime")
        return RunOutcome(left=left, error=changed)

    def note_missing(self, events: Sequence[PendingEvent], stored: Item | None) -> bool:
        """Remember the numbers that an item lacks, after an update of it was refused.

        Returns whether there are any: the update must then be planned again.
        """
        key = events[0].key
        sums = {str(path[0]) for event in events for path in event.content.recording.actions}
        lacking = frozenset(sums.difference(stored or ()))
        if stored is None or not lacking or self._missing.get(key) == lacking:
            return False
        self._missing[key] = lacking
        return True


def _absent_too(guard: GuardCondition, missing: frozenset[str]) -> GuardCondition:
    names = tuple((f"#m{at}", name) for at, name in enumerate(sorted(missing)))
    absent = " AND ".join(f"attribute_not_exists({placeholder})" for placeholder, _ in names)
    return GuardCondition(f"({guard.text}) AND {absent}", (*guard.names, *names), guard.values)

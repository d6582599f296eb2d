"""``app.roll_up(series)``: updates the roll-ups of a Series with ``rollups_from="stream"``.

Each change to a reading is counted once; ``patterns.rollups.stream_changes`` explains how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import DecimalException
from functools import partial
from typing import Any, Final

from stator.coordination.position import sequence_text
from stator.coordination.retry import retry
from stator.errors import ConfigurationError, ImageNotShown, StatorError
from stator.patterns.rollups.rollup import RollupKey
from stator.patterns.rollups.stream_changes import NumberedDifference, RollupChanges, RollupUpdates
from stator.patterns.series.series import Series
from stator.pipeline.maintenance.pattern_factory import PatternFactory
from stator.pipeline.workers.handlers.change import Record
from stator.pipeline.workers.handlers.subscribers import HandlerFailure, HandlerScope
from stator.tables.context import Context
from stator.tables.work import Gather, Work, gathered

AnySeries = Series[Any, Any]
_SIDE_BY_SIDE: Final = 16


class RollupUpdater:
    """The subscriber that updates the roll-ups of a series when its readings change."""

    is_exact = True

    def __init__(self, series: AnySeries | Callable[[Any], AnySeries], name: str | None) -> None:
        self._series: PatternFactory[AnySeries] = PatternFactory(series, Series, "series")
        self.name = self._series.name(name)

    def tables(self, context: Context) -> Sequence[str]:
        return (context.schema.place.table,)

    def prepare(self, context: Context) -> None:
        series = self._series.of(context)
        if series.rollups_from != "stream":
            raise ConfigurationError(
                f"app.roll_up() cannot serve series {series.name!r}: it updates its roll-ups with"
                " each write",
                hint='create the Series with rollups_from="stream"',
            )
        if not series.has_rollups:
            raise ConfigurationError(
                f"series {series.name!r} has no roll-ups",
                hint="create the Series with rollups=[Rollup(...)]",
            )
        if series.layout.table_per is not None:
            raise ConfigurationError(
                f"series {series.name!r} has a table for each {series.layout.table_per}, and"
                " workers do not follow the streams of these tables",
                hint='leave out table_per=, or use rollups_from="write"',
            )
        if series.layout.most_tables > 1:
            raise ConfigurationError(
                f"series {series.name!r} may use {series.layout.most_tables} tables, and workers"
                " follow the stream of the first one only",
                hint='leave out tables=, or use rollups_from="write"',
            )

    def wants(self, record: Record, context: Context) -> bool:
        return self._series.of(context).changes.is_reading(record.image)

    def attend(self, scope: HandlerScope, position: str) -> Work[None]:
        """Do nothing. Roll-ups need no periodic work, because they change only with readings."""
        yield from ()

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        changes = self._series.of(scope.context).changes
        found: dict[RollupKey, list[NumberedDifference]] = {}
        named: dict[str, RollupUpdates] = {}
        failures: list[HandlerFailure] = []
        for record in records:
            try:
                updates = _updates(changes, record)
            # The reading does not decode, or its field is not a number.
            except (StatorError, DecimalException) as error:
                failures.append(HandlerFailure(record, error))
                continue
            if scope.is_retry:
                # Later changes of the shard are already counted, so the sequence number does not
                # show whether this one is: it is applied once by its name.
                name = f"{record.shard}#{record.sequence}"
                yield from retry(scope.context, scope.check, partial(changes.apply, updates, name))
                continue
            if scope.is_lambda:
                if updates:
                    named[f"{scope.stream}#{record.sequence}"] = updates
                continue
            sequence = sequence_text(record.sequence)
            for key, difference in updates.items():
                found.setdefault(key, []).append(NumberedDifference(sequence, difference))
        if named:
            each = partial(changes.apply_each, named, scope.check)
            yield from retry(scope.context, scope.check, each)
        parts = [
            retry(scope.context, scope.check, partial(changes.add, key, numbered, scope.shard))
            for key, numbered in found.items()
        ]
        for at in range(0, len(parts), _SIDE_BY_SIDE):
            gathered((yield Gather(parts[at : at + _SIDE_BY_SIDE])))
        return failures


def _updates(changes: RollupChanges, record: Record) -> RollupUpdates:
    if (record.kind != "INSERT" and record.old is None) or (
        record.kind != "REMOVE" and record.new is None
    ):
        raise ImageNotShown("NEW_AND_OLD_IMAGES")
    if record.kind == "REMOVE" and record.by_service:
        return {}  # the reading expired: roll-ups outlive readings
    # Expiry is judged at the time of the change, so that a repeat has the same result.
    return changes.differences((record.old, record.new), record.at, record.at)

"""Reads a table's stream independently of its workers, from given positions.

It writes no checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from stator.coordination.retry import retry
from stator.errors import (
    ExpiredIterator,
    ResourceNotFound,
    StreamError,
    TrimmedDataAccess,
)
from stator.pipeline.workers.handlers.change import Record, read_record
from stator.pipeline.workers.shards.iterators import iterator_at, list_shards
from stator.pipeline.workers.shards.leases import OLDEST
from stator.pipeline.workers.shards.lineage import StreamInfo
from stator.tables.context import Context
from stator.tables.work import Call, Work

_LABEL = "view rebuild"


@dataclass(slots=True)
class _Shard:
    id: str
    position: str
    iterator: str | None = None
    skip_before: float = 0.0
    is_ended: bool = False


class StreamTail:
    def __init__(
        self,
        context: Context,
        table: str,
        arn: str,
        starts: Mapping[str, str],
        check: Callable[[], Any],
    ) -> None:
        self._context = context
        self._table = table
        self._arn = arn
        self._check = check
        self._shards = {shard: _Shard(shard, position) for shard, position in starts.items()}

    def drain(self, see: Callable[[Record], None]) -> Work[None]:
        """Call ``see`` for every record that was added since the last call.

        A parent shard is read before its children.
        """
        while True:
            for shard in [each for each in self._shards.values() if not each.is_ended]:
                yield from self._drain_shard(shard, see)
            if not (yield from self._find_children()):
                return

    def _drain_shard(self, shard: _Shard, see: Callable[[Record], None]) -> Work[None]:
        while True:
            page = yield from retry(self._context, self._check, partial(self._page, shard))
            for raw in page["Records"]:
                record = read_record(raw, self._table, shard.id)
                if record.at >= shard.skip_before:
                    see(record)
                shard.position = record.sequence
            shard.iterator = page.get("NextShardIterator")
            if shard.iterator is None:
                shard.is_ended = True
                return
            if not page["Records"]:
                return

    def _page(self, shard: _Shard) -> Work[dict[str, Any]]:
        try:
            if shard.iterator is None:
                found = yield from iterator_at(self._arn, shard.id, shard.position, _LABEL)
                shard.iterator, shard.skip_before = found.text, found.skip_before
            page: dict[str, Any] = yield Call(
                "GetRecords", {"ShardIterator": shard.iterator, "Limit": 1000}, _LABEL
            )
        except ExpiredIterator:
            shard.iterator = None
            return (yield from self._page(shard))
        except (TrimmedDataAccess, ResourceNotFound) as error:
            raise StreamError(
                f"the stream trimmed changes of shard {shard.id} before they were read",
                hint="start the rebuild again; a stream keeps changes for a day",
            ) from error
        return page

    def _find_children(self) -> Work[bool]:
        """Find the child shards of shards that have ended, to read the child shards next.

        Returns whether there are new children.
        """
        if not any(shard.is_ended for shard in self._shards.values()):
            return False
        listed = yield from retry(
            self._context, self._check, partial(list_shards, self._arn, _LABEL)
        )
        found = [
            shard
            for shard in listed
            if shard.id not in self._shards
            and shard.parent in self._shards
            and self._shards[shard.parent].is_ended
        ]
        for shard in found:
            self._shards[shard.id] = _Shard(shard.id, OLDEST)
        return bool(found)


def uncovered(
    stream: StreamInfo, starts: Mapping[str, str], ended: frozenset[str], skipped: frozenset[str]
) -> list[str]:
    """Return the shards whose changes the new generation may miss.

    ``starts`` maps shards to the positions from which the generation counts changes. A shard with a
    start is covered. So is a shard with an ancestor that has a start, unless a shard between the
    two is in ``ended`` or ``skipped``. The shards in ``ended`` and ``skipped`` need no start: they
    have been read to the end, or workers skip them.
    """
    parents = {shard.id: shard.parent for shard in stream.shards}

    def is_covered(shard: str | None) -> bool:
        while shard is not None and shard in parents:
            if shard in starts:
                return True
            if shard in ended or shard in skipped:
                return False
            shard = parents[shard]
        return False

    return [
        shard
        for shard in parents
        if shard not in ended and shard not in skipped and not is_covered(shard)
    ]

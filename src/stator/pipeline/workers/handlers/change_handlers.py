"""The functions that an app registers for single changes: together they are one subscriber.

Each change of an item goes to all functions that want it, in the order of registration, before the
next change of that item. So two functions may keep one thing up to date, such as an insert and a
remove handler of a search index: together they see an item's changes in the order they were made.
If one of the functions fails, none of them gets a later change of the item until a retry succeeds.
Different items may be handled in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from stator.design.table_settings import StreamView, smallest_view
from stator.pipeline.workers.handlers.change import Change, Record
from stator.pipeline.workers.handlers.subscribers import (
    ChangeFilter,
    HandlerFailure,
    HandlerScope,
    finished,
    lanes,
    typed_all,
)
from stator.tables.context import Context
from stator.tables.work import BlockingCall, Work

NAME: Final = "handlers"


@dataclass(frozen=True, slots=True)
class ChangeHandler:
    """A function that an app registered for single changes, and the filter of its changes."""

    name: str
    function: Callable[[Any], Any]
    filter: ChangeFilter
    view: StreamView = "NEW_AND_OLD_IMAGES"


class ChangeHandlers:
    """The subscriber that calls an app's functions for single changes.

    Different items may be handled in parallel, the changes of one item are handled in order.
    """

    name = NAME

    def __init__(self, concurrency: int = 1) -> None:
        self.handlers: list[ChangeHandler] = []
        self._pool = _Pool(concurrency)

    def wants(self, record: Record, context: Context) -> bool:
        return any(each.filter.accepts(record, context) for each in self.handlers)

    def _wanting(self, record: Record, context: Context) -> list[ChangeHandler]:
        return [each for each in self.handlers if each.filter.accepts(record, context)]

    def needs(self, table: str, context: Context) -> StreamView | None:
        views: list[StreamView] = [
            each.filter.needs(each.view, table, context) for each in self.handlers
        ]
        return smallest_view(views)

    def handle(self, records: Sequence[Record], scope: HandlerScope) -> Work[list[HandlerFailure]]:
        changes = yield from typed_all(records, scope.context)
        run = partial(self._lane, changes=changes, scope=scope)
        failures: list[HandlerFailure | None] = yield BlockingCall(
            partial(self._pool.map, run, lanes(records))
        )
        return [failure for failure in failures if failure is not None]

    def _lane(
        self, lane: list[Record], changes: Mapping[int, Change[Any]], scope: HandlerScope
    ) -> HandlerFailure | None:
        for record in lane:
            done = list(scope.done.get(id(record), ()))
            for handler in self._wanting(record, scope.context):
                if handler.name in done:
                    continue
                scope.check()
                try:
                    finished(handler.function(changes[id(record)]))
                except Exception as error:  # user code: whatever it raises, the change failed
                    return HandlerFailure(record, error, handler.name, tuple(done))
                done.append(handler.name)
        return None


class _Pool:
    """The threads that handle different items in parallel.

    With one thread, or one item, the caller's thread is used instead.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._executor: ThreadPoolExecutor | None = None

    def map(
        self, function: Callable[[list[Record]], HandlerFailure | None], groups: list[list[Record]]
    ) -> list[Any]:
        if self._threads < 2 or len(groups) < 2:
            return [function(group) for group in groups]
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._threads, "stator-lane")
        return list(self._executor.map(function, groups))

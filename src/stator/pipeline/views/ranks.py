"""Writes a view's rank rows. When a source item changes, its rank rows move to new places.

A stored state for each source item makes every change count once (see ``pipeline.views``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from stator.coordination.position import sequence_text
from stator.coordination.retry import retry, retry_call
from stator.errors import ServiceError, TransactionCanceled, ValidationFailed
from stator.model.values import Item
from stator.pipeline.views.layout import LABEL, ViewGroup, ViewLayout
from stator.pipeline.views.partials import MeasuredChange
from stator.pipeline.views.sources import ItemShare
from stator.pipeline.workers.handlers.change import Record
from stator.tables.context import Context
from stator.tables.reads.items import batch_get
from stator.tables.work import Call, Gather, Work, gathered
from stator.tables.writes.expressions import Expressions

# A state without rows stays longer than a stream can deliver a change again.
_STATE_SECONDS: Final = 48 * 3600
_SIDE_BY_SIDE: Final = 100
# A transaction has at most 100 actions (AWS, TransactWriteItems); sharing one saves requests.
_BUNDLE_ACTIONS: Final = 50
TransactAction = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RankTarget:
    """The rank rows that a source should have after a change.

    ``mark`` identifies the source. ``order`` is the position of the change in the stream. For an
    item that a rebuild has scanned, ``order`` is empty, which sorts below every change.
    """

    mark: str
    order: str
    counted: ItemShare | None
    record: Record | None = None


# Sources whose rows cannot be written, because an item has at most 400 KB.
RefusedTargets = list[tuple[RankTarget, ServiceError]]


@dataclass(frozen=True, slots=True)
class RankState:
    """The stored state of a source: its rank rows, and the last change that they include.

    ``order`` identifies that change by the stream's label and the padded sequence number.
    """

    order: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RankMove:
    """A pending change to a source's rank rows: from the stored ``state`` to ``wanted``.

    ``state`` is None if the source has no stored state yet. Of two changes to a source, the later
    one has the greater ``order``.
    """

    wanted: RankTarget
    order: str
    state: RankState | None

    @property
    def is_done(self) -> bool:
        """Whether the stored state already includes this change or a later one."""
        return self.state is not None and self.state.order >= self.order


class Ranks:
    def __init__(
        self, context: Context, layout: ViewLayout, end: Callable[[str], float | None]
    ) -> None:
        """Create a writer of a view's rank rows.

        ``end`` is a function that returns when the rank rows of a time bucket expire.
        """
        self._context = context
        self._layout = layout
        self._end = end

    def apply(
        self,
        generation: int,
        stream: str,
        measured: Iterable[MeasuredChange],
        check: Callable[[], Any],
    ) -> Work[RefusedTargets]:
        return (yield from self.place(generation, _last(measured, stream), check))

    def place(
        self, generation: int, wanted: list[RankTarget], check: Callable[[], Any]
    ) -> Work[RefusedTargets]:
        refused: RefusedTargets = []
        for at in range(0, len(wanted), _SIDE_BY_SIDE):
            chunk = wanted[at : at + _SIDE_BY_SIDE]
            states = yield from retry(
                self._context, check, partial(self._states, generation, chunk)
            )
            moves = [
                RankMove(each, _ordered(each.order, states.get(each.mark)), states.get(each.mark))
                for each in chunk
            ]
            bundles = self._bundles(generation, [move for move in moves if not move.is_done])
            parts = [self._move_all(generation, bundle, check) for bundle in bundles]
            for found in gathered((yield Gather(parts))):
                refused += found
        return refused

    def _bundles(
        self, generation: int, moves: list[RankMove]
    ) -> list[list[tuple[RankMove, list[TransactAction]]]]:
        """Put the moves, in order, into bundles that each fit into one transaction.

        A bundle lists its moves, each with the transaction actions that carry it out.
        """
        bundles: list[list[tuple[RankMove, list[TransactAction]]]] = []
        room = 0
        for move in moves:
            actions = self._actions(generation, move)
            if len(actions) > room:
                bundles.append([])
                room = _BUNDLE_ACTIONS
            bundles[-1].append((move, actions))
            room -= len(actions)
        return bundles

    def _move_all(
        self,
        generation: int,
        bundle: list[tuple[RankMove, list[TransactAction]]],
        check: Callable[[], Any],
    ) -> Work[RefusedTargets]:
        """Make all moves of a bundle in one transaction. If it is refused, make them one by one.

        Returns the targets of the moves that are refused even then, with their errors.
        """
        if len(bundle) > 1:
            actions = [action for _, each in bundle for action in each]
            call = Call("TransactWriteItems", {"TransactItems": actions}, LABEL)
            try:
                yield from retry_call(self._context, check, call)
                return []
            except (TransactionCanceled, ValidationFailed):
                pass  # one of them lost a race, or they are too large together
        refused: RefusedTargets = []
        for move, _ in bundle:
            try:
                yield from self._move(generation, move, check)
            except (TransactionCanceled, ValidationFailed) as error:
                refused.append((move.wanted, error))
        return refused

    def _states(self, generation: int, wanted: list[RankTarget]) -> Work[dict[str, RankState]]:
        keys = [self._layout.state(generation, each.mark) for each in wanted]
        items = yield from batch_get(
            self._context, self._layout.place.table, keys, LABEL, consistent=True
        )
        partition = self._layout.place.partition
        start = len(self._layout.state(generation, "")[partition]["S"])
        return {item[partition]["S"][start:]: _read(item) for item in items}

    def _move(self, generation: int, move: RankMove, check: Callable[[], Any]) -> Work[None]:
        while not move.is_done:
            call = Call(
                "TransactWriteItems", {"TransactItems": self._actions(generation, move)}, LABEL
            )
            try:
                yield from retry_call(self._context, check, call)
                return
            except TransactionCanceled as cancelled:
                if not any(
                    reason.get("Code") == "ConditionalCheckFailed" for reason in cancelled.reasons
                ):
                    raise
            states = yield from retry(
                self._context, check, partial(self._states, generation, [move.wanted])
            )
            state = states.get(move.wanted.mark)
            move = RankMove(move.wanted, _ordered(move.wanted.order, state), state)

    def _actions(self, generation: int, move: RankMove) -> list[TransactAction]:
        table = self._layout.place.table
        rows = self._rows(generation, move.wanted.counted)
        before = () if move.state is None else move.state.rows
        actions: list[TransactAction] = [{"Put": self._state_put(generation, move, tuple(rows))}]
        actions += [
            {"Delete": {"TableName": table, "Key": self._key(row)}}
            for row in before
            if row not in rows
        ]
        actions += [
            {"Put": {"TableName": table, "Item": {**self._key(row), **item}}}
            for row, item in rows.items()
        ]
        return actions

    def _rows(self, generation: int, counted: ItemShare | None) -> dict[tuple[str, str], Item]:
        if counted is None:
            return {}
        partition = self._layout.rows(generation, counted.group)
        expiry = self._expiry(counted.group)
        return {
            (partition, sort): {"source": {"M": copy}, **expiry}
            for sort, copy in counted.rows.items()
        }

    def _expiry(self, group: ViewGroup) -> Item:
        end = self._end(group.bucket)
        return {} if end is None else {self._layout.place.ttl: {"N": str(int(end))}}

    def _state_put(
        self, generation: int, move: RankMove, rows: tuple[tuple[str, str], ...]
    ) -> TransactAction:
        item: Item = {
            **self._layout.state(generation, move.wanted.mark),
            "order": {"S": move.order},
            "rows": {"L": [{"S": text} for row in rows for text in row]},
        }
        if not rows:
            item[self._layout.place.ttl] = {"N": str(int(self._context.now()) + _STATE_SECONDS)}
        written = Expressions()
        name = written.name("order")
        seen = move.state
        as_seen = (
            f"attribute_not_exists({name})"
            if seen is None
            else f"{name} = {written.value({'S': seen.order})}"
        )
        return written.into(
            {"TableName": self._layout.place.table, "Item": item, "ConditionExpression": as_seen}
        )

    def _key(self, row: tuple[str, str]) -> Item:
        return self._layout.place.key(*row)


def _last(measured: Iterable[MeasuredChange], stream: str) -> list[RankTarget]:
    """Return the rank rows that each source should have after its last change in a batch.

    Sources whose rank rows do not change are left out.
    """
    found: dict[str, RankTarget] = {}
    for each in measured:
        if _rows_of(each.old) == _rows_of(each.new) and each.mark not in found:
            continue
        found[each.mark] = RankTarget(
            each.mark, f"{stream}#{sequence_text(each.record.sequence)}", each.new, each.record
        )
    return list(found.values())


def _rows_of(counted: ItemShare | None) -> Any:
    return None if counted is None or not counted.rows else (counted.group, counted.rows)


def _ordered(order: str, state: RankState | None) -> str:
    """Return ``order`` with a stream label in front: ``<label>#<sequence number>``.

    The order of a retried parked change has no label, and gets the label of ``state``. If there is
    no stored state, the order is returned unchanged.
    """
    if order.startswith("#") and state is not None:
        return state.order.partition("#")[0] + order
    return order


def _read(item: Item) -> RankState:
    texts = [each["S"] for each in item["rows"]["L"]]
    return RankState(item["order"]["S"], tuple(zip(texts[::2], texts[1::2], strict=True)))

"""Named changes: each is applied once by its name, in whatever order the changes come.

``coordination.position`` needs a source that numbers its changes and delivers them in order. AWS
Lambda does not say which shard of a stream a change is from, and may handle several batches of a
shard at once. A position would then skip changes that were never applied.

So every change is marked as applied by an item of its own (``applied_marker``). One transaction
puts the markers of several changes and writes the sum of their effects. The whole effect of a
change is in the transaction that puts its marker. So if the marker exists, the effect does, too.

What fails: if a change was applied before, the transaction is refused and names the marker that
exists. That change is left out, and the others are sent again. It does not matter how changes are
put together into batches, nor who else applies them at the same time. If an answer is lost, the
repeated transaction finds its own markers.

The price is a second write for each change, and transactions, which cost double.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from stator.coordination.position import APPLIED_SECONDS, applied_marker
from stator.coordination.retry import retry, retry_call
from stator.errors import TransactionCanceled, ValidationFailed
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.schema.place import Place
from stator.tables.work import Call, Pause, Work

# A transaction has at most 100 actions (AWS, TransactWriteItems). Smaller ones conflict less.
_ACTIONS: Final = 50
C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class NamedEffects(Protocol[C_contra]):
    """What named changes do to the items of a table."""

    def actions(self, changes: Sequence[C_contra]) -> Work[list[dict[str, Any]]]:
        """Return the transaction actions that add the effects of the changes."""
        ...

    def applied(self) -> None:
        """Called when the actions that were returned last have been carried out."""
        ...

    def refused(self, at: int, item: Item | None) -> None:
        """Called when the condition of an action failed: the ``at``-th, which found ``item``."""
        ...

    def invalid(self) -> bool:
        """Called when DynamoDB refuses the actions as invalid.

        Returns whether other actions for the same changes may succeed.
        """
        ...


def parts_of(
    changes: Mapping[str, C], targets: Callable[[C], Collection[Any]]
) -> Iterator[dict[str, C]]:
    """Split changes, by name, into parts that each fit into one transaction.

    ``targets`` returns the items that a change affects. A change with very many is alone.
    """
    part: dict[str, C] = {}
    touched: set[Any] = set()
    for name, change in changes.items():
        mine = targets(change)
        if part and len(part) + 1 + len(touched.union(mine)) > _ACTIONS:
            yield part
            part, touched = {}, set()
        part[name] = change
        touched.update(mine)
    if part:
        yield part


def apply_named(
    context: Context,
    place: Place,
    changes: Mapping[str, C],
    effects: NamedEffects[C],
    check: Callable[[], Any],
    label: str,
) -> Work[None]:
    """Apply changes, given by name, in one transaction. Those applied before are left out.

    ``check`` runs before every attempt and may raise an error to stop.
    """
    left = dict(changes)
    attempt = 0
    while left:
        names = list(left)
        actions = yield from retry(context, check, partial(effects.actions, list(left.values())))
        expires_at = context.now() + APPLIED_SECONDS
        markers = [{"Put": applied_marker(place, name, expires_at).request} for name in names]
        call = Call("TransactWriteItems", {"TransactItems": [*markers, *actions]}, label)
        try:
            yield from retry_call(context, check, call)
        except TransactionCanceled as cancelled:
            failed = _failed(cancelled, "ConditionalCheckFailed")
            if not failed and not (_failed(cancelled, "ValidationError") and effects.invalid()):
                raise
            for at in failed:
                if at < len(names):
                    del left[names[at]]
                else:
                    effects.refused(at - len(names), cancelled.reasons[at].get("Item"))
        except ValidationFailed:
            if not effects.invalid():
                raise
        else:
            effects.applied()
            return
        attempt += 1
        yield Pause(context.backoff(attempt))


def _failed(cancelled: TransactionCanceled, code: str) -> list[int]:
    return [at for at, reason in enumerate(cancelled.reasons) if reason.get("Code") == code]

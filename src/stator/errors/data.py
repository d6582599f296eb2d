"""Errors of the typed data layer and of the pattern objects built on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stator.errors.base import StatorError


class RequestRefused(StatorError):
    """The data layer refused a wrong call and sent nothing to DynamoDB."""


class DbClosed(RequestRefused):
    """A Db or an AsyncDb was used after it was closed."""

    def __init__(self) -> None:
        super().__init__(
            "the Db is closed", hint="open a new one with connect() or connect_async()"
        )


class CursorRefused(RequestRefused):
    """The cursor is damaged, or belongs to another query."""

    hint = "pass the cursor of the previous page, with the same pattern and the same arguments"


class UpdateRefused(RequestRefused):
    """The update or patch cannot be made as given.

    For example, it changes the item's key or names an unknown field, or it sets only some of the
    fields that a key is built from. ``missing`` names the fields that it must set to known values.
    """

    def __init__(
        self, message: str, *, missing: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class DestructiveChange(RequestRefused):
    """A change to a table would lose data. ``changes`` describes each loss in words."""

    def __init__(
        self, message: str, *, changes: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A change of a batch that failed, and its error."""

    change: Any
    error: StatorError


class BatchFailed(StatorError):
    """Some changes of a batch failed. All others were made.

    ``failures`` holds each failed change and its error. If the error's ``sent`` is True, the change
    may have been made all the same. ``written`` counts the changes that were made. The cause of
    this exception is the first failure's error.
    """

    hint = (
        "error.failures names each change and its error; on_error='collect' returns them instead "
        "of raising"
    )

    def __init__(self, written: int, failures: Sequence[FailedWrite]) -> None:
        first = failures[0]
        lost = any(getattr(each.error, "sent", False) for each in failures)
        super().__init__(
            f"{len(failures)} of {written + len(failures)} changes "
            f"{'may not have been' if lost else 'were not'} written. "
            f"The first is about {type(first.change).__name__}: {first.error.message}"
        )
        self.written = written
        self.failures = list(failures)


class PartlyDone(StatorError):
    """A write of the operation is stored, and a later step failed.

    The message says what is stored, the hint how to go on, and ``__cause__`` is the error of the
    step that failed. ``sent`` is True, as in every error after which something may be stored.
    """

    sent: ClassVar[bool] = True


class BlobMissing(StatorError):
    """An item refers to a blob that the blob store does not have."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the blob store has no blob {key}",
            hint="connect with the blobs= that the item was written with, or restore the blob",
        )
        self.key = key


class BlobDamaged(StatorError):
    """The content of a blob does not match the hash in its item."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the content of blob {key} has changed: its hash differs from the item's",
            hint="restore the blob from a backup",
        )
        self.key = key


class ItemFormatUnsupported(StatorError):
    """A newer version of Stator wrote the items of a pattern object or a pipeline.

    ``found`` is the format of the items; ``supported`` is the newest format that this version
    reads.
    """

    def __init__(self, shown: str, found: int, supported: int) -> None:
        super().__init__(
            f"the items of {shown} have format {found}; this version of Stator reads "
            f"formats up to {supported}",
            hint="upgrade Stator to the version that wrote them",
        )
        self.found = found
        self.supported = supported


class PatternObjectError(StatorError):
    """A pattern object, such as a lock or a series, cannot do what was asked."""


class LockBusy(PatternObjectError):
    """Another owner holds the lock.

    The owner's lease ends at ``until`` (epoch seconds), unless the owner renews it.
    """

    def __init__(self, name: str, owner: str, until: float) -> None:
        super().__init__(
            f"the lock {name} is held by {owner}",
            hint="wait with wait_seconds=..., or try again later",
        )
        self.name = name
        self.owner = owner
        self.until = until


class LeaseLost(PatternObjectError):
    """The lease expired, or another owner took it, before it was renewed or released."""


class AlreadyRunning(PatternObjectError):
    """Another attempt is running the same idempotent request, or ended without a known outcome.

    After ``until`` (epoch seconds), the next attempt takes over.
    """

    def __init__(self, key: str, until: float) -> None:
        super().__init__(
            f"the request {key} is running elsewhere, or its last attempt ended without a known "
            "outcome",
            hint="try again in a moment, or wait with wait_seconds=...; after `until` the next "
            "attempt takes over",
        )
        self.key = key
        self.until = until


class PayloadDiffers(PatternObjectError):
    """An idempotency key was used before with another payload."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the idempotency key {key} was used before with another payload",
            hint="use a new key for each request",
        )
        self.key = key


class Unstorable(PatternObjectError):
    """The work of an idempotent request is done, but its result cannot be stored.

    So the work is not repeated, and later attempts cannot return its result. ``result`` is the
    result if this attempt did the work, and None if an earlier attempt did.
    """

    def __init__(self, message: str, *, result: object = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class TookTooLong(PatternObjectError):
    """The work outlived its lease, and another attempt took over before the result was stored.

    ``result`` is the result of the work, which no other attempt will see.
    """

    def __init__(self, message: str, *, result: object = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result


class ResultNotStored(PatternObjectError):
    """The work is done, and storing its result failed: DynamoDB throttled it or did not answer.

    ``result`` is the result of the work. ``attempt`` is the attempt, to store the result later with
    ``once.finish(error.attempt, error.result)``. ``__cause__`` is the error of the write. ``sent``
    is True: the work is done, and the result may be stored after all.
    """

    sent: ClassVar[bool] = True

    def __init__(
        self, message: str, *, result: object = None, attempt: Any = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        self.attempt = attempt


class TreeCycle(PatternObjectError):
    """A node cannot move below itself or below one of its descendants."""

    def __init__(self, tree: str, node: object, parent: object) -> None:
        super().__init__(
            f"tree {tree}: {node} cannot move under {parent}, which is the node itself or below it",
            hint="choose a parent outside the node's own subtree",
        )
        self.node = node
        self.parent = parent


class TreeTooDeep(PatternObjectError):
    """The tree has reached its depth limit.

    The depth is limited because a move writes all ancestors in one transaction.
    """

    def __init__(self, levels: int) -> None:
        super().__init__(
            f"a tree has at most {levels} levels", hint="put the node under a higher parent"
        )
        self.levels = levels

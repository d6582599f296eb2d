"""The typed data layer and its patterns."""

from __future__ import annotations

from stator.errors.base import StatorError


class RequestRefused(StatorError):
    """What was asked cannot be right, so nothing was sent."""


class CursorRefused(RequestRefused):
    hint = "pass the cursor of the page before, with the same pattern and the same arguments"


class UpdateRefused(RequestRefused):
    """``missing`` names the fields whose values are needed and not known."""

    def __init__(
        self, message: str, *, missing: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class DestructiveChange(RequestRefused):
    """``changes`` says in words what would be lost."""

    def __init__(
        self, message: str, *, changes: tuple[str, ...] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


class BlobMissing(StatorError):
    def __init__(self, key: str) -> None:
        super().__init__(
            f"the blob {key} is not there", hint="is this the store that the item was written with?"
        )
        self.key = key


class BlobDamaged(StatorError):
    def __init__(self, key: str) -> None:
        super().__init__(
            f"the blob {key} is not what was written: its hash differs",
            hint="restore it from a backup",
        )
        self.key = key


class PatternError(StatorError):
    """What a pattern object, such as a lock or a series, cannot do."""


class LockBusy(PatternError):
    """Somebody else has the lock; ``until`` is when their lease ends, unless they renew it."""

    def __init__(self, name: str, owner: str, until: float) -> None:
        super().__init__(
            f"the lock {name} is held by {owner}",
            hint="wait with wait_seconds=..., or try again later",
        )
        self.name = name
        self.owner = owner
        self.until = until


class LeaseLost(PatternError):
    """The lease ended, or another has it, before it was renewed or given back."""


class AlreadyRunning(PatternError):
    """Another is at it; ``until`` is when it may be taken over."""

    def __init__(self, key: str, until: float) -> None:
        super().__init__(
            f"{key} is being carried out by another",
            hint="try again in a moment, or wait with wait_seconds=...",
        )
        self.until = until


class PayloadDiffers(PatternError):
    """The same key came with another payload."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key} was used with another payload before",
            hint="use a key of its own for each request",
        )


class Unstorable(PatternError):
    """The work is done; what it gave cannot be given again."""


class TookTooLong(PatternError):
    """The work was taken over by another before its result could be stored."""


class TreeCycle(PatternError):
    """The new parent is the node itself, or below it."""

    def __init__(self, tree: str, node: object, parent: object) -> None:
        super().__init__(
            f"{node} cannot be moved under {parent}, which is itself or below it, in the tree {tree}",
            hint="move what is below it somewhere else first",
        )
        self.node = node
        self.parent = parent


class TreeTooDeep(PatternError):
    """Every ancestor takes part in a move, and a transaction has an end."""

    def __init__(self, levels: int) -> None:
        super().__init__(f"a tree has at most {levels} levels", hint="put the node higher up")
        self.levels = levels

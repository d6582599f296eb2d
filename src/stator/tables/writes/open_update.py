"""Open updates: the objects that ``with db.update(...)`` and ``async with db.update(...)`` use."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from stator.errors import RequestRefused
from stator.model.values import Item
from stator.tables.async_runner import AsyncRunner
from stator.tables.blocks import OnlyAsyncWith, OnlyWith
from stator.tables.context import Context
from stator.tables.reads.items import decoded
from stator.tables.runner import Runner
from stator.tables.work import Work
from stator.tables.writes.patches import patch_values
from stator.tables.writes.recorder import Recorder, Recording
from stator.tables.writes.sender import Returns, write
from stator.tables.writes.statements import Statement
from stator.tables.writes.transactions import target
from stator.tables.writes.writes import WritePlanner

E = TypeVar("E")


class OpenUpdate(Generic[E]):
    """An update whose changes are being recorded in a ``with`` block.

    ``result`` is the item before or after the update, if ``returns`` asked for it.
    """

    def __init__(
        self,
        context: Context,
        entity: type[E] | E,
        identity: dict[str, Any],
        *,
        when: Any = None,
        or_create: bool = False,
        returns: Returns | None = None,
        once: bool = False,
    ) -> None:
        self._context = context
        self._of, self._values, self._entity = target(context, entity, identity)
        self._recording = Recording(self._of)
        self._when = [] if when is None else [when]
        self._or_create = or_create
        self._returns: Returns | None = returns
        self._once = once
        self.result: E | None = None

    def require(self, condition: Any) -> None:
        """Make the update fail with ConditionFailed unless this condition holds."""
        self._when.append(condition)

    def __repr__(self) -> str:
        """Return the item's identity and the changed fields, without values."""
        of, recording = self._of, self._recording
        changed = ", ".join(map(recording.shown, recording.actions)) or "nothing yet"
        return f"<update of {of.shown(self._values)}: {changed}>"

    def recorder(self) -> E:
        self._recording.check_open("its block cannot be used twice")
        return cast("E", Recorder(self._recording))

    def end(self) -> None:
        """End the recording: a later change is refused, because it would be lost."""
        self._recording.is_over = True

    def patch(self, changes: Mapping[str, Any]) -> None:
        """Record the changes of a dict whose values may come from JSON."""
        for name, value in patch_values(self._of, changes).items():
            self._recording.set((name,), value)

    def work(self) -> Work[None]:
        of = self._of
        preparation = WritePlanner(self._context)

        def prepare() -> Any:
            return preparation.update(
                of,
                self._recording,
                self._values,
                entity=self._entity,
                when=self._when,
                or_create=self._or_create,
            )

        label = f"update {of.name}"
        yield from write(
            self._context,
            prepare,
            label,
            returns=self._wanted_returns(),
            once=self._once,
            read=self._took,
        )

    def _took(self, statements: list[Statement], item: Item | None) -> Work[None]:
        of = self._of
        if (
            item is None and self._wanted_returns() == "new"
        ):  # it went out as a transaction, which returns nothing
            preparation = WritePlanner(self._context)
            key = yield from preparation.key(of, self._values)
            item = yield from preparation.stored(of, key)
        if item is None or (statements[0].replaces_gone and self._returns == "old"):
            return
        [fresh] = yield from decoded(self._context, of, [item])
        if self._returns is not None:
            self.result = fresh
        if self._entity is not None and self._wanted_returns() == "new":
            of.write_back(self._entity, {name: getattr(fresh, name) for name in of.own_fields})

    def _wanted_returns(self) -> Returns | None:
        """Return which state of the item to request: "old", "new" or None.

        If an object was passed, the default is "new", to bring the object up to date.
        """
        return self._returns or ("new" if self._entity is not None else None)


class _UpdateBlock(Generic[E]):
    """The common base of the context managers that ``db.update`` returns."""

    __slots__ = ("_runner", "_update")
    _update: OpenUpdate[E]

    def __init__(self, update: OpenUpdate[E]) -> None:
        object.__setattr__(self, "_update", update)

    def __setattr__(self, name: str, value: Any) -> None:
        raise RequestRefused(
            f"{name} was set on the update itself, which changes nothing",
            hint=f"write `with db.update(...) as u: u.{name} = ...`",
        )

    def __repr__(self) -> str:
        return repr(self._update)

    @property
    def result(self) -> E | None:
        """After the block: the item before or after the update, if ``returns`` asked for it."""
        return self._update.result

    def require(self, condition: Any) -> None:
        """Make the update fail with ConditionFailed unless this condition holds as well."""
        self._update.require(condition)


class SyncUpdate(OnlyWith, _UpdateBlock[E]):
    """The context manager of ``with db.update(...)``."""

    __slots__ = ()
    _shown = "db.update(...)"
    _runner: Runner

    def __init__(self, runner: Runner, update: OpenUpdate[E]) -> None:
        super().__init__(update)
        object.__setattr__(self, "_runner", runner)

    def __enter__(self) -> E:
        return self._update.recorder()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._update.end()
        if kind is None:
            self._runner.run(self._update.work())


class AsyncUpdate(OnlyAsyncWith, _UpdateBlock[E]):
    """The context manager of ``async with db.update(...)``."""

    __slots__ = ()
    _shown = "db.update(...)"
    _runner: AsyncRunner

    def __init__(self, runner: AsyncRunner, update: OpenUpdate[E]) -> None:
        super().__init__(update)
        object.__setattr__(self, "_runner", runner)

    async def __aenter__(self) -> E:
        return self._update.recorder()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._update.end()
        if kind is None:
            await self._runner.run(self._update.work())

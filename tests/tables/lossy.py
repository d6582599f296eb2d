"""A transport whose client loses one answer and sends the request again.

The client cannot tell a request that never arrived from an answer that was lost. So the first
attempt is carried out or not, as the test chooses; then other writers act; then the request is sent
again, and a refusal of the repetition is marked as the client marks it (``after_unknown``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stator.errors import OutcomeUnknown, ReplyLost, ServiceError
from stator.tables.db import AsyncDb, Db
from stator.tables.observers import WRITES
from stator.transport import AsyncTransport, Transport


class LostAnswer:
    """Loses the answer to the next write. ``meanwhile`` runs before the write is sent again.

    With ``repeats=False`` the client gives up instead of sending the write again.
    """

    def __init__(
        self,
        *,
        arrived: bool,
        meanwhile: Callable[[], None] = lambda: None,
        repeats: bool = True,
    ) -> None:
        self.arrived = arrived
        self.meanwhile = meanwhile
        self.repeats = repeats
        self.is_spent = False

    def applies_to(self, operation: str) -> bool:
        return operation in WRITES and not self.is_spent

    def after_the_loss(self, idempotent: bool) -> None:
        self.meanwhile()
        lost = ReplyLost("the answer was lost")
        if not idempotent:
            raise OutcomeUnknown("the write may or may not have happened") from lost
        if not self.repeats:
            raise lost


class LossyTransport:
    def __init__(self, inner: Transport, loss: LostAnswer) -> None:
        self.inner = inner
        self.loss = loss
        self.parallel = inner.parallel

    def call(self, operation: str, request: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        loss = self.loss
        if not loss.applies_to(operation):
            return self.inner.call(operation, request, **options)
        loss.is_spent = True
        if loss.arrived:
            self.inner.call(operation, request, **options)
        loss.after_the_loss(options.get("idempotent", True))
        try:
            return self.inner.call(operation, request, **options)
        except ServiceError as error:
            error.after_unknown = True
            raise

    def close(self) -> None:
        self.inner.close()


class LossyAsyncTransport:
    def __init__(self, inner: AsyncTransport, loss: LostAnswer) -> None:
        self.inner = inner
        self.loss = loss

    async def call(
        self, operation: str, request: Mapping[str, Any], **options: Any
    ) -> dict[str, Any]:
        loss = self.loss
        if not loss.applies_to(operation):
            return await self.inner.call(operation, request, **options)
        loss.is_spent = True
        if loss.arrived:
            await self.inner.call(operation, request, **options)
        loss.after_the_loss(options.get("idempotent", True))
        try:
            return await self.inner.call(operation, request, **options)
        except ServiceError as error:
            error.after_unknown = True
            raise

    async def close(self) -> None:
        await self.inner.close()


def lossy(db: Db, loss: LostAnswer) -> Db:
    """A Db on the same tables whose next write loses its answer."""
    runner = db.runner.within(60.0)
    runner.transport = LossyTransport(runner.transport, loss)
    return Db(db.context, runner)


def lossy_async(db: AsyncDb, loss: LostAnswer) -> AsyncDb:
    runner = db.runner.within(60.0)
    runner.transport = LossyAsyncTransport(runner.transport, loss)
    return AsyncDb(db.context, runner)

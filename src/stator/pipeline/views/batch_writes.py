"""Batches of unconditional writes to a view's own items, repeated until all have succeeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stator.coordination.retry import PATIENT, retry_call
from stator.model.limits import BATCH_WRITE_ITEMS
from stator.pipeline.views.layout import LABEL
from stator.tables.context import Context
from stator.tables.work import Call, Gather, Pause, Work, gathered


def write_all(
    context: Context,
    table: str,
    requests: Sequence[dict[str, Any]],
    check: Callable[[], Any] | None,
) -> Work[None]:
    """Send PutRequests and DeleteRequests in BatchWriteItem calls until all have succeeded.

    Each request must be for a different item of ``table``. ``check`` is called before each attempt
    and may raise an error to stop.
    """
    chunks = [
        requests[at : at + BATCH_WRITE_ITEMS] for at in range(0, len(requests), BATCH_WRITE_ITEMS)
    ]
    gathered((yield Gather([_write(context, {table: list(chunk)}, check) for chunk in chunks])))


def _write(context: Context, left: dict[str, Any], check: Callable[[], Any] | None) -> Work[None]:
    attempt = 0
    while left:
        reply = yield from retry_call(
            context, check, Call("BatchWriteItem", {"RequestItems": left}, LABEL)
        )
        left = reply.get("UnprocessedItems") or {}
        if left:
            yield Pause(context.backoff(attempt, PATIENT))
            attempt += 1

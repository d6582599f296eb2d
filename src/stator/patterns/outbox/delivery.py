"""Delivers one message. An error of ``send`` is a failed attempt and is returned as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.errors import RequestRefused, TryLater
from stator.patterns.outbox.items import OutboxMessage

Send = Callable[[OutboxMessage], Any]
_ERROR_LENGTH = 1000


@dataclass(slots=True)
class RelayResult:
    """The result of one run of a relay: how many messages were sent, failed or were parked.

    ``failed`` messages are retried later. ``busy`` counts the shards that were skipped because
    another relay held them. ``waiting`` counts the shards that the relay left early because
    ``send`` raised TryLater.
    """

    sent: int = 0
    failed: int = 0
    parked: int = 0
    busy: int = 0
    waiting: int = 0

    @property
    def attempted(self) -> int:
        """The number of messages that were sent, delivered or not."""
        return self.sent + self.failed + self.parked


def deliver(send: Send, message: OutboxMessage) -> str | None:
    """Call ``send`` with the message. Return None on success, else the error of ``send`` as text.

    A TryLater from ``send`` is passed on: it does not count as a failed attempt.
    """
    try:
        result = send(message)
    except TryLater:
        raise
    except Exception as error:  # user code: whatever it raises is a failed delivery
        return _text(error)
    if inspect.iscoroutine(result):
        result.close()
        raise RequestRefused(
            "send is an async function, but the Db is synchronous",
            hint="use connect_async, or a plain function",
        )
    return None


async def deliver_async(send: Send, message: OutboxMessage) -> str | None:
    try:
        result = send(message)
        if inspect.isawaitable(result):
            await result
    except TryLater:
        raise
    except Exception as error:  # user code: whatever it raises is a failed delivery
        return _text(error)
    return None


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]

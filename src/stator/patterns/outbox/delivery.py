"""One delivery of a message, and how it went: whatever ``send`` raises is a failed attempt, and told in words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.errors import RequestRefused, TryLater
from stator.patterns.outbox.items import Message

Send = Callable[[Message], Any]
_ERROR_LENGTH = 1000


@dataclass(slots=True)
class RelayResult:
    """``failed`` messages are tried again later; ``busy`` counts the shards with messages that other relays had, ``waiting`` those that were left because
    ``send`` raised TryLater."""

    sent: int = 0
    failed: int = 0
    parked: int = 0
    busy: int = 0
    waiting: int = 0

    @property
    def attempted(self) -> int:
        return self.sent + self.failed + self.parked


def delivered(send: Send, message: Message) -> str | None:
    """How a delivery failed; None if it did not. TryLater is raised: it was none."""
    try:
        result = send(message)
    except TryLater:
        raise
    except (
        Exception
    ) as error:  # send is the user's, and whatever it raises is a delivery that failed
        return _told(error)
    if inspect.iscoroutine(result):
        result.close()
        raise RequestRefused(
            "send is asynchronous, and the Db is not", hint="use connect_async, or a plain function"
        )
    return None


async def delivered_async(send: Send, message: Message) -> str | None:
    try:
        result = send(message)
        if inspect.isawaitable(result):
            await result
    except TryLater:
        raise
    except (
        Exception
    ) as error:  # send is the user's, and whatever it raises is a delivery that failed
        return _told(error)
    return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_LENGTH]

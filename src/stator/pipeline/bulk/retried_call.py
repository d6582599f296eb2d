"""A single request of a job, such as DescribeTable or a page of a Scan, with retries."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from stator.backoff import Backoff
from stator.clock import Clock
from stator.coordination.retry import Trouble, answered, retry_with
from stator.errors import SlowDown
from stator.pipeline.bulk.job.governor import Governor, throttled_scope
from stator.tables.runner import Runner
from stator.tables.work import Call
from stator.transport import Transport

_ATTEMPTS = 12
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=10.0)


def retried_call(
    transport: Transport,
    clock: Clock,
    chance: random.Random,
    operation: str,
    request: Mapping[str, Any],
    governor: Governor | None = None,
) -> dict[str, Any]:
    """Make a request and return the reply.

    Throttling, faults of the service and broken connections are retried.

    The ``governor`` is notified of every throttling and slows the job down.
    """

    def slow_down(error: Trouble) -> None:
        if governor is not None and isinstance(error, SlowDown):
            governor.throttled(throttled_scope(error))

    work = retry_with(
        chance,
        lambda: answered(Call(operation, dict(request))),
        backoff=_BACKOFF,
        max_attempts=_ATTEMPTS,
        on_failure=slow_down,
    )
    reply: dict[str, Any] = Runner(transport, clock).run(work)
    return reply

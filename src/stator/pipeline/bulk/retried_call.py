"""A single request of a job, such as DescribeTable or a page of a Scan, with retries.

The first request of a job is different: nothing has begun, and the user is still watching. A server
that is down is therefore reported at once, and not after minutes of retries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from stator.backoff import Backoff
from stator.clock import Clock
from stator.coordination.retry import Trouble, answered, is_transient, retry_with
from stator.errors import (
    DeadlineExceeded,
    ReplyDamaged,
    ReplyLost,
    ServiceError,
    SlowDown,
    Unreachable,
)
from stator.pipeline.bulk.job.governor import Governor
from stator.tables.runner import Runner
from stator.tables.work import Call, Work
from stator.throttle_reason import throttle_scope
from stator.transport import Transport

_ATTEMPTS = 12
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=10.0)
_FIRST_SECONDS = 2.0
_FIRST_ATTEMPTS = 2
T = TypeVar("T")


def retried_call(
    transport: Transport,
    clock: Clock,
    chance: random.Random,
    operation: str,
    request: Mapping[str, Any],
    governor: Governor | None = None,
    is_stopped: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """Make a request and return the reply. Retry transient errors.

    Transient errors are throttling, faults of the service and broken connections. ``chance``
    randomises the pauses. The ``governor`` is told of every throttling, and slows the job down.
    Nothing is retried once ``is_stopped`` returns True.
    """

    def slow_down(error: Trouble) -> None:
        if is_stopped is not None and is_stopped():
            raise error
        if governor is not None and isinstance(error, SlowDown):
            scope = throttle_scope(error)
            governor.throttled(scope or "table", is_named=scope is not None)

    return retried_work(
        transport, clock, chance, lambda: answered(Call(operation, dict(request))), slow_down
    )


def retried_work(
    transport: Transport,
    clock: Clock,
    chance: random.Random,
    make: Callable[[], Work[T]],
    on_failure: Callable[[Trouble], None] | None = None,
) -> T:
    """Run work, a generator of calls, with the retries of ``retried_call``. Return its result.

    The work must be safe to repeat: ``make`` creates it anew for each attempt. ``on_failure`` is
    called with every error that is retried.
    """
    work = retry_with(chance, make, backoff=_BACKOFF, max_attempts=_ATTEMPTS, on_failure=on_failure)
    return Runner(transport, clock).run(work)


def first_call(
    transport: Transport,
    address: str,
    clock: Clock,
    chance: random.Random,
    operation: str,
    request: Mapping[str, Any],
) -> dict[str, Any]:
    """Make the first request to an address and return the reply.

    Raises Unreachable at once if no connection can be opened, and after the second attempt if no
    reply arrives. Throttling and faults of the service are retried as in ``retried_call``.
    """
    lost: Exception | None = None
    for _ in range(_FIRST_ATTEMPTS):
        try:
            return transport.call(operation, request, deadline_seconds=_FIRST_SECONDS)
        except (ReplyLost, ReplyDamaged, DeadlineExceeded) as error:
            lost = error
        except ServiceError as error:
            if not is_transient(error):
                raise
            return retried_call(transport, clock, chance, operation, request)
    raise Unreachable(
        f"{address} does not answer: {lost}",
        hint="check that a DynamoDB server is running there and that the address is right",
    )

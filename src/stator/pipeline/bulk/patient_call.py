"""A call that is tried again by itself until it is answered: for what a job asks beside its writes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from stator.clock import Clock
from stator.errors import ConnectionTrouble, ServiceError, SlowDown
from stator.pipeline.bulk.job.governor import Governor, throttled_scope
from stator.transport import Transport

_ATTEMPTS = 12
_BASE_SECONDS, _CAP_SECONDS = 0.05, 10.0


def patient_call(
    transport: Transport,
    clock: Clock,
    chance: random.Random,
    operation: str,
    request: Mapping[str, Any],
    governor: Governor | None = None,
) -> dict[str, Any]:
    """The answer. Refusals because of load, faults of the service and broken connections are tried again, with back-off and jitter."""
    for attempt in range(_ATTEMPTS):
        try:
            return transport.call(operation, request)
        except (ServiceError, ConnectionTrouble) as error:
            if not error.retryable or attempt == _ATTEMPTS - 1:
                raise
            if governor is not None and isinstance(error, SlowDown):
                governor.throttled(throttled_scope(error))
        clock.sleep(chance.random() * min(_CAP_SECONDS, _BASE_SECONDS * 2.0**attempt))
    raise AssertionError("the last attempt answers or raises")

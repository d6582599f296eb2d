"""Faults in the calls of a ``Db``, as functions of a call's number, operation and request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stator.tables.db import Db
from stator.testing import FaultyTransport
from stator.testing.faults import After, Before

Hook = Callable[[int, str, Mapping[str, Any]], None]


def with_faults(db: Db, before: Hook | None = None, after: Hook | None = None) -> FaultyTransport:
    """Send the Db's further calls through a transport whose hooks may raise.

    A call for which ``before`` raises is not carried out; one for which ``after`` raises is.
    """
    return disturb(
        db,
        None if before is None else lambda call: before(call.number, call.operation, call.request),
        None if after is None else lambda call, _: after(call.number, call.operation, call.request),
    )


def disturb(db: Db, before: Before | None = None, after: After | None = None) -> FaultyTransport:
    """Send the Db's further calls through a transport with faults, instead of an earlier one."""
    inner = db.runner.transport
    made = FaultyTransport(
        inner.inner if isinstance(inner, FaultyTransport) else inner,
        before,
        after,
        clock=db.context.clock,
    )
    db.runner.transport = made
    return made

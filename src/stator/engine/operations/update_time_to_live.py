"""UpdateTimeToLive.

A change takes ``status_delay_seconds``, as those of tables do, and as long as it is on its way there can be no other; on AWS that is up to an
hour. Items that are there already expire, too: they are found in the background (see expiry.py).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.errors import ResourceInUse, ResourceNotFound, ValidationFailed
from stator.storage import Changes


@dataclass(frozen=True, slots=True)
class Request:
    table_name: str
    enabled: bool
    attribute: str


def parse(request: dict[str, Any]) -> Request:
    specification = request["TimeToLiveSpecification"]
    return Request(request["TableName"], specification["Enabled"], specification["AttributeName"])


def run(context: RequestContext, request: Request) -> dict[str, Any]:
    table = context.table_in_any_state(request.table_name)
    if table.definition.status == "CREATING":
        raise ResourceNotFound(f"Requested resource not found: Table: {table.name} not found")
    if table.definition.status == "DELETING":
        raise ResourceInUse("Attempt to change a resource which is still in use")
    _check_changes(table.definition.ttl_attribute, request)
    if context.parts.lifecycle.changes_time_to_live(table.definition):
        raise ValidationFailed(
            "Time to live has been modified multiple times within a fixed interval"
        )
    definition = copy.deepcopy(table.definition)
    definition.ttl_before = table.definition.ttl_attribute
    definition.ttl_changed = context.database.clock.now()
    definition.ttl_attribute = request.attribute if request.enabled else None
    definition.ttl_filled_to = "" if request.enabled else None
    changes: Changes = {}
    context.database.catalog.put(definition, changes)
    context.write(changes)
    if not request.enabled:
        context.parts.expiry.forget(definition.number)
    context.parts.housekeeping.wake()
    return {
        "TimeToLiveSpecification": {"Enabled": request.enabled, "AttributeName": request.attribute}
    }


def _check_changes(current: str | None, request: Request) -> None:
    if current is None:
        if not request.enabled:
            raise ValidationFailed("TimeToLive is already disabled")
        return
    if request.attribute != current:
        raise ValidationFailed(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {current}"
        )
    if request.enabled:
        raise ValidationFailed("TimeToLive is already enabled")


OPERATION = Operation("UpdateTimeToLive", parse, run)

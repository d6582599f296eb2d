"""DescribeTimeToLive and UpdateTimeToLive.

A change takes ``status_delay_seconds`` (on AWS, up to an hour) and blocks further changes until it
is complete. Items that are older than the change expire, too: a walk in the background finds them
(see expiry.py).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.errors import ResourceInUse, ResourceNotFound, ValidationFailed
from stator.storage import Changes


def parse_describe(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def describe_time_to_live(context: RequestContext, table_name: str) -> dict[str, Any]:
    definition = context.table_in_any_state(table_name).definition
    if definition.status in ("CREATING", "DELETING"):
        raise ValidationFailed(
            f"Cannot describe time to live while table is in {definition.status} state: "
            f"Current table state is {definition.status}"
        )
    changing = context.parts.lifecycle.changes_time_to_live(definition)
    description = {"TimeToLiveStatus": "DISABLED"}
    if definition.ttl_attribute is not None:
        description = {
            "TimeToLiveStatus": "ENABLING" if changing else "ENABLED",
            "AttributeName": definition.ttl_attribute,
        }
    elif changing and definition.ttl_before is not None:
        description = {"TimeToLiveStatus": "DISABLING", "AttributeName": definition.ttl_before}
    return {"TimeToLiveDescription": description}


@dataclass(frozen=True, slots=True)
class UpdateTimeToLiveRequest:
    table_name: str
    enabled: bool
    attribute: str


def parse_update(request: dict[str, Any]) -> UpdateTimeToLiveRequest:
    specification = request["TimeToLiveSpecification"]
    return UpdateTimeToLiveRequest(
        request["TableName"], specification["Enabled"], specification["AttributeName"]
    )


def update_time_to_live(
    context: RequestContext, request: UpdateTimeToLiveRequest
) -> dict[str, Any]:
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


def _check_changes(current: str | None, request: UpdateTimeToLiveRequest) -> None:
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


OPERATIONS = (
    Operation("DescribeTimeToLive", parse_describe, describe_time_to_live),
    Operation("UpdateTimeToLive", parse_update, update_time_to_live),
)

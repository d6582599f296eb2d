"""DescribeTimeToLive."""

from __future__ import annotations

from typing import Any

from stator.engine.operation import Operation, RequestContext
from stator.errors import ValidationFailed


def parse(request: dict[str, Any]) -> str:
    return str(request["TableName"])


def run(context: RequestContext, table_name: str) -> dict[str, Any]:
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


OPERATION = Operation("DescribeTimeToLive", parse, run)

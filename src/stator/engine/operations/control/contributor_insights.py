"""DescribeContributorInsights, ListContributorInsights and UpdateContributorInsights.

A change takes ``status_delay_seconds``, like a change to a table. The rules that it creates are
those of CloudWatch (``engine.companions.cloudwatch.insights``). Texts and statuses follow public
captures of AWS.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

import orjson

from stator.engine.operation import Operation, RequestContext
from stator.engine.tables.contributor_insights import (
    ALL_KEYS,
    MOST_RULES,
    all_rules,
    rules_of,
    status_of,
)
from stator.engine.tables.table import Table, TableDefinition
from stator.errors import ResourceNotFound, ValidationFailed
from stator.storage import Changes

_PAGE: Final = 100
_QUOTA_REACHED: Final = {
    "ExceptionName": "LimitExceededException",
    "ExceptionDescription": (
        "Amazon CloudWatch Contributor Insights rule limit reached. Please disable Contributor "
        "Insights for other tables/indexes OR disable other CloudWatch Contributor Insights rules "
        "before retrying."
    ),
}


def _shown(table: Table, index: str) -> dict[str, Any]:
    return {"TableName": table.name, **({"IndexName": index} if index else {})}


def _resource(context: RequestContext, request: dict[str, Any]) -> tuple[Table, str]:
    """Return the table and the global index ("" if none) that a request names."""
    table = context.table_in_any_state(request["TableName"])
    name = request.get("IndexName", "")
    index = table.index(name) if name else None
    if name and (index is None or not index.is_global):
        raise ResourceNotFound(
            f"Requested resource not found: Index: {name} not found for table: {table.name}"
        )
    return table, name


# -- DescribeContributorInsights


def parse_describe(request: dict[str, Any]) -> dict[str, Any]:
    return request


def describe(context: RequestContext, request: dict[str, Any]) -> dict[str, Any]:
    table, index = _resource(context, request)
    setting = table.definition.insights.get(index)
    status = status_of(setting, context.database.clock.now())
    answer = {**_shown(table, index), "ContributorInsightsStatus": status}
    if setting is None:
        return answer
    answer["LastUpdateDateTime"] = setting["updated"]
    answer["ContributorInsightsMode"] = setting["mode"]
    if status == "FAILED":
        answer["FailureException"] = _QUOTA_REACHED
    elif setting["enabled"]:
        rules = rules_of(table.definition, index)
        answer["ContributorInsightsRuleList"] = [rule.name for rule in rules]
    return answer


# -- ListContributorInsights


@dataclass(frozen=True, slots=True)
class ListRequest:
    table_name: str | None
    most: int
    after: tuple[str, str] | None


def parse_list(request: dict[str, Any]) -> ListRequest:
    most = request.get("MaxResults", _PAGE) or _PAGE
    token = request.get("NextToken")
    return ListRequest(
        request.get("TableName"), min(most, _PAGE), None if token is None else _read_token(token)
    )


def _read_token(token: str) -> tuple[str, str]:
    try:
        table, index = orjson.loads(bytes.fromhex(token))
    except (ValueError, TypeError):
        raise ValidationFailed("Invalid NextToken") from None
    return str(table), str(index)


def list_insights(context: RequestContext, request: ListRequest) -> dict[str, Any]:
    if request.table_name is not None:
        tables = [context.table_in_any_state(request.table_name)]
    else:
        names = context.database.catalog.names(context.scope)
        tables = [context.database.catalog.get(context.scope, name) for name in names]
    now = context.database.clock.now()
    found = [
        (table, index, setting)
        for table in tables
        for index, setting in sorted(table.definition.insights.items())
        if status_of(setting, now) != "DISABLED"
        and (request.after is None or (table.name, index) > request.after)
    ]
    page = found[: request.most]
    answer: dict[str, Any] = {
        "ContributorInsightsSummaries": [
            {
                **_shown(table, index),
                "ContributorInsightsStatus": status_of(setting, now),
                "ContributorInsightsMode": setting["mode"],
            }
            for table, index, setting in page
        ]
    }
    if len(found) > len(page):
        table, index, _ = page[-1]
        answer["NextToken"] = orjson.dumps([table.name, index]).hex()
    return answer


# -- UpdateContributorInsights


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    names: dict[str, Any]
    enables: bool
    mode: str | None


def parse_update(request: dict[str, Any]) -> UpdateRequest:
    return UpdateRequest(
        request,
        request["ContributorInsightsAction"] == "ENABLE",
        request.get("ContributorInsightsMode"),
    )


def update(context: RequestContext, request: UpdateRequest) -> dict[str, Any]:
    """Enable or disable Contributor Insights.

    A request that changes nothing has no effect; a change of mode enables again.
    """
    database = context.database
    table, index = _resource(context, request.names)
    _check_state(table, index)
    now = database.clock.now()
    before = table.definition.insights.get(index)
    mode = ALL_KEYS if before is None else before["mode"]
    if request.enables:
        mode = request.mode or ALL_KEYS
    was_failed = before is not None and before["failed"]
    was_enabled = before is not None and before["enabled"] and not was_failed
    is_changed = request.enables != was_enabled or was_failed
    if before is not None and before["mode"] != mode:
        is_changed = True
    if is_changed and (request.enables or before is not None):
        definition = copy.deepcopy(table.definition)
        number = before["number"] if before is not None and was_enabled else int(now * 1000)
        definition.insights[index] = {
            "enabled": request.enables,
            "mode": mode,
            "updated": now,
            "until": now + context.parts.lifecycle.delay_seconds,
            "number": number,
            "failed": False,
        }
        if request.enables and _exceeds_quota(context, definition):
            definition.insights[index]["failed"] = True
        changes: Changes = {}
        table = database.catalog.put(definition, changes)
        context.write(changes)
        database.meter.watch_keys([table])
    setting = table.definition.insights.get(index)
    status = status_of(setting, now)
    if is_changed and setting is not None:  # AWS never answers with the settled status
        status = "ENABLING" if request.enables else "DISABLING"
    answer = {**_shown(table, index), "ContributorInsightsStatus": status}
    return answer if setting is None else {**answer, "ContributorInsightsMode": setting["mode"]}


def _check_state(table: Table, index: str) -> None:
    named = table.index(index) if index else None
    if table.definition.status == "CREATING":
        holder = "TableStatus"
    elif named is not None and named.definition.status == "CREATING":
        holder = "IndexStatus"
    else:
        return
    raise ValidationFailed(
        "Table or Index is not in a valid state to update Key Access Insights: "
        f"{holder} must be ACTIVE to enable ContributorInsights."
    )


def _exceeds_quota(context: RequestContext, changed: TableDefinition) -> bool:
    catalog = context.database.catalog
    others = [
        catalog.get(changed.scope, name).definition
        for name in catalog.names(changed.scope)
        if name != changed.name
    ]
    return sum(len(all_rules(each)) for each in [*others, changed]) > MOST_RULES


OPERATIONS = (
    Operation("DescribeContributorInsights", parse_describe, describe),
    Operation("ListContributorInsights", parse_list, list_insights),
    Operation("UpdateContributorInsights", parse_update, update),
)

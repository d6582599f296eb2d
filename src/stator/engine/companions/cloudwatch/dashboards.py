"""Dashboards: stored, checked and listed. Nothing draws them.

PutDashboard checks that the body is a JSON object, that its widgets are a list, and that each has a
type that CloudWatch knows and properties. A widget whose properties are not those of its type is
stored, as on AWS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.metric_fields import INVALID_VALUE
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.cloudwatch.resource_tags import ResourceTags
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.engine.companions.records import CompanionRecords
from stator.errors import CompanionRefused
from stator.model.scope import Scope

_KIND: Final = "dashboard"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_WIDGETS: Final = ("metric", "text", "log", "alarm", "explorer", "custom")
_MOST_WIDGETS: Final = 500
_LARGEST_BYTES: Final = 1024 * 1024
_PAGE: Final = 1_000
_NOT_FOUND: Final = "DashboardNotFoundError"


class Dashboards:
    """The dashboards of one engine."""

    def __init__(self, records: CompanionRecords, tags: ResourceTags) -> None:
        self._records = records
        self._tags = tags
        self.operations: Mapping[str, CompanionOperation] = {
            "PutDashboard": self.put_dashboard,
            "GetDashboard": self.get_dashboard,
            "ListDashboards": self.list_dashboards,
            "DeleteDashboards": self.delete_dashboards,
        }

    def has(self, scope: Scope, name: str) -> bool:
        return self._records.get(_KIND, scope, name) is not None

    def put_dashboard(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        name, body = request["DashboardName"], request["DashboardBody"]
        if _NAME.fullmatch(name) is None:
            raise CompanionRefused(
                INVALID_VALUE,
                f"The value {name} for field DashboardName contains invalid characters. It can "
                "only contain alphanumerics, dash (-) and underscore (_).",
            )
        problems = _problems(body)
        if problems:
            first = problems[0]["Message"]
            raise CompanionRefused(
                "DashboardInvalidInputError",
                f"The field DashboardBody must be a valid JSON object: {first}",
                facts={"dashboardValidationMessages": problems},
            )
        is_new = not self.has(call.scope, name)
        record = {"version": 1, "name": name, "body": body, "modified": call.now}
        self._records.put(_KIND, call.scope, name, record)
        if "Tags" in request and is_new:  # as for alarms, later tags come by TagResource
            self._tags.add(call.scope, dashboard_arn(call.scope, name), request["Tags"])
        return {"DashboardValidationMessages": []}

    def get_dashboard(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        name = request["DashboardName"]
        record = self._records.get(_KIND, call.scope, name)
        if record is None:
            raise CompanionRefused(_NOT_FOUND, f"Dashboard {name} does not exist")
        return {
            "DashboardArn": dashboard_arn(call.scope, name),
            "DashboardBody": record["body"],
            "DashboardName": name,
        }

    def list_dashboards(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        prefix = request.get("DashboardNamePrefix", "")
        found = list(self._records.all(_KIND, call.scope, prefix))
        page, more = page_of(found, request, _PAGE, code=INVALID_VALUE)
        entries = [
            {
                "DashboardName": record["name"],
                "DashboardArn": dashboard_arn(call.scope, record["name"]),
                "LastModified": record["modified"],
                "Size": len(record["body"].encode()),
            }
            for record in page
        ]
        return {"DashboardEntries": entries, **more}

    def delete_dashboards(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Delete dashboards. If one of them does not exist, delete none."""
        for name in request["DashboardNames"]:
            if not self.has(call.scope, name):
                raise CompanionRefused(_NOT_FOUND, f"Dashboard {name} does not exist")
        for name in request["DashboardNames"]:
            self._records.delete(_KIND, call.scope, name)
            self._tags.forget(call.scope, dashboard_arn(call.scope, name))
        return {}


def dashboard_arn(scope: Scope, name: str) -> str:
    return f"arn:aws:cloudwatch::{scope.account}:dashboard/{name}"


def _problems(body: str) -> list[dict[str, str]]:
    """Return what is wrong with the body of a dashboard, as validation messages."""
    if len(body.encode()) > _LARGEST_BYTES:
        return [_problem("/", "The body is larger than 1 MB")]
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return [_problem("/", "The body is not JSON")]
    if not isinstance(content, dict):
        return [_problem("/", "Should be an object")]
    widgets = content.get("widgets", [])
    if not isinstance(widgets, list):
        return [_problem("/widgets", "Should be an array")]
    if len(widgets) > _MOST_WIDGETS:
        return [_problem("/widgets", f"Should NOT have more than {_MOST_WIDGETS} items")]
    found: list[dict[str, str]] = []
    for at, widget in enumerate(widgets):
        path = f"/widgets/{at}"
        if not isinstance(widget, dict):
            found.append(_problem(path, "Should be an object"))
        elif widget.get("type") not in _WIDGETS:
            found.append(_problem(f"{path}/type", f"Should be one of {', '.join(_WIDGETS)}"))
        elif not isinstance(widget.get("properties"), dict):
            found.append(_problem(path, "Should have the property 'properties'"))
    return found


def _problem(path: str, message: str) -> dict[str, str]:
    return {"DataPath": path, "Message": message}

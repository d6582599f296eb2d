"""ListMetrics: the metrics with data in the last two weeks, 500 a page."""

from __future__ import annotations

from typing import Any, Final

from stator.engine.companions.cloudwatch.metric_fields import INVALID_VALUE, write_metric
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.companion import CompanionCall
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.engine.companions.metrics.series import Metric

_PAGE: Final = 500
_RECENT_SECONDS: Final = 3 * 3600


def list_metrics(
    store: MetricStore, call: CompanionCall, request: dict[str, Any]
) -> dict[str, Any]:
    owner = request.get("OwningAccount", call.scope.account)
    found = [
        metric
        for metric in store.metrics()
        if owner == metric.scope.account and _matches(metric, call, request)
    ]
    oldest = call.now - _RECENT_SECONDS if "RecentlyActive" in request else float("-inf")
    listed = [
        metric
        for metric in sorted(found, key=lambda each: (each.namespace, each.name, each.dimensions))
        if (store.last_data(metric, call.now) or float("-inf")) > oldest
    ]
    page, more = page_of(listed, request, _PAGE, code=INVALID_VALUE)
    answer: dict[str, Any] = {"Metrics": [write_metric(metric) for metric in page], **more}
    if request.get("IncludeLinkedAccounts"):
        answer["OwningAccounts"] = [metric.scope.account for metric in page]
    return answer


def _matches(metric: Metric, call: CompanionCall, request: dict[str, Any]) -> bool:
    if metric.scope != call.scope:
        return False
    if request.get("Namespace", metric.namespace) != metric.namespace:
        return False
    if request.get("MetricName", metric.name) != metric.name:
        return False
    dimensions = dict(metric.dimensions)
    return all(
        entry["Name"] in dimensions
        and entry.get("Value", dimensions[entry["Name"]]) == dimensions[entry["Name"]]
        for entry in request.get("Dimensions", [])
    )

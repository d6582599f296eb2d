"""DescribeInsightRules and GetInsightRuleReport, for the rules of DynamoDB's Contributor Insights.

The rules are managed: they come and go with UpdateContributorInsights, and nobody can edit them.
Of a report's metrics only MaxContributorValue and Maximum mean something for DynamoDB, says its
Developer Guide. Minutes are added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.metric_fields import INVALID_VALUE, check_range
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.companion import CompanionCall, CompanionOperation
from stator.engine.companions.insights.contributor_key import ContributorKeys
from stator.engine.companions.insights.insight_store import InsightStore
from stator.engine.companions.insights.top_keys import TopKeys
from stator.engine.database import Database
from stator.engine.tables.contributor_insights import InsightRule, all_rules
from stator.engine.tables.table import Table
from stator.errors import CompanionRefused

_PAGE: Final = 500
_MOST_CONTRIBUTORS: Final = 25
_CONTRIBUTORS: Final = 10
_METRICS: Final = (
    "UniqueContributors",
    "MaxContributorValue",
    "SampleCount",
    "Sum",
    "Minimum",
    "Maximum",
    "Average",
)


class InsightRules:
    """The operations on the rules of one engine."""

    def __init__(self, database: Database, store: InsightStore) -> None:
        self._database = database
        self._store = store
        self.operations: Mapping[str, CompanionOperation] = {
            "DescribeInsightRules": self.describe,
            "GetInsightRuleReport": self.report,
        }

    def _rules(self, call: CompanionCall) -> dict[str, tuple[Table, InsightRule]]:
        catalog = self._database.catalog
        tables = [catalog.get(call.scope, name) for name in catalog.names(call.scope)]
        return {
            rule.name: (table, rule) for table in tables for rule in all_rules(table.definition)
        }

    def describe(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        found = [
            {
                "Name": name,
                "State": "ENABLED",
                "Schema": orjson.dumps(
                    {"Name": "DynamoDBContributorInsights", "Version": 1}
                ).decode(),
                "Definition": _definition(table, rule),
                "ManagedRule": True,
            }
            for name, (table, rule) in sorted(self._rules(call).items())
        ]
        size = request.get("MaxResults", _PAGE)
        asked = {name: value for name, value in request.items() if name != "MaxResults"}
        page, more = page_of(found, asked, size)
        return {"InsightRules": page, **more}

    def report(self, call: CompanionCall, request: dict[str, Any]) -> dict[str, Any]:
        """Return the keys with the greatest sums, or with the greatest single minute."""
        name = request["RuleName"]
        entry = self._rules(call).get(name)
        if entry is None:
            raise CompanionRefused(
                "ResourceNotFoundException", f"There is no rule named {name}.", status=404
            )
        table, rule = entry
        start, end = int(request["StartTime"]) // 60 * 60, int(request["EndTime"])
        check_range(start, end)
        period, most = request["Period"], request.get("MaxContributorCount", _CONTRIBUTORS)
        order, metrics = request.get("OrderBy", "Sum"), request.get("Metrics", [])
        _check(period, most, order, metrics)
        index = table.index(rule.index) if rule.index else None
        keys = ContributorKeys(table.schema if index is None else index.schema)
        minutes = dict(
            self._store.minutes(
                table.definition.number,
                0 if index is None else index.definition.number,
                rule.kind,
                start,
                end,
            )
        )
        return _report(keys, rule, minutes, start, period, most, order, metrics)


def _check(period: int, most: int, order: str, metrics: list[str]) -> None:
    if period % 60:
        raise CompanionRefused(
            INVALID_VALUE, f"The parameter Period must be a multiple of 60; it is {period}."
        )
    if not 1 <= most <= 100:
        raise CompanionRefused(
            INVALID_VALUE, f"MaxContributorCount must be between 1 and 100; it is {most}."
        )
    if order not in ("Sum", "Maximum"):
        raise CompanionRefused(INVALID_VALUE, f"OrderBy must be Sum or Maximum, not {order}.")
    for metric in metrics:
        if metric not in _METRICS:
            raise CompanionRefused(
                INVALID_VALUE, f"Metrics can have {', '.join(_METRICS)}, not {metric}."
            )


def _report(
    keys: ContributorKeys,
    rule: InsightRule,
    minutes: dict[int, TopKeys],
    start: int,
    period: int,
    most: int,
    order: str,
    metrics: list[str],
) -> dict[str, Any]:
    sums: defaultdict[bytes, float] = defaultdict(float)
    peaks: defaultdict[bytes, float] = defaultdict(float)
    points: defaultdict[bytes, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    by_period: defaultdict[int, list[TopKeys]] = defaultdict(list)
    for minute, top in minutes.items():
        at = start + (minute - start) // period * period
        by_period[at].append(top)
        for key, count in top.counts.items():
            sums[key] += count
            peaks[key] = max(peaks[key], count)
            points[key][at] += count
    rank = sums if order == "Sum" else peaks
    first = sorted(rank, key=lambda key: (-rank[key], key))[: min(most, _MOST_CONTRIBUTORS)]
    return {
        "KeyLabels": keys.names(whole=rule.has_sort_key),
        "AggregationStatistic": order,
        "AggregateValue": sum(top.total for top in minutes.values()),
        "ApproximateUniqueCount": len(sums),
        "Contributors": [
            {
                "Keys": keys.values(key),
                "ApproximateAggregateValue": rank[key],
                "Datapoints": [
                    {"Timestamp": at, "ApproximateValue": value}
                    for at, value in sorted(points[key].items())
                ],
            }
            for key in first
        ],
        "MetricDatapoints": [
            {"Timestamp": at, **_metrics(tops, metrics)} for at, tops in sorted(by_period.items())
        ]
        if metrics
        else [],
    }


def _metrics(tops: list[TopKeys], wanted: list[str]) -> dict[str, float]:
    total, events = sum(top.total for top in tops), sum(top.events for top in tops)
    merged: defaultdict[bytes, float] = defaultdict(float)
    for top in tops:
        for key, count in top.counts.items():
            merged[key] += count
    values = {
        "UniqueContributors": float(len(merged)),
        "MaxContributorValue": max(merged.values()),
        "SampleCount": float(events),
        "Sum": total,
        "Minimum": min(min(top.counts.values()) for top in tops),
        "Maximum": max(max(top.counts.values()) for top in tops),
        "Average": total / events if events else 0.0,
    }
    return {name: values[name] for name in wanted}


def _definition(table: Table, rule: InsightRule) -> str:
    index = table.index(rule.index) if rule.index else None
    keys = ContributorKeys(table.schema if index is None else index.schema)
    return orjson.dumps(
        {
            "TableName": table.name,
            **({"IndexName": rule.index} if rule.index else {}),
            "Contribution": {
                "Keys": keys.names(whole=rule.has_sort_key),
                "ValueOf": "ThrottledRequests" if rule.is_throttle else "ConsumedThroughputUnits",
            },
            "AggregateOn": "Sum",
        }
    ).decode()

"""GetMetricData: several metrics and expressions at once, in pages of at most 100,800 points."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from stator.engine.companions.cloudwatch.expressions.lines import Line
from stator.engine.companions.cloudwatch.metric_fields import VALIDATION, check_range
from stator.engine.companions.cloudwatch.metric_queries import (
    MetricDataQuery,
    MetricQueries,
    MetricStat,
    read_queries,
)
from stator.engine.companions.cloudwatch.page_tokens import page_of
from stator.engine.companions.companion import CompanionCall
from stator.engine.companions.metrics.metric_store import MetricStore
from stator.errors import CompanionRefused

_MOST_QUERIES: Final = 500
_MOST_POINTS: Final = 100_800
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")
_PROPERTY: Final = re.compile(r"""PROP\(['"]([^'"]+)['"]\)""")
_TIMEZONE: Final = re.compile(r"([+-])(\d{2})(\d{2})")


def get_metric_data(
    store: MetricStore, call: CompanionCall, request: dict[str, Any]
) -> dict[str, Any]:
    entries = request["MetricDataQueries"]
    if not 0 < len(entries) <= _MOST_QUERIES:
        raise CompanionRefused(
            VALIDATION,
            f"The collection MetricDataQueries must have a size of 1 to {_MOST_QUERIES}.",
        )
    most = request.get("MaxDatapoints", _MOST_POINTS)
    if not 0 < most <= _MOST_POINTS:
        raise CompanionRefused(
            VALIDATION, f"The parameter MaxDatapoints must be from 1 to {_MOST_POINTS}."
        )
    check_range(request["StartTime"], request["EndTime"], VALIDATION)
    zone = _zone(request.get("LabelOptions", {}).get("Timezone", "+0000"))
    queries = read_queries(call.scope, entries, "MetricDataQueries")
    computed = MetricQueries(
        store, call.scope, queries, request["StartTime"], request["EndTime"], call.now
    )
    ascending = request.get("ScanBy") == "TimestampAscending"
    lines = [
        (query, line) for query in queries if query.is_returned for line in computed.lines(query)
    ]
    points = [
        (at, moment, line.points[moment])
        for at, (_, line) in enumerate(lines)
        for moment in (line.points if ascending else reversed(line.points))
    ]
    page, more = page_of(list(range(len(points))), request, most)
    results = [_result(query, line, zone) for query, line in lines]
    for place in page:
        at, moment, value = points[place]
        results[at]["Timestamps"].append(float(moment))
        results[at]["Values"].append(value)
    if more:
        for at, _, _ in points[page[-1] + 1 :]:
            results[at]["StatusCode"] = "PartialData"
    return {"MetricDataResults": results, "Messages": [], **more}


def _result(query: MetricDataQuery, line: Line, zone: timezone) -> dict[str, Any]:
    return {
        "Id": query.id,
        "Label": _PLACEHOLDER.sub(lambda found: _shown(found[1], query, line, zone), line.label),
        "Timestamps": [],
        "Values": [],
        "StatusCode": "Complete",
    }


def _zone(text: str) -> timezone:
    match = _TIMEZONE.fullmatch(text)
    if match is None:
        raise CompanionRefused(
            VALIDATION, f"The Timezone {text!r} of LabelOptions is not like +0130."
        )
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(offset if match[1] == "+" else -offset)


def _shown(placeholder: str, query: MetricDataQuery, line: Line, zone: timezone) -> str:
    """Return the text that replaces a placeholder of a label, such as ``${PROP('Stat')}``.

    A placeholder that CloudWatch does not have is shown as it is.
    """
    points = line.points
    property_name = _PROPERTY.fullmatch(placeholder)
    if property_name is not None and isinstance(query.source, MetricStat):
        return _property(property_name[1], query.source)
    if placeholder == "LABEL":
        return query.source.metric.name if isinstance(query.source, MetricStat) else query.id
    name, is_time = placeholder.removesuffix("_TIME"), placeholder.endswith("_TIME")
    if name not in ("MIN", "MAX", "FIRST", "LAST", "AVG", "SUM"):
        return f"${{{placeholder}}}"
    if not points:
        return "--"
    if name in ("AVG", "SUM"):
        total = sum(points.values())
        return f"{total / len(points) if name == 'AVG' else total:g}"
    times = list(points)
    at = {
        "MIN": min(times, key=points.__getitem__),
        "MAX": max(times, key=points.__getitem__),
        "FIRST": times[0],
        "LAST": times[-1],
    }[name]
    if is_time:
        return datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat()
    return f"{points[at]:g}"


def _property(name: str, stat: MetricStat) -> str:
    dimensions = {f"Dim.{key}": value for key, value in stat.metric.dimensions}
    return {
        "MetricName": stat.metric.name,
        "Namespace": stat.metric.namespace,
        "Period": str(stat.period),
        "Stat": stat.statistic,
        "AccountId": stat.metric.scope.account,
        "Region": stat.metric.scope.region,
        **dimensions,
    }.get(name, "")

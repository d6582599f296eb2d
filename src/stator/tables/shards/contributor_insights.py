"""Hot keys as AWS sees them: the most used and most throttled keys of a table.

Contributor Insights for DynamoDB counts keys for all clients together. It costs extra and is off by
default; where it is on, each table has rules in CloudWatch named
``DynamoDBContributorInsights-PKC-...`` (keys by consumed units) and ``-PKT-...`` (keys by throttled
requests). A process that cannot see the writes of others learns of hot keys here:

    insights = ContributorInsights(boto3.client("dynamodb"), boto3.client("cloudwatch"))
    readings.spread(insights.hot_keys("shop-stator", until=datetime.now(UTC)))

Source: "How it works" of CloudWatch Contributor Insights for DynamoDB, in the Developer Guide. A
rule by consumed units counts three times the write units plus the read units of a minute, so a key
at the limit of a partition has 180,000. How the keys themselves are written is not recorded: text
is expected as it is, with or without double quotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from stator.errors import ConfigurationError
from stator.model.heat.limits import WRITE_WEIGHT

_MINUTE: Final = 60
_MOST_CONTRIBUTORS: Final = 25
_CONSUMED: Final = "PKC"
_THROTTLED: Final = "PKT"


class InsightsDynamoDB(Protocol):
    """The one method of boto3's DynamoDB client that this module calls."""

    def describe_contributor_insights(self, **request: Any) -> dict[str, Any]: ...


class InsightsCloudWatch(Protocol):
    """The one method of boto3's CloudWatch client that this module calls."""

    def get_insight_rule_report(self, **request: Any) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class MeasuredKey:
    """A partition key, how much it uses, and how often it was throttled.

    ``write_units`` is the rate of its busiest minute in write units a second, where a read unit
    counts as a third of one. ``throttled`` counts refused requests.
    """

    key: str
    write_units: float
    throttled: int


class ContributorInsights:
    """Reads the reports of Contributor Insights, with clients of boto3 or anything like them."""

    def __init__(self, dynamodb: InsightsDynamoDB, cloudwatch: InsightsCloudWatch) -> None:
        self._dynamodb = dynamodb
        self._cloudwatch = cloudwatch

    def rules(self, table: str, *, index: str | None = None) -> tuple[str, ...] | None:
        """Return the rules of a table or index, or None if Contributor Insights is off for it."""
        named = {"TableName": table} | ({} if index is None else {"IndexName": index})
        described = self._dynamodb.describe_contributor_insights(**named)
        if described.get("ContributorInsightsStatus") != "ENABLED":
            return None
        return tuple(described.get("ContributorInsightsRuleList", ()))

    def hot_keys(
        self,
        table: str,
        *,
        until: datetime,
        minutes: int = 5,
        index: str | None = None,
        rules: Sequence[str] | None = None,
    ) -> list[MeasuredKey]:
        """Return the keys of the reports of the last ``minutes``, the busiest first.

        There are at most 25 for each rule. Returns an empty list if Contributor Insights is off for
        this table or index. In the mode THROTTLED_KEYS, ``write_units`` is 0. Pass ``rules`` to
        save a call if they are known.
        """
        if minutes < 1:
            raise ConfigurationError(
                f"minutes={minutes} is no span of time", hint="pass a number of 1 or more"
            )
        known = self.rules(table, index=index) if rules is None else rules
        units: dict[str, float] = {}
        throttled: dict[str, int] = {}
        for rule in known or ():
            kind = _kind(rule)
            for key, values in self._contributors(rule, kind, until, minutes):
                if kind == _CONSUMED:
                    units[key] = max(values) / (WRITE_WEIGHT * _MINUTE)
                else:
                    throttled[key] = round(sum(values))
        found = [
            MeasuredKey(key, units.get(key, 0.0), throttled.get(key, 0))
            for key in {*units, *throttled}
        ]
        return sorted(found, key=lambda each: (-each.write_units, -each.throttled, each.key))

    def _contributors(
        self, rule: str, kind: str, until: datetime, minutes: int
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield each key of a rule's report with its values by minute.

        Yields nothing for a rule that counts neither consumption nor throttling by partition key.
        """
        if kind not in (_CONSUMED, _THROTTLED):
            return
        report = self._cloudwatch.get_insight_rule_report(
            RuleName=rule,
            StartTime=until - timedelta(minutes=minutes),
            EndTime=until,
            Period=_MINUTE,
            MaxContributorCount=_MOST_CONTRIBUTORS,
            Metrics=["MaxContributorValue"],
            OrderBy="Maximum",
        )
        for each in report.get("Contributors", ()):
            values = [float(point["ApproximateValue"]) for point in each.get("Datapoints", ())]
            yield _text(each["Keys"]), values or [0.0]


def _kind(rule: str) -> str:
    """Return the kind in the name of a rule.

    It is PKC for DynamoDBContributorInsights-PKC-shop-1700000000000, and else PKT, SKC or SKT.
    """
    _, _, rest = rule.partition("-")
    return rest.partition("-")[0]


def _text(keys: Sequence[str]) -> str:
    """Return a key as one text; the attributes of a key with several are joined by commas."""
    return ",".join(key[1:-1] if len(key) > 1 and key[0] == key[-1] == '"' else key for key in keys)

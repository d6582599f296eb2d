"""Contributor Insights of tables and global indexes: the setting, its status and its rules.

The setting is part of the table's definition: ``insights`` has a dict for each resource that was
ever enabled, under the index's name, or "" for the table. It has the last action (``enabled``), the
``mode``, when it was made (``updated``), until when it takes effect (``until``), the number in the
rules' names (``number``, epoch milliseconds) and whether the quota of rules was exceeded
(``failed``). What follows from it is computed from the time, so no timer is needed.

Statuses, quota and names follow the Developer Guide and public captures of October 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from stator.engine.tables.table import TableDefinition

ALL_KEYS: Final = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED_KEYS: Final = "THROTTLED_KEYS"
# Rules of CloudWatch's Contributor Insights in an account and region.
MOST_RULES: Final = 100
# The three write units of a key at its limit count as much as its nine read units would.
WRITE_WEIGHT: Final = 3.0


@dataclass(frozen=True, slots=True)
class InsightRule:
    """A rule of Contributor Insights: its kind (PKC, PKT, SKC or SKT), and its table or index.

    PK is the partition key, SK the partition and sort key, C counts accesses and T throttles.
    """

    kind: str
    table: str
    index: str
    number: int

    @property
    def name(self) -> str:
        resource = self.table + (f"-{self.index}" if self.index else "")
        return f"DynamoDBContributorInsights-{self.kind}-{resource}-{self.number}"

    @property
    def is_throttle(self) -> bool:
        return self.kind.endswith("T")

    @property
    def has_sort_key(self) -> bool:
        return self.kind.startswith("SK")


def status_of(setting: dict[str, Any] | None, now: float) -> str:
    """Return the status of a setting: ENABLING, ENABLED, DISABLING, DISABLED or FAILED."""
    if setting is None:
        return "DISABLED"
    if now < setting["until"]:
        return "ENABLING" if setting["enabled"] else "DISABLING"
    if setting["failed"]:
        return "FAILED"
    return "ENABLED" if setting["enabled"] else "DISABLED"


def rules_of(definition: TableDefinition, index: str) -> list[InsightRule]:
    """Return the rules of an index, or of the table itself (""); none if insights are disabled."""
    setting = definition.insights.get(index)
    if setting is None or not setting["enabled"] or setting["failed"]:
        return []
    holder = definition.index(index) if index else definition
    if holder is None:
        return []
    kinds = ["PKC", "PKT"] if setting["mode"] == ALL_KEYS else ["PKT"]
    if any(element["KeyType"] == "RANGE" for element in holder.key_schema):
        kinds += [kind.replace("PK", "SK") for kind in kinds]
    return [InsightRule(kind, definition.name, index, setting["number"]) for kind in kinds]


def all_rules(definition: TableDefinition) -> list[InsightRule]:
    """Return the rules of a table and of its global indexes."""
    return [rule for name in definition.insights for rule in rules_of(definition, name)]


def watched_keys(definition: TableDefinition) -> dict[str, bool]:
    """Return the resources whose keys are noted, and whether accesses count, too."""
    return {
        name: setting["mode"] == ALL_KEYS
        for name, setting in definition.insights.items()
        if rules_of(definition, name)
    }

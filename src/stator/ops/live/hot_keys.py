"""The hottest keys of tables and indexes now, from Contributor Insights where it is on.

The rules of a place are asked for once a minute. Keys often identify people: they are shown as
hashes, the same as in the metrics of programs, unless the caller wants them as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from stator.metrics.busy_keys import hashed_key
from stator.model.heat.limits import PARTITION_UNITS, WRITE
from stator.ops.live.table_use import LATE_MINUTES, PlaceUse
from stator.tables.shards.contributor_insights import ContributorInsights

_MOST_KEYS: Final = 3
_RULES_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class HottestKey:
    """A partition key of a table or index, in the busiest of the last minutes.

    ``write_units`` is its rate in write units a second; a read unit counts as a third of one.
    ``limit_share`` is that rate as a share of what one key can use. ``throttled`` counts the
    refused requests of all the minutes looked at.
    """

    table: str
    index: str | None
    key: str
    write_units: float
    limit_share: float
    throttled: int


@dataclass(frozen=True, slots=True)
class InsightsSwitch:
    """A table or index for which Contributor Insights is off, and the command that turns it on."""

    table: str
    index: str | None
    command: str


@dataclass(frozen=True, slots=True)
class KeysNow:
    """The hottest keys, the places without Contributor Insights, and a problem or ''."""

    keys: tuple[HottestKey, ...]
    switches: tuple[InsightsSwitch, ...]
    problem: str = ""


class HotKeys:
    """Reads the hottest keys, again and again.

    Keys are an extra: an endpoint without insights, or a role that may not read them, is a problem
    to show, not an error.
    """

    def __init__(self, dynamodb: Any, cloudwatch: Any, *, show_keys: bool = False) -> None:
        self._insights = ContributorInsights(dynamodb, cloudwatch)
        self._show_keys = show_keys
        self._where = _command_place(dynamodb.meta)
        self._rules: dict[tuple[str, str | None], tuple[str, ...] | None] = {}
        self._read_at = -_RULES_SECONDS

    def look(
        self, places: Iterable[PlaceUse], *, now: datetime | None = None, minutes: int = 5
    ) -> KeysNow:
        """Return the hottest three keys of each place, and the places without insights."""
        from botocore.exceptions import BotoCoreError, ClientError

        if time.monotonic() - self._read_at >= _RULES_SECONDS:
            self._rules.clear()
            self._read_at = time.monotonic()
        until = (now or datetime.now(UTC)).replace(second=0, microsecond=0)
        until -= timedelta(minutes=LATE_MINUTES)
        keys: list[HottestKey] = []
        switches: list[InsightsSwitch] = []
        try:
            for place in places:
                rules = self._rules_of(place)
                if rules is None:
                    switches.append(_switch(place, self._where))
                else:
                    keys += self._keys(place, rules, until, minutes)
        except (BotoCoreError, ClientError) as error:
            return KeysNow((), (), str(error))
        return KeysNow(tuple(keys), tuple(switches))

    def _rules_of(self, place: PlaceUse) -> tuple[str, ...] | None:
        name = (place.table, place.index)
        if name not in self._rules:
            self._rules[name] = self._insights.rules(place.table, index=place.index)
        return self._rules[name]

    def _keys(
        self, place: PlaceUse, rules: tuple[str, ...], until: datetime, minutes: int
    ) -> list[HottestKey]:
        found = self._insights.hot_keys(
            place.table, until=until, minutes=minutes, index=place.index, rules=rules
        )
        found.sort(key=lambda each: (-each.throttled, -each.write_units, each.key))
        return [
            HottestKey(
                place.table,
                place.index,
                each.key if self._show_keys else hashed_key(each.key),
                each.write_units,
                each.write_units / PARTITION_UNITS[WRITE],
                each.throttled,
            )
            for each in found[:_MOST_KEYS]
        ]


def _switch(place: PlaceUse, where: str) -> InsightsSwitch:
    index = "" if place.index is None else f" --index-name {place.index}"
    command = (
        f"aws dynamodb update-contributor-insights --table-name {place.table}{index} "
        f"--contributor-insights-action ENABLE{where}"
    )
    return InsightsSwitch(place.table, place.index, command)


def _command_place(meta: Any) -> str:
    """Return the options with which the AWS CLI goes to the address that a client uses."""
    host = urlsplit(meta.endpoint_url).hostname or ""
    is_aws = host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
    endpoint = "" if is_aws else f" --endpoint-url {meta.endpoint_url}"
    return f"{endpoint} --region {meta.region_name}"

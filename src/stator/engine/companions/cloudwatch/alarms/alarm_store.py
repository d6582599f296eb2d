"""Keeps alarms in memory and in storage, and their history for 30 days in storage."""

from __future__ import annotations

from typing import Any, Final

import orjson

from stator.engine.companions.cloudwatch.alarms.alarm import Alarm
from stator.engine.companions.records import CompanionRecords
from stator.model.scope import Scope

_ALARM: Final = "alarm"
_HISTORY: Final = "alarm-history"
_KEPT_SECONDS: Final = 30 * 86_400


class AlarmStore:
    """The alarms of one engine. The caller holds the engine's lock."""

    def __init__(self, records: CompanionRecords) -> None:
        self._records = records
        self._alarms: dict[tuple[Scope, str], Alarm] = {}
        for data in records.everywhere(_ALARM):
            alarm = Alarm.from_json(data)
            self._alarms[alarm.scope, alarm.name] = alarm
        # Part of the key of a history item, so that those of one moment are kept apart.
        self._count = sum(1 for _ in records.everywhere(_HISTORY))

    def find(self, scope: Scope, name: str) -> Alarm | None:
        return self._alarms.get((scope, name))

    def all(self) -> list[Alarm]:
        """Return every alarm of every account and region."""
        return list(self._alarms.values())

    def of(self, scope: Scope) -> list[Alarm]:
        """Return the alarms of an account and region, by name."""
        return sorted(
            (alarm for (owner, _), alarm in self._alarms.items() if owner == scope),
            key=lambda alarm: alarm.name,
        )

    def save(self, alarm: Alarm) -> None:
        self._alarms[alarm.scope, alarm.name] = alarm
        self._records.put(_ALARM, alarm.scope, alarm.name, alarm.to_json())

    def delete(self, alarm: Alarm) -> None:
        del self._alarms[alarm.scope, alarm.name]
        self._records.delete(_ALARM, alarm.scope, alarm.name)

    # -- history

    def note(
        self, alarm: Alarm, at: float, item_type: str, summary: str, data: dict[str, Any]
    ) -> None:
        """Add an item to the history of an alarm."""
        self._count += 1
        item = {
            "AlarmName": alarm.name,
            "AlarmType": "MetricAlarm",
            "Timestamp": at,
            "HistoryItemType": item_type,
            "HistorySummary": summary,
            "HistoryData": orjson.dumps(data).decode(),
        }
        name = f"{_place(alarm.name)}{int(at * 1000):015}{self._count:09}"
        self._records.put(_HISTORY, alarm.scope, name, {"version": 1, "key": name, "item": item})

    def history(self, scope: Scope, name: str | None) -> list[dict[str, Any]]:
        """Return the history of one alarm, or of all alarms, the oldest entry first."""
        prefix = "" if name is None else _place(name)
        items = [record["item"] for record in self._records.all(_HISTORY, scope, prefix)]
        return sorted(items, key=lambda item: item["Timestamp"])

    def forget(self, now: float) -> None:
        """Remove history that is older than 30 days."""
        for scope in {alarm.scope for alarm in self._alarms.values()}:
            for record in self._records.all(_HISTORY, scope):
                if record["item"]["Timestamp"] < now - _KEPT_SECONDS:
                    self._records.delete(_HISTORY, scope, record["key"])


def _place(name: str) -> str:
    """Return the prefix of the keys of an alarm's history.

    No other alarm's prefix begins with it.
    """
    return f"{name}\0"

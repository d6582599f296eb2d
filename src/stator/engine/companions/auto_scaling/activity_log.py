"""The scaling activities of six weeks, with the texts that AWS gives them.

The texts follow the examples of the Developer Guide ("Managing throughput capacity automatically",
AWS CLI), of DescribeScalingActivities, and public captures.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

from stator.engine.companions.auto_scaling.target_key import TargetKey
from stator.engine.companions.records import CompanionRecords
from stator.model.scope import Scope

_ACTIVITY: Final = "scaling-activity"
_KEPT_SECONDS: Final = 42 * 86_400
IN_PROGRESS: Final = "InProgress"
SUCCESSFUL: Final = "Successful"
FAILED: Final = "Failed"


class ActivityLog:
    """The activities of one engine. The caller holds the engine's lock."""

    def __init__(self, records: CompanionRecords) -> None:
        self._records = records
        # Part of the key of an activity, so that those of one moment are kept in order.
        self._count = sum(1 for _ in records.everywhere(_ACTIVITY))

    def begin(self, key: TargetKey, units: int, cause: str, at: float) -> str:
        """Record that a change of units begins, and return the name of the activity."""
        return self._add(
            key, _description(key, units), cause, at, IN_PROGRESS, _message(key, units)
        )

    def end(self, name: str, key: TargetKey, units: int, at: float, failure: str | None) -> None:
        """Record that a change of units is in force, or why it failed."""
        data = self._records.get(_ACTIVITY, key.scope, name)
        if data is None:  # older than six weeks
            return
        fulfilled = f"{_message(key, units)} Change successfully fulfilled by dynamodb."
        data["activity"] |= {
            "StatusCode": SUCCESSFUL if failure is None else FAILED,
            "StatusMessage": fulfilled if failure is None else _failure(key, units, failure),
            "EndTime": at,
        }
        self._records.put(_ACTIVITY, key.scope, name, data)

    def fail(self, key: TargetKey, units: int, cause: str, reason: str, at: float) -> None:
        """Record a refused change, unless the previous activity was refused in the same way."""
        message = _failure(key, units, reason)
        last = next(iter(self.of(key.scope, key)), None)
        if last is not None and last["StatusMessage"] == message:
            return
        self._add(key, _description(key, units), cause, at, FAILED, message, ended=True)

    def note_bounds(self, key: TargetKey, sets: str, action: str, at: float) -> None:
        """Record that a scheduled action has changed the bounds."""
        cause = f"scheduled action name {action} was triggered"
        message = f"Successfully set {sets}"
        self._add(key, f"Setting {sets}", cause, at, SUCCESSFUL, message, ended=True)

    def of(self, scope: Scope, key: TargetKey | None = None) -> list[dict[str, Any]]:
        """Return the activities of a target, or of an account and region, newest first."""
        found = [
            record["activity"]
            for record in self._records.all(_ACTIVITY, scope)
            if key is None or key.identity.items() <= record["activity"].items()
        ]
        return found[::-1]

    def forget(self, scopes: set[Scope], now: float) -> None:
        """Remove activities that are older than six weeks."""
        for scope in scopes:
            for record in self._records.all(_ACTIVITY, scope):
                if record["activity"]["StartTime"] >= now - _KEPT_SECONDS:
                    break
                self._records.delete(_ACTIVITY, scope, record["key"])

    def _add(
        self,
        key: TargetKey,
        description: str,
        cause: str,
        at: float,
        status: str,
        message: str,
        *,
        ended: bool = False,
    ) -> str:
        self._count += 1
        name = f"{int(at * 1000):015}{self._count:09}"
        activity = {
            "ActivityId": str(uuid4()),
            **key.identity,
            "Description": description,
            "Cause": cause,
            "StartTime": at,
            "StatusCode": status,
            "StatusMessage": message,
            **({"EndTime": at} if ended else {}),
        }
        record = {"version": 1, "key": name, "activity": activity}
        self._records.put(_ACTIVITY, key.scope, name, record)
        return name


def _description(key: TargetKey, units: int) -> str:
    return f"Setting {key.kind} capacity units to {units}."


def _message(key: TargetKey, units: int) -> str:
    return f"Successfully set {key.kind} capacity units to {units}."


def _failure(key: TargetKey, units: int, reason: str) -> str:
    return f"Failed to set {key.kind} capacity units to {units}. Reason: {reason}"

"""An alarm: its definition as PutMetricAlarm gave it, and its state."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from stator.model.scope import Scope

OK: Final = "OK"
ALARM: Final = "ALARM"
INSUFFICIENT: Final = "INSUFFICIENT_DATA"
# The member of an alarm with the actions of each state.
ACTIONS_OF: Final = {
    OK: "OKActions",
    ALARM: "AlarmActions",
    INSUFFICIENT: "InsufficientDataActions",
}
_INITIAL_REASON: Final = "Unchecked: Initial alarm creation"


@dataclass(slots=True)
class Alarm:
    """An alarm. ``definition`` has the members of PutMetricAlarm; times are epoch seconds."""

    account: str
    region: str
    definition: dict[str, Any]
    configured: float
    updated: float
    transitioned: float
    state: str = INSUFFICIENT
    reason: str = _INITIAL_REASON
    reason_data: str | None = None

    @property
    def scope(self) -> Scope:
        return Scope(self.account, self.region)

    @property
    def name(self) -> str:
        return str(self.definition["AlarmName"])

    @property
    def arn(self) -> str:
        return alarm_arn(self.scope, self.name)

    @property
    def has_actions(self) -> bool:
        return bool(self.definition.get("ActionsEnabled", True))

    def actions(self, state: str) -> list[str]:
        """Return the ARNs of the actions that a transition to this state starts."""
        return list(self.definition.get(ACTIONS_OF[state], []))

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, **asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Alarm:
        members = {name: value for name, value in data.items() if name != "version"}
        return cls(**members)

    def described(self) -> dict[str, Any]:
        """Return the alarm as DescribeAlarms shows it."""
        shown: dict[str, Any] = {
            "ActionsEnabled": True,
            "OKActions": [],
            "AlarmActions": [],
            "InsufficientDataActions": [],
            **({} if "Metrics" in self.definition else {"Dimensions": []}),
            **self.definition,
            "AlarmArn": self.arn,
            "AlarmConfigurationUpdatedTimestamp": self.configured,
            "StateValue": self.state,
            "StateReason": self.reason,
            "StateUpdatedTimestamp": self.updated,
            "StateTransitionedTimestamp": self.transitioned,
        }
        if self.reason_data is not None:
            shown["StateReasonData"] = self.reason_data
        return shown


def alarm_arn(scope: Scope, name: str) -> str:
    return f"arn:aws:cloudwatch:{scope.region}:{scope.account}:alarm:{name}"

"""The actions that alarms start: services register here for the ARNs of their actions.

Application Auto Scaling registers for the ARNs of its policies. Actions that nobody has registered
for, such as those of SNS, are only written into the alarm's history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stator.model.scope import Scope


@dataclass(frozen=True, slots=True)
class AlarmEvent:
    """A transition of an alarm, as the action that it starts receives it.

    ``alarm`` is the alarm as DescribeAlarms shows it, ``action_arn`` the action, ``state`` the new
    state, and ``at`` the end of the minute in epoch seconds.
    """

    scope: Scope
    alarm: dict[str, Any]
    action_arn: str
    state: str
    reason: str
    at: float


# Carries an action out. It may raise StatorError: the alarm's history then has the message.
AlarmAction = Callable[[AlarmEvent], None]


@dataclass(frozen=True, slots=True)
class RegisteredAction:
    """An action for all ARNs with a prefix.

    With ``repeats`` it is carried out again at the end of each minute in which the alarm stays in
    its state. AWS does so for actions of auto scaling.
    """

    prefix: str
    run: AlarmAction
    repeats: bool


class AlarmActions:
    """The registered actions of one engine."""

    def __init__(self) -> None:
        self._registered: list[RegisteredAction] = []

    def register(self, arn_prefix: str, run: AlarmAction, *, repeats: bool = False) -> None:
        """Carry out actions whose ARN starts with ``arn_prefix`` by calling ``run``."""
        self._registered.append(RegisteredAction(arn_prefix, run, repeats))

    def find(self, arn: str) -> RegisteredAction | None:
        """Return the action registered for an ARN. Of several, it is the last one."""
        matching = (each for each in reversed(self._registered) if arn.startswith(each.prefix))
        return next(matching, None)

"""The interface of a companion: one service, its operations, and what it does when minutes end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stator.model.companion_service import CompanionService
from stator.model.scope import Scope


@dataclass(frozen=True, slots=True)
class CompanionCall:
    """One request to a companion: who sent it, and when, on the engine's clock."""

    scope: Scope
    now: float


# Gets a request that fits the service's model, and returns the answer. Times are epoch seconds.
CompanionOperation = Callable[[CompanionCall, dict[str, Any]], dict[str, Any]]


class EngineCall(Protocol):
    """Sends a request to DynamoDB, as ``Engine.call`` does."""

    def __call__(
        self, operation: str, request: dict[str, Any], /, *, account: str, region: str
    ) -> dict[str, Any]: ...


class Companion(Protocol):
    """One companion service, such as CloudWatch. The engine's lock is held during every call."""

    @property
    def service(self) -> CompanionService: ...

    @property
    def operations(self) -> Mapping[str, CompanionOperation]: ...

    def end_minute(self, end: int) -> None:
        """Do the work that is due at the end of a minute, such as evaluating alarms.

        Called once for every minute that ends while the engine is open, in order.
        """
        ...

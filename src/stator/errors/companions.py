"""Errors of the services that the engine answers besides DynamoDB, such as CloudWatch."""

from __future__ import annotations

from typing import Any

from stator.errors.base import StatorError


class CompanionRefused(StatorError):
    """A companion service refuses a request.

    ``code`` is the error's name in the service's model, such as InvalidParameterValueException.
    ``status`` is the HTTP status of an error that the model does not have. ``facts`` has further
    members of the reply.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 400,
        facts: dict[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.status = status
        self.facts = facts or {}

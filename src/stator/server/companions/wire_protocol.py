"""The interface of a wire protocol: it reads a request, and writes an answer or an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from stator.errors import CompanionRefused
from stator.model.companion_service import CompanionService
from stator.model.service import ServiceModel, service_model


@dataclass(frozen=True, slots=True)
class WireError:
    """An error as protocols write it.

    ``code`` is the name in the service's model. ``query_code`` is the name that the query protocol
    uses, ``fault`` is Sender or Receiver, and ``facts`` has further members of the reply.
    """

    status: int
    code: str
    query_code: str
    fault: str
    message: str
    facts: dict[str, Any]


class WireProtocol(Protocol):
    def read(self, service: CompanionService, operation: str, body: bytes) -> Any:
        """Return the request, for the check against the model. Raises CompanionRefused."""
        ...

    def write(self, service: CompanionService, operation: str, answer: dict[str, Any]) -> bytes: ...

    def refuse(self, service: CompanionService, error: WireError) -> bytes: ...

    def content_type(self, requested: bytes) -> bytes: ...


def model_of(service: CompanionService) -> ServiceModel:
    return service_model(service.name, service.version)


def wire_error(service: CompanionService, error: CompanionRefused) -> WireError:
    """Return an error with its status and its older name, which the service's model has."""
    shape = model_of(service).shapes.get(error.code, {})
    facts = shape.get("error", {})
    status = facts.get("httpStatusCode", error.status)
    fault = "Sender" if status < 500 else "Receiver"
    code = facts.get("code", error.code)
    return WireError(status, error.code, code, fault, error.message, error.facts)

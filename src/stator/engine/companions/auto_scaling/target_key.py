"""The identity of a scalable target: the reads or the writes of one table or global index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from stator.errors import CompanionRefused
from stator.model.scope import Scope

VALIDATION: Final = "ValidationException"
NAMESPACE: Final = "dynamodb"
Kind = Literal["read", "write"]
_UNITS: Final[dict[str, Kind]] = {"ReadCapacityUnits": "read", "WriteCapacityUnits": "write"}


@dataclass(frozen=True, slots=True)
class TargetKey:
    """A table or global index, and which of its units: "read" or "write"."""

    scope: Scope
    table: str
    index: str | None
    kind: Kind

    @property
    def resource_id(self) -> str:
        table = f"table/{self.table}"
        return table if self.index is None else f"{table}/index/{self.index}"

    @property
    def dimension(self) -> str:
        holder = "table" if self.index is None else "index"
        return f"dynamodb:{holder}:{self.kind.capitalize()}CapacityUnits"

    @property
    def place(self) -> tuple[Scope, str, str]:
        """The table or index, without the kind. The index is "" for a table itself."""
        return self.scope, self.table, self.index or ""

    @property
    def identity(self) -> dict[str, str]:
        """The members that name the target in every answer."""
        return {
            "ServiceNamespace": NAMESPACE,
            "ResourceId": self.resource_id,
            "ScalableDimension": self.dimension,
        }

    @property
    def words(self) -> str:
        """The target as error messages name it."""
        return (
            f"service namespace: {NAMESPACE}, resource ID: {self.resource_id}, "
            f"scalable dimension: {self.dimension}"
        )


def read_key(scope: Scope, request: dict[str, Any]) -> TargetKey:
    """Return the target that a request names.

    Raises CompanionRefused if the request's names cannot be a target.
    """
    resource, dimension = request["ResourceId"], request["ScalableDimension"]
    parts = resource.split("/")
    holder, _, units = dimension.removeprefix(f"{NAMESPACE}:").partition(":")
    kind = _UNITS.get(units)
    fits = (len(parts) == 2 and holder == "table") or (
        len(parts) == 4 and parts[2] == "index" and holder == "index"
    )
    if request["ServiceNamespace"] != NAMESPACE or kind is None or parts[0] != "table" or not fits:
        raise CompanionRefused(
            VALIDATION,
            "Unsupported service namespace, resource type or scalable dimension",
            hint="Stator scales dynamodb tables (table/T) and indexes (table/T/index/I)",
        )
    return TargetKey(scope, parts[1], parts[3] if len(parts) == 4 else None, kind)


def check_place(request: dict[str, Any], member: str = "ResourceId") -> None:
    """Refuse a dimension without a resource.

    ``member`` is the member that must name the resource.
    """
    if "ScalableDimension" in request and not request.get(member):
        raise CompanionRefused(
            VALIDATION, f"The parameter ScalableDimension needs the parameter {member}."
        )


def names_key(request: dict[str, Any], key: TargetKey) -> bool:
    """Whether a request's ResourceId and ScalableDimension, if given, are this target's."""
    names = ("ServiceNamespace", "ResourceId", "ScalableDimension")
    asked = {name: request[name] for name in names if name in request}
    return asked.items() <= key.identity.items()

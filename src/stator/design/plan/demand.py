"""Demand: the workload a plan was made for.

It is stored with the plan, so that an old lock file can be priced with its own workload.

A plan already has rates, volumes and item sizes. The demand adds the rest: how much each pattern
returns, what each write changes, and the writes that only ``writes=`` declares. For every field it
adds the type, the size, the number of distinct values and whether the field may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FieldDemand:
    """The size and the values of one field.

    ``bytes`` includes the field's name, ``value_bytes`` does not.
    """

    name: str
    type: str
    bytes: int
    value_bytes: int
    values: float
    optional: bool = False


@dataclass(frozen=True, slots=True)
class EntityDemand:
    """The demand of one entity.

    ``creates`` is the number of items that ``writes=`` creates each second. Creations by write
    patterns are not included.
    """

    name: str
    fields: tuple[FieldDemand, ...]
    creates: float = 0.0

    def field(self, name: str) -> FieldDemand | None:
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True, slots=True)
class ChangeDemand:
    """One write to one entity.

    ``fields`` include the fields that every update changes, such as versions.
    """

    kind: Literal["create", "update", "delete"]
    entity: str
    fields: tuple[str, ...] = ()
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class PatternDemand:
    """The demand of one pattern.

    A read has the number of items it returns, if declared. A write has its changes.
    """

    name: str
    returns: float | None = None
    changes: tuple[ChangeDemand, ...] = ()


@dataclass(frozen=True, slots=True)
class Demand:
    """The rates and volumes that a plan was made for, which prices and simulations read."""

    entities: tuple[EntityDemand, ...]
    patterns: tuple[PatternDemand, ...]

    def entity(self, name: str) -> EntityDemand | None:
        return next((each for each in self.entities if each.name == name), None)

    def pattern(self, name: str) -> PatternDemand | None:
        return next((each for each in self.patterns if each.name == name), None)

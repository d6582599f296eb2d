"""Advice on identities: where a longer identity would save an index.

A base key holds the identity and nothing else. An order that is always read by its user, but is
identified by ``order_id`` alone, therefore needs an index by user. If ``user_id`` belonged to the
identity, the table itself would serve the list. Only the user can decide that, because every caller
must then know both fields. So the planner keeps the declared identity, and reports what the longer
identity would save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stator.design.declaration import Declaration
from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import info
from stator.design.plan.plan import Plan
from stator.design.planner.planner import Planner, plan
from stator.errors import DesignError
from stator.model.quantities import cents

LEAST_DOLLARS: Final = 5.0
_MOST_ENTITIES: Final = 40
"""Each entity needs a plan of its own, so large designs get no advice."""


@dataclass(frozen=True, slots=True)
class LongerIdentity:
    """Fields that an entity's base key could hold in addition to its identity."""

    entity: str
    fields: tuple[str, ...]
    key: tuple[str, ...]
    """The templates of the table's key: partition and sort."""
    saved_dollars: float

    def __str__(self) -> str:
        names = " and ".join(self.fields)
        return (
            f"if {names} belonged to the identity of {self.entity} (ident()), the design would "
            f"cost ${cents(self.saved_dollars)} a month less, with the key {' / '.join(self.key)}; "
            f"every get, update and delete then needs {names}"
        )


def longer_identities(
    design: Declaration, least_dollars: float = LEAST_DOLLARS
) -> tuple[LongerIdentity, ...]:
    """Return the longer identities that would save at least ``least_dollars`` a month.

    The identity that saves most comes first.
    """
    if len(design.entities) > _MOST_ENTITIES:
        return ()
    now = plan(design)
    found = [each for each in _all(design, now) if each.saved_dollars >= least_dollars]
    return tuple(sorted(found, key=lambda each: (-each.saved_dollars, each.entity)))


def _all(design: Declaration, now: Plan) -> Iterator[LongerIdentity]:
    for entity in design.entities:
        known = info(entity)
        if known.overrides.key is not None or not _has_index(now, known.name):
            continue
        try:
            other = Planner(design, design.lock, frozenset({known.name}), known.name).run()
        except DesignError:
            continue
        planned = other.entity(entity)
        more = tuple(name for name in planned.base_fields if name not in known.identity)
        changing = {
            field
            for change, _ in design.changes()
            if change.entity is entity and change.kind == "update"
            for field in change.fields
        }
        if more and not changing & set(map(source_field, more)):
            key = tuple(str(each.template) for each in planned.keys if each.index is None)
            saved = now.dollars_per_month - other.dollars_per_month
            yield LongerIdentity(known.name, more, key, round(saved, 2))


def _has_index(now: Plan, entity: str) -> bool:
    return any(entity in index.entities for table in now.tables for index in table.indexes)

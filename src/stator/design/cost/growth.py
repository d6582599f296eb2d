"""Whether the declared volumes agree with the declared rates of creations and deletes.

A bill takes the requests from the rates and the storage from the volumes. If a design creates more
items in one month than the volume holds, and nothing removes them, the rate or the volume is wrong.
The storage in the bill is then wrong, too.
"""

from __future__ import annotations

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.declaration import Declaration
from stator.design.entities.entity import Entity, info
from stator.model.quantities import amount


def growth_notes(design: Declaration) -> tuple[str, ...]:
    """Return a sentence for each entity that grows beyond its volume within a month.

    Entities with a ``ttl()`` field are left out, because their items expire.
    """
    found = (_note(design, entity) for entity in design.entities)
    return tuple(note for note in found if note)


def _note(design: Declaration, entity: type[Entity]) -> str:
    if any(field.role == "ttl" for field in info(entity).fields.values()):
        return ""
    rates = {"create": 0.0, "delete": 0.0}
    for change, rate in design.changes():
        if change.entity is entity and change.kind in rates:
            rates[change.kind] += rate
    volume = design.volume(entity)
    if (rates["create"] - rates["delete"]) * MONTH_SECONDS <= volume:
        return ""
    name = info(entity).name
    creators = [
        f"{pattern.name}()"
        for pattern in design.write_patterns
        if any(each.kind == "create" and each.entity is entity for each in pattern.trace())
    ]
    if entity in design.declared_writes:
        creators.append("writes=")
    said = "volumes says" if design.has_volume(entity) else "without volumes, the bill assumes"
    made = amount(round(rates["create"] * MONTH_SECONDS))
    return (
        f"{' and '.join(creators)} creates {made} {name} items a month; {said}"
        f" {amount(round(volume))} (no ttl)"
    )

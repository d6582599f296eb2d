"""Stored names: a field that is stored under another, usually shorter, attribute name.

    class Reading(Entity):
        reading_id: str = ident(stored="i")
        temperature: float = stored("t")

Inside Stator, a field is known by its stored name: in shapes, plans, keys, conditions and items.
``Reading.temperature`` is a reference to the field ``t``. Objects have the attribute
``temperature``, and an alias ``t`` for Stator's own code. Names that a program passes, such as
``db.get(Reading, reading_id="r1")``, are translated where they come in. A stored name need not be
an identifier: ``first_name: str = stored("first-name")`` reads items that another program wrote.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stator.design.entities.markers import stored_name
from stator.errors import DesignError

PYTHON_NAMES = "__python_names__"
"""The class attribute that maps stored names to the names of fields, where they differ."""


class FieldAlias:
    """Gives access to a field by its stored name."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return getattr(owner if instance is None else instance, self.field)

    def __set__(self, instance: Any, value: Any) -> None:
        object.__setattr__(instance, self.field, value)  # also for a frozen object


def add_aliases(cls: type[Any]) -> None:
    """Add an alias to a class for each field that has another stored name."""
    names: dict[str, str] = {}
    declared = {field.name for field in dataclasses.fields(cls)}
    for field in dataclasses.fields(cls):
        stored = stored_name(field)
        if stored == field.name:
            continue
        taken = getattr(cls, stored, None)
        if (
            not stored
            or stored in declared
            or stored in names
            or (taken is not None and not _is_alias(cls, stored))
        ):
            raise DesignError(
                f"{cls.__name__}.{field.name} cannot be stored as {stored!r}: the name is empty or "
                "taken by another field or method",
                hint="use a name that no other field or method of the class has",
            )
        names[stored] = field.name
        setattr(cls, stored, FieldAlias(field.name))
    setattr(cls, PYTHON_NAMES, names)


def _is_alias(cls: type[Any], name: str) -> bool:
    return any(isinstance(base.__dict__.get(name), FieldAlias) for base in cls.__mro__)


def python_names(cls: type[Any]) -> dict[str, str]:
    """Return a map from stored names to field names, for the fields where the two differ."""
    found: dict[str, str] = getattr(cls, PYTHON_NAMES, {})
    return found

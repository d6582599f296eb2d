"""The types that ``db.create`` and the like accept, as type checkers see them.

Type checkers see an adapted model as a class of pydantic or msgspec. The protocols here recognise
such classes by an attribute that only that library's classes have. Neither library is imported.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from stator.design.entities.entity import Entity


class PydanticModel(Protocol):
    """Any pydantic v2 model."""

    model_config: ClassVar[Any]


class MsgspecStruct(Protocol):
    """Any ``msgspec.Struct``, once ``adapt`` has made it an entity."""

    __struct_fields__: ClassVar[tuple[str, ...]]


Storable = Entity | PydanticModel | MsgspecStruct
"""An entity, or an instance of a model that ``adapt`` made an entity."""

"""Checks of parts derived from a field, such as ``month_of(Order.placed_at)``.

The type of a field decides which derived parts it has: a datetime has a year, month, day and hour,
a str has prefixes. An argument that is compared with a derived part must be a text. For a derived
part of a time, it may also be a date or a datetime.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Final

from stator.design.entities.conditions import FieldRef
from stator.design.entities.derived_parts import DerivedPart
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import Coded, Epoch, Maybe, Scalar, type_name
from stator.design.plan import key_text as keys
from stator.errors import DesignError

_ANNOTATIONS: Final[dict[str, tuple[Any, ...]]] = {
    "hour": (str, datetime, str | datetime),
    "prefix": (str,),
}
_OF_DATES: Final = (str, date, datetime, str | date, str | datetime, date | datetime)


def check_part(known: EntityInfo, part: DerivedPart) -> None:
    """Raise DesignError unless the entity has the field, and its type has this derived part."""
    declared = known.fields.get(part.field)
    if declared is None:
        raise DesignError(
            f"{part.shown(f'{known.name}.{part.field}')}: {known.name} has no such field",
            hint=f"fields of {known.name}: {known.listed(known.fields)}",
        )
    encoding = keys.encoding_of(declared.shape)
    if encoding is not None and keys.part_encoding(encoding, part.part) is not None:
        return
    shown = part.shown(repr(FieldRef(known.cls, (part.field,))))
    shape = declared.shape.inner if isinstance(declared.shape, Maybe) else declared.shape
    python = shape.python if isinstance(shape, Scalar) else None
    if isinstance(shape, Coded):
        hint = "compare a range of the field itself, or store the part in a field of its own"
    elif not part.is_time:
        hint = "a prefix needs a field of type str"
    elif python is Epoch:
        hint = "a ttl() field is stored as a number: compare a range of it, or another field"
    elif python is date:
        hint = "a date has a year and a month; for a day, compare the field itself"
    else:
        hint = "a part of a time needs a field of type datetime or date"
    raise DesignError(
        f"{shown}: the field's type is {type_name(declared.shape)}, which has no such part",
        hint=hint,
    )


def check_annotation(part: DerivedPart, shown: str, argument: str, annotation: Any) -> None:
    """Raise DesignError unless an argument of this type can be compared with a derived part.

    ``shown`` is the derived part as text, for the message.
    """
    wanted = _ANNOTATIONS.get(part.part if part.is_time else "prefix", _OF_DATES)
    if annotation is Any or annotation in wanted:
        return
    name = getattr(annotation, "__name__", str(annotation))
    takes = {"hour": "str or datetime"}.get(part.part, "str or date" if part.is_time else "str")
    raise DesignError(
        f"{shown} is compared with {argument!r}, which is declared as {name}",
        hint=f"declare the argument as {takes}",
    )

"""Derived parts: texts computed from a field, which a pattern compares and a key can hold.

    find(Order).where(month_of(Order.placed_at) == month)
    find(Shop).where(prefix_of(Shop.cell, 5) == cell)

A derived part of a time is the start of the time's ISO text, in UTC: ``2026``, ``2026-11``,
``2026-11-05`` or ``2026-11-05T10``. A derived part of a text is a prefix: its first characters. So
every derived part is the start of the stored text. A filter can test it with ``begins_with``, and
so can a key condition if the key holds the whole field.

The planner names a derived part by its text, such as ``month_of(placed_at)``. Paths, facts and
handwritten keys contain these names next to the names of fields. ``DerivedPart`` reads and writes
such names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Final, NoReturn, cast

from stator.design.entities.conditions import Comparison, Condition, FieldRef
from stator.design.entities.symbols import SHOWN_USES, Symbol, Use
from stator.design.entities.wire import WrongValue, encode_time
from stator.errors import DesignError, RequestRefused

TIME_LENGTHS: Final = {"year": 4, "month": 7, "day": 10, "hour": 13}
"""The parts of a time, coarsest first, with the length of their texts."""

_EXAMPLES: Final = {
    "year": "2026",
    "month": "2026-11",
    "day": "2026-11-05",
    "hour": "2026-11-05T10",
}
_PREFIX: Final = "prefix"
_SOME_TIME: Final = "0001-01-01T00:00:00"
_TIME_NAME: Final = re.compile(r"(year|month|day|hour)_of\((.+)\)", re.DOTALL)
_PREFIX_NAME: Final = re.compile(r"prefix_of\((.+), ?([1-9][0-9]*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DerivedPart:
    """A derived part of a field: ``year``, ``month``, ``day``, ``hour``, or ``prefix5``."""

    field: str
    part: str

    def __str__(self) -> str:
        return self.shown(self.field)

    def shown(self, field: str) -> str:
        """Return the part as text, with ``field`` in place of the field's name.

        For ``"Order.placed_at"``, the month is ``"month_of(Order.placed_at)"``.
        """
        if self.is_time:
            return f"{self.part}_of({field})"
        return f"prefix_of({field}, {self.length})"

    @property
    def is_time(self) -> bool:
        return self.part in TIME_LENGTHS

    @property
    def length(self) -> int:
        """The number of characters of the part's text."""
        return length_of(self.part)

    def of(self, value: Any) -> str:
        """Return this part of a field's value."""
        kind = "str" if isinstance(value, str) else "date"
        kind = "datetime" if isinstance(value, datetime) else kind
        return part_of_value(kind, self.part, value)

    def is_finer(self, other: DerivedPart) -> bool:
        """Whether ``other`` is a coarser part of the same field, as the month is for a day."""
        return self.field == other.field and self.length > other.length


def length_of(part: str) -> int:
    return TIME_LENGTHS.get(part) or int(part.removeprefix(_PREFIX))


@lru_cache(maxsize=4096)
def derived_part(name: str) -> DerivedPart | None:
    """Return the derived part that a name such as ``month_of(placed_at)`` stands for.

    Returns None for the name of a field.
    """
    if not name.endswith(")"):
        return None
    found = _TIME_NAME.fullmatch(name)
    if found is not None:
        return DerivedPart(found[2], found[1])
    found = _PREFIX_NAME.fullmatch(name)
    return None if found is None else DerivedPart(found[1], f"{_PREFIX}{found[2]}")


def source_field(name: str) -> str:
    """Return the field that a name stands for or is derived from."""
    part = derived_part(name)
    return name if part is None else part.field


def without_implied(names: frozenset[str]) -> frozenset[str]:
    """Return the names without the derived parts that follow from another name.

    A month follows from its field and from a day:
    ``{"day_of(placed_at)", "month_of(placed_at)"}`` becomes ``{"day_of(placed_at)"}``.
    """
    parts = [part for name in names if (part := derived_part(name)) is not None]
    implied = {
        str(each)
        for each in parts
        if each.field in names or any(other.is_finer(each) for other in parts)
    }
    return names - implied if implied else names


# --- values ---------------------------------------------------------------------------------------


def part_of_value(kind: str, part: str, value: Any) -> str:
    """Return a derived part of a field's value: the month of a datetime is "2026-11".

    ``kind`` is the type of the field: datetime, date or str.
    """
    if kind == "str":
        return str(_checked(value, str)[: length_of(part)])
    if kind == "date":
        return str(_checked(value, date))[: length_of(part)]
    return _moment(_checked(value, datetime))[: length_of(part)]


def part_of_argument(given: str, part: str, value: Any) -> str:
    """Return a coarser part of an argument: the ``month`` of a ``day`` "2026-11-05" is "2026-11".

    ``given`` is the derived part that the argument holds, and ``part`` the coarser one to return.
    Raises RequestRefused if ``value`` is not a possible value of ``given``.
    """
    return argument_text(given, value)[: length_of(part)]


def argument_text(part: str, value: Any) -> str:
    """Return the text of an argument that a pattern compares with a part.

    The argument may be the text itself, or a date or time in the part: as a month,
    ``date(2026, 11, 5)`` is "2026-11". Raises RequestRefused for any other value.
    """
    if part not in TIME_LENGTHS:
        if not isinstance(value, str) or len(value) != length_of(part):
            raise RequestRefused(
                f"{_shown(value)} is not a prefix of {length_of(part)} characters",
                hint="pass the first characters of the field's text, as many as prefix_of() says",
            )
        return value
    if isinstance(value, datetime):
        return _moment(value)[: length_of(part)]
    if isinstance(value, date) and part != "hour":
        return value.isoformat()[: length_of(part)]
    if isinstance(value, str) and _is_time_text(value, length_of(part)):
        return value
    takes = "a datetime" if part == "hour" else "a date or a datetime"
    article = "an" if part == "hour" else "a"
    raise RequestRefused(
        f"{_shown(value)} is not {article} {part}",
        hint=f"pass a text such as {_EXAMPLES[part]!r}, or {takes}",
    )


def _shown(value: Any) -> str:
    """Return a wrong value as text for a message, if it is text, a number or a date."""
    is_plain = isinstance(value, (str, int, float, date))
    return f"{value!r:.60}" if is_plain else f"a value of type {type(value).__name__}"


def example_of(part: str, name: str, annotation: Any, at: int) -> Any:
    """Return an example value for a pattern's argument that is compared with a derived part.

    ``name`` and ``annotation`` describe the argument. For a part of a time, a larger ``at`` gives a
    later day.
    """
    if part not in TIME_LENGTHS:
        length = length_of(part)
        return (name * length)[:length]
    if annotation is datetime:
        return datetime.fromisoformat(f"2026-03-{1 + at:02d}T10:00:00+00:00")
    if annotation is date:
        return date(2026, 3, 1 + at)
    return f"2026-03-{1 + at:02d}T10"[: length_of(part)]


def _is_time_text(text: str, length: int) -> bool:
    if len(text) != length:
        return False
    try:
        return datetime.fromisoformat(text + _SOME_TIME[length:]).isoformat()[:length] == text
    except ValueError:
        return False


def _moment(value: datetime) -> str:
    try:
        return encode_time(value)
    except WrongValue as error:
        raise DesignError(
            f"{error.wanted}, because its parts are computed in UTC: {value!r}",
            hint="give the time a zone, for example datetime.now(UTC)",
        ) from None


def _checked(value: Any, wanted: type) -> Any:
    if not isinstance(value, wanted) or (wanted is date and isinstance(value, datetime)):
        raise DesignError(
            f"a key needs {wanted.__name__} here, not {type(value).__name__}",
            hint="pass a value of the field's type",
        )
    return value


# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PartComparison(Comparison):
    """A comparison of a derived part with one value: ``month_of(Order.placed_at) == "2026-11"``.

    ``operator`` is ``"part"``, which tells it from the comparison of a whole field.
    """

    part: str = ""

    @property
    def derived(self) -> DerivedPart:
        return DerivedPart(self.field.name, self.part)

    def __repr__(self) -> str:
        return f"{self.derived.shown(repr(self.field))} == {self.values[0]!r}"


class PartRef(Symbol):
    """A reference to a derived part of a field, as ``month_of(Order.placed_at)`` returns it."""

    __slots__ = ("field", "part")

    def __init__(self, field: FieldRef, part: str) -> None:
        self.field = field
        self.part = part

    @property
    def owner(self) -> type:
        return self.field.owner

    @property
    def name(self) -> str:
        """The name of the part in paths and facts, such as ``month_of(placed_at)``."""
        return str(DerivedPart(self.field.name, self.part))

    def __repr__(self) -> str:
        return DerivedPart(self.field.name, self.part).shown(repr(self.field))

    __hash__ = Symbol.__hash__

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (FieldRef, PartRef)) or other is None:
            raise DesignError(
                f"{self!r} cannot be compared with {other!r}",
                hint="compare it with an argument of the pattern, or with a constant",
            )
        if isinstance(other, Symbol):
            return PartComparison(self.field, "part", (other,), self.part)
        try:
            text = argument_text(self.part, other)
        except RequestRefused as error:
            raise DesignError(f"{self!r}: {error.message}", hint=error.hint) from None
        return PartComparison(self.field, "part", (text,), self.part)

    def _refuse(self, use: Use) -> NoReturn:
        if use == "comparison":
            raise DesignError(
                f"{self!r} can only be compared with ==",
                hint=f"for a range, compare the field itself: {self.field!r} >= start",
            )
        raise DesignError(
            f"{self!r} is a part of a field and {SHOWN_USES[use]}",
            hint=f"compare it: {self!r} == value",
        )


class TimePart:
    """A part of a time, as type checkers see it: comparable with a text or a date."""

    def __eq__(self, other: str | date) -> Condition: ...  # type: ignore[override, empty-body]


class TextPart:
    """A prefix of a text, as type checkers see it: comparable with a text."""

    def __eq__(self, other: str) -> Condition: ...  # type: ignore[override, empty-body]


def year_of(field: date | None) -> TimePart:
    """Return the year of a time or date, in UTC. Compare it with ``"2026"`` or a date in 2026."""
    return _time_part(field, "year")


def month_of(field: date | None) -> TimePart:
    """Return the month of a time or date, in UTC. Compare it with ``"2026-11"``, or with a date."""
    return _time_part(field, "month")


def day_of(field: datetime | None) -> TimePart:
    """Return the day of a time, in UTC. Compare it with ``"2026-11-05"``, or with a date."""
    return _time_part(field, "day")


def hour_of(field: datetime | None) -> TimePart:
    """Return the hour of a time, in UTC. Compare it with ``"2026-11-05T10"``, or with a time."""
    return _time_part(field, "hour")


def prefix_of(field: str | None, length: int) -> TextPart:
    """Return the first ``length`` characters of a text. Compare them with a text of that length.

    An item whose text is shorter has no prefix of that length, and is not found.
    """
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise DesignError(
            f"prefix_of(): the length is {length!r}", hint="use a number of characters, 1 or more"
        )
    return cast("TextPart", PartRef(_field(field, "prefix_of"), f"{_PREFIX}{length}"))


def _time_part(field: Any, part: str) -> TimePart:
    return cast("TimePart", PartRef(_field(field, f"{part}_of"), part))


def _field(given: Any, word: str) -> FieldRef:
    if not isinstance(given, FieldRef) or len(given.path) != 1:
        raise DesignError(
            f"{word}() takes a field of an entity, not {given!r}",
            hint=f"name the field on its class, for example {word}(Order.placed_at)"
            if word != "prefix_of"
            else "name the field on its class, for example prefix_of(Shop.cell, 5)",
        )
    return given

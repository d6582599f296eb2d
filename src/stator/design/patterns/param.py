"""The symbol that stands for an argument while a pattern is traced."""

from __future__ import annotations

from typing import Any, NoReturn

from stator.design.entities.conditions import FieldRef
from stator.design.entities.derived_parts import PartRef
from stator.design.entities.symbols import SHOWN_USES, Symbol, Use
from stator.errors import DesignError


class Param(Symbol):
    """Stands for an argument while a pattern is traced.

    A pattern may compare a field with the argument. Operations that need the argument's value
    raise DesignError.
    """

    def __init__(self, name: str, annotation: Any) -> None:
        self.name = name
        self.annotation = annotation

    def __repr__(self) -> str:
        return f":{self.name}"

    def __eq__(self, other: object) -> Any:
        return self._compared(other)

    def __ne__(self, other: object) -> Any:
        return self._compared(other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other)

    def __le__(self, other: Any) -> Any:
        return self._compared(other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other)

    __hash__ = Symbol.__hash__

    def _compared(self, other: Any) -> Any:
        """Refuse to compare the argument with anything but a field.

        For a field, the result is NotImplemented, so that Python calls the field's own comparison.
        Raises DesignError for anything else.
        """
        can_compare = isinstance(other, (FieldRef, PartRef))
        return NotImplemented if can_compare else self._refuse("comparison")

    def _refuse(self, use: Use) -> NoReturn:
        problem = (
            f"an access pattern cannot depend on the value of {self.name!r}"
            if use in _CHOICES
            else f"{self.name!r} {SHOWN_USES[use]}: a pattern is planned before it has values"
        )
        raise DesignError(problem, hint=_HINTS.get(use, _COMPUTED))


_CHOICES: frozenset[Use] = frozenset({"truth", "comparison", "members", "hash"})
_COMPUTED = "compute the value before the call, and pass the result as an argument"
_HINTS: dict[Use, str] = {
    "truth": "declare two patterns, one for each case",
    "comparison": "compare a field with it, for example Order.user_id == user_id; for different "
    "queries, declare two patterns",
    "members": "for one of several values, write attr(Order.status).is_in(statuses); for "
    "different queries, declare two patterns",
    "hash": "for one of several values, write attr(Order.status).is_in(statuses)",
    "text": "build the text before the call, and pass it as an argument",
}

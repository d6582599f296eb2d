"""Types of a function's arguments, where the function and the types may be local to another function.

With ``from __future__ import annotations`` an annotation is text, and a class local to a function is in no module where it could be looked
up. It is in the function's closure if its body uses it; else only the frame that declares the function has it, so the names that
annotations use are taken from there at once.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any


class _Annotated:
    """Something for ``typing.get_type_hints`` that has only the annotations wanted."""

    def __init__(self, annotations: dict[str, Any]) -> None:
        self.__annotations__ = annotations


def used_names(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """What names in the annotations stand for in the frame around a function that is local to another."""
    if frame is None or frame.f_locals is frame.f_globals:
        return {}
    texts = " ".join(each for each in function.__annotations__.values() if isinstance(each, str))
    return {
        name: frame.f_locals[name]
        for name in re.findall(r"[^\W\d]\w*", texts)
        if name in frame.f_locals
    }


def argument_types(function: Callable[..., Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """Raises NameError for a name that is nowhere. What the function returns is of no interest, and may be anything."""
    wanted = {name: each for name, each in function.__annotations__.items() if name != "return"}
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    closure = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return typing.get_type_hints(_Annotated(wanted), function.__globals__, {**around, **closure})


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell says so only when it is read
    except ValueError:
        return False
    return True

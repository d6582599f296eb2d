"""Argument types of a pattern function, which may itself be local to another function.

With ``from __future__ import annotations``, an annotation is only text. If it names a class that is
local to a function, no module has that class. The closure has it if the pattern's body uses it;
otherwise only the frame that declares the pattern has it. The decorator therefore copies the names
that the annotations use from that frame.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any


class _Annotated:
    """An object that has selected annotations, for ``typing.get_type_hints``."""

    def __init__(self, annotations: dict[str, Any]) -> None:
        self.__annotations__ = annotations


def used_names(function: Callable[..., Any], frame: FrameType | None) -> dict[str, Any]:
    """Return the local variables of ``frame`` that a function's annotations name, with values.

    ``frame`` is the frame in which the function is defined.
    """
    if frame is None or frame.f_locals is frame.f_globals:
        return {}
    texts = " ".join(each for each in function.__annotations__.values() if isinstance(each, str))
    return {
        name: frame.f_locals[name]
        for name in re.findall(r"[^\W\d]\w*", texts)
        if name in frame.f_locals
    }


def argument_types(function: Callable[..., Any], around: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of a function's arguments by name.

    ``around`` is the result of ``used_names``. The return annotation is not resolved. Raises
    NameError for a name that cannot be found.
    """
    annotations = {
        name: each for name, each in function.__annotations__.items() if name != "return"
    }
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    closure = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return typing.get_type_hints(
        _Annotated(annotations), function.__globals__, {**around, **closure}
    )


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - reading is the only way to tell that a cell is empty
    except ValueError:
        return False
    return True

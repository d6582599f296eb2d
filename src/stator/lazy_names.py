"""Public names that import their module when they are first used.

A public package lists where each of its names lives. Importing the package then loads nothing else,
so that ``import stator`` and the pytest plugin stay quick. Type checkers read the imports that the
package writes under ``TYPE_CHECKING``; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def homes_of(names_in: Mapping[str, str]) -> dict[str, str]:
    """Return the module of each name.

    ``{"stator.clock": "Clock VirtualClock"}`` becomes
    ``{"Clock": "stator.clock", "VirtualClock": "stator.clock"}``.
    """
    return {name: module for module, names in names_in.items() for name in names.split()}


def lazy_names(
    package: str, home_of: Mapping[str, str], neighbours: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names are imported on first use.

    ``home_of`` has the module of each name (see ``homes_of``). If the package lacks a name, and one
    of the packages ``neighbours`` has it, the error names that package.
    """

    def find(name: str) -> Any:
        if name not in home_of:
            # ImportError, because `from package import name` hides the text of an AttributeError.
            for other in neighbours:
                if name in import_module(other).__all__:
                    raise ImportError(f"{name} is in {other}: from {other} import {name}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return find, names

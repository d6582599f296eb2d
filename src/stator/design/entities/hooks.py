"""Hooks: methods of an entity that run before a write and after a load.

    class User(Entity):
        user_id: str = ident()
        email: str

        @before_write
        def normalise(self) -> None:
            self.email = self.email.strip().lower()

A hook is a plain function without I/O. The data layer runs the hooks of the items that it writes
as whole objects, and of every item that it turns into an object. Hooks of base classes run first.
A subclass replaces a hook by defining a method of the same name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from stator.design.entities.entity_versions import UNKNOWN
from stator.errors import DesignError

H = TypeVar("H", bound=Callable[[Any], Any])
Kind = Literal["before_write", "after_load"]
_MARK = "__stator_hooks__"


def before_write(method: H) -> H:
    """Mark a method to run before each write of an object, to complete, check or refuse the write.

    The method may change fields, and raises an error to refuse the write. The method runs on a copy
    of the caller's object. That object receives the changes once the write has succeeded. In a
    frozen entity, the method returns a changed copy.

    The method runs for ``create``, ``put`` and ``upsert``, alone, in transactions and in batches,
    and for bulk loads of an entity. An update has no object, so no hook runs. If a write is planned
    again after a race, the method runs again.
    """
    return _marked(method, "before_write")


def after_load(method: H) -> H:
    """Mark a method to run on every object that is read from a table or a stream.

    The method may change fields. In a frozen entity, the method returns a changed copy.
    """
    return _marked(method, "after_load")


def _marked(method: H, kind: Kind) -> H:
    plain: Any = method
    if not inspect.isfunction(plain) or inspect.iscoroutinefunction(plain):
        raise DesignError(
            f"@{kind} takes a plain method, not {method!r}",
            hint=f"write `@{kind}` above `def name(self) -> None:`",
        )
    setattr(method, _MARK, getattr(method, _MARK, frozenset()) | {kind})
    return method


def hooks_of(cls: type[Any], kind: Kind) -> tuple[str, ...]:
    """Return the names of the methods that are hooks. Hooks of base classes come first."""
    return tuple(
        dict.fromkeys(
            name
            for base in reversed(cls.__mro__)
            for name, member in vars(base).items()
            if kind in getattr(member, _MARK, ())
        )
    )


def run_hooks(made: Any, names: tuple[str, ...]) -> Any:
    """Call the named hooks on an object in turn, and return the resulting object.

    A hook that returns a changed copy replaces the object for the hooks after it. Raises
    DesignError if a hook returns an object of another class.
    """
    for name in names:
        changed = getattr(made, name)()
        if changed is None:
            continue
        if type(changed) is not type(made):
            raise DesignError(
                f"{type(made).__name__}.{name} returned {type(changed).__name__}, "
                f"not {type(made).__name__}",
                hint="change the object itself and return nothing, or return a changed copy",
            )
        unknown = getattr(made, "__dict__", {}).get(UNKNOWN)
        if unknown is not None:
            changed.__dict__.setdefault(UNKNOWN, unknown)
        made = changed
    return made

"""Write patterns: what a program creates, updates and deletes, and how often.

    @write(rps=5)
    def place_order():
        return creates(Order)

A write pattern has no arguments: the planner counts what it changes, and needs no values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from stator.design.entities.conditions import All, Comparison, Conditional, FieldRef, as_condition
from stator.design.entities.derived_parts import PartComparison
from stator.design.entities.entity import info
from stator.design.patterns.daily_window import DailyWindow, daily_window
from stator.design.patterns.param import Param
from stator.design.patterns.pattern import refuse_bare
from stator.design.patterns.quantities import MOST_A_SECOND, check_quantity
from stator.errors import DesignError


@dataclass(frozen=True, slots=True)
class DeclaredWrite:
    """The effect of a write pattern on one entity.

    ``times`` is the number of items that each call writes. An update changes ``fields``. ``before``
    and ``after`` have the declared values of fields before and after the write.
    """

    kind: Literal["create", "update", "delete"]
    entity: type[Any]
    fields: tuple[str, ...] = ()
    times: float = 1.0
    before: tuple[Comparison, ...] = ()
    after: tuple[Comparison, ...] = ()


def creates(
    entity: type[Any], times: float = 1.0, *, after: Conditional | None = None
) -> DeclaredWrite:
    """Declare that a write creates ``times`` items of an entity.

    ``after`` says which values the new items have. It is needed only for values that are not the
    field's default: ``creates(Job, after=Job.status == "urgent")``.
    """
    root = info(entity).root
    return DeclaredWrite(
        "create", root, times=_checked("creates", times), after=_states("creates", root, after)
    )


def deletes(
    entity: type[Any], times: float = 1.0, *, before: Conditional | None = None
) -> DeclaredWrite:
    """Declare that a write deletes ``times`` items of an entity.

    ``before`` says which values the deleted items have:
    ``deletes(Job, before=Job.status == "done")``.
    """
    root = info(entity).root
    return DeclaredWrite(
        "delete", root, times=_checked("deletes", times), before=_states("deletes", root, before)
    )


def updates(
    *fields: Any,
    times: float = 1.0,
    before: Conditional | None = None,
    after: Conditional | None = None,
) -> DeclaredWrite:
    """Declare which fields of one entity a write changes: ``updates(Order.status)``.

    ``times`` is the number of items that a call updates. ``before`` and ``after`` are the values
    before and after the update. They tell the planner how often an item enters or leaves a sparse
    index, such as an index of queued jobs:
    ``updates(Job.status, before=Job.status == "queued", after=Job.status == "running")``.
    """
    owners = {field.owner for field in fields if isinstance(field, FieldRef)}
    if len(owners) != 1 or not all(isinstance(field, FieldRef) for field in fields):
        raise DesignError(
            "updates() takes fields of one entity", hint="write updates(Order.status, Order.total)"
        )
    owner, names = owners.pop(), tuple(field.name for field in fields)
    first, last = _states("updates", owner, before), _states("updates", owner, after)
    for state in last:
        if state.field.name not in names and repr(state) not in map(repr, first):
            raise DesignError(
                f"updates() has after={state!r}, but does not change {state.field!r}",
                hint=f"name {state.field!r} in updates(), or repeat the state in before=",
            )
    return DeclaredWrite("update", owner, names, _checked("updates", times), first, last)


def _checked(function: str, times: float) -> float:
    """Return ``times``. Raises DesignError unless it is a valid number of items."""
    check_quantity(f"times of {function}()", times, most=MOST_A_SECOND)
    return times


def _states(function: str, entity: type[Any], given: Conditional | None) -> tuple[Comparison, ...]:
    """Return the comparisons in ``before=`` or ``after=``, each of a field with a constant.

    ``function`` is the name of the called function, for error messages. Raises DesignError for any
    other condition.
    """
    if given is None:
        return ()
    condition = as_condition(given)
    found = condition.operands if isinstance(condition, All) else (condition,)
    example = 'before=Job.status == "queued"'
    for each in found:
        is_plain = (
            isinstance(each, Comparison)
            and not isinstance(each, PartComparison)
            and each.operator in ("=", "exists", "not_exists")
            and len(each.field.path) == 1
            and not any(isinstance(value, (FieldRef, Param)) for value in each.values)
        )
        if not is_plain:
            raise DesignError(
                f"{function}() takes states that compare fields with constants, not {each!r}",
                hint=f"write {example}; join several with &",
            )
        assert isinstance(each, Comparison)
        if not issubclass(entity, each.field.owner):
            raise DesignError(
                f"{each.field!r} is not a field of {entity.__name__}",
                hint=f"compare fields of {entity.__name__} in {function}()",
            )
    return cast("tuple[Comparison, ...]", tuple(found))


class WritePattern:
    """A declared write. If it declares several changes, they form one transaction.

    ``window`` is the part of the day in which it runs, or None. ``rps`` is the average over the
    day.
    """

    def __init__(
        self, function: Callable[[], Any], rps: float, window: DailyWindow | None = None
    ) -> None:
        self.function = function
        self.rps = rps
        self.window = window
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    @property
    def name(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<write pattern {self.name}>"

    @property
    def busy_rps(self) -> float:
        """How often the write runs each second while it runs."""
        return self.rps if self.window is None else self.rps / self.window.share

    @property
    def where(self) -> str:
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def trace(self) -> tuple[DeclaredWrite, ...]:
        try:
            declared = self.function()
        except DesignError as error:
            raise DesignError(
                f"{self.where}: {self.name}: {error.message}", hint=error.hint
            ) from None
        changes = (declared,) if isinstance(declared, DeclaredWrite) else tuple(declared or ())
        if not changes or not all(isinstance(change, DeclaredWrite) for change in changes):
            raise DesignError(
                f"{self.where}: {self.name} does not declare what it writes",
                hint="return creates(Order), updates(Order.status), deletes(Order), "
                "or a tuple of these",
            )
        return changes


def write(
    bare: None = None, /, *, rps: float = 1.0, between: tuple[str, str] | None = None
) -> Callable[[Callable[[], Any]], WritePattern]:
    """Declare a write pattern that runs ``rps`` times a second.

    ``between`` is the part of the day in which it does, such as ``("02:00", "03:00")`` for a
    nightly job; costs count the average of a day.

    The decorated function returns what it writes: ``creates(Order)``, ``updates(Order.status)``,
    ``deletes(Order)``, or a tuple of these.
    """
    refuse_bare("write", bare)
    check_quantity("rps", rps, most=MOST_A_SECOND)
    window = daily_window(between)
    average = rps if window is None else rps * window.share
    return lambda function: WritePattern(function, average, window)

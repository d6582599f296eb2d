"""Access patterns: typed functions that declare a program's reads.

    @read(rps=120, returns=25)
    def orders_of_user(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)

Called with values, a pattern returns a ``Query`` to be run. The planner traces it instead: it calls
the function once with a ``Param`` in place of each argument. The returned query shows which fields
are compared with which parameters, in what order, with what limit. A pattern must therefore build
the same query for all arguments; branching on an argument is refused. The patterns that write are
in ``write_pattern``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

from stator.design.entities.conditions import FieldRef
from stator.design.patterns.annotations import argument_types, used_names
from stator.design.patterns.ask import Ask, check_limit
from stator.design.patterns.condition_contents import compared_values
from stator.design.patterns.daily_window import DailyWindow, daily_window
from stator.design.patterns.hidden_branches import hidden_branches
from stator.design.patterns.param import Param
from stator.design.patterns.quantities import MOST_A_SECOND, check_quantity
from stator.design.patterns.query import PlanSource, Question
from stator.errors import DesignError, RequestRefused

P = ParamSpec("P")
Q = TypeVar("Q", covariant=True)


@dataclass(frozen=True, slots=True)
class Traffic:
    """How often a read runs, how much it returns, and how fresh and fast it must be."""

    rps: float = 1.0
    returns: float | None = None
    consistent: bool = False
    within_ms: float | None = None
    allow_scan: bool = False
    paged: bool = False
    shards: Literal["adaptive"] | None = None
    window: DailyWindow | None = None
    """When the read runs, if not all day. ``rps`` is the average over the day even so."""

    @property
    def busy_rps(self) -> float:
        """How often the read runs each second while it runs."""
        return self.rps if self.window is None else self.rps / self.window.share


class Pattern(Generic[P, Q]):
    """A declared read. Calling it returns a query.

    ``trace`` returns the same query with parameters in place of the arguments, for the planner.
    """

    def __init__(
        self, function: Callable[P, Q], traffic: Traffic, around: Mapping[str, Any] | None = None
    ) -> None:
        """Create a pattern.

        ``around`` has the local variables of the enclosing function that the annotations of
        ``function`` name, with their values.
        """
        self.function = function
        self.traffic = traffic
        self._around = around or {}
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)
        self._all_positional = all(
            each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            for each in self._signature.parameters.values()
        )
        self._traced: Ask | None = None
        self._kind: type[Question] = Question
        self.design: PlanSource | None = None
        """The design that the pattern was last put into."""

    def __copy__(self) -> Pattern[P, Q]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Pattern[P, Q]:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RequestRefused(
            f"the pattern {self.name}, its queries and its design cannot be pickled",
            hint="import the design in the other process, and send it the arguments of the pattern",
        )

    @property
    def name(self) -> str:
        return self.__name__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Q:
        """Return the query for these arguments.

        Once the pattern has been traced, its function does not run again, because the query has the
        same form for all arguments.
        """
        arguments = self._arguments(args, kwargs)
        if self._traced is not None:
            limit = self._traced.limit
            if isinstance(limit, Param):
                check_limit(arguments[limit.name])
            return cast("Q", self._kind(self._traced, self, arguments))
        query = self.function(*args, **kwargs)
        if isinstance(query, Question):
            query.pattern = self
            query.arguments = arguments
        return query

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if self._all_positional and not kwargs and len(args) == len(self._names):
            return dict(zip(self._names, args))
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"pattern {self.name}: {error}; call it as {self.name}({', '.join(self._names)})"
            ) from None
        bound.apply_defaults()
        return bound.arguments

    def __repr__(self) -> str:
        return f"<access pattern {self.name}>"

    @property
    def parameters(self) -> dict[str, Any]:
        """The annotations of the parameters by name."""
        try:
            hints = argument_types(self.function, self._around)
        except NameError as error:
            raise DesignError(
                f"{self.where}: the type of an argument of {self.name} cannot be resolved: {error}",
                hint="define the type above the pattern, ideally at the top level of its module",
            ) from None
        return {name: hints.get(name, Any) for name in self._names}

    @property
    def where(self) -> str:
        """The file and line of the pattern, for messages."""
        code = self.function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def trace(self) -> Ask:
        if self._traced is None:
            self._traced = self._trace()
        return self._traced

    def _refuse_hidden_branches(self) -> None:
        """Raise DesignError for a branch on an argument that symbols cannot notice."""
        code = getattr(self.function, "__code__", None)
        if code is None:
            return
        for found in hidden_branches(code, self.parameters):
            file = self.where.rpartition(":")[0]
            raise DesignError(
                f"{file}:{found.line}: {self.name} depends on {found.what}; a pattern is planned "
                "once, and makes the same query for all arguments",
                hint="write one pattern for each case, and choose between them in the caller",
            )

    def _trace(self) -> Ask:
        self._refuse_hidden_branches()
        arguments = {name: Param(name, hint) for name, hint in self.parameters.items()}
        try:
            query = cast("Callable[..., Any]", self.function)(**arguments)
        except DesignError as error:
            raise DesignError(
                f"{self.where}: {self.name}: {error.message}", hint=error.hint
            ) from None
        except Exception as error:
            raise DesignError(
                f"{self.where}: {self.name} does more with its arguments than compare them: "
                f"{error}",
                hint="compare fields with the arguments only; compute values before the call",
            ) from error
        if not isinstance(query, Question):
            raise DesignError(
                f"{self.where}: {self.name} returns {type(query).__name__}, not a query",
                hint="return find(...).where(...) or together(...).where(...)",
            )
        self._kind = type(query)
        self._refuse_unused(query.ask, arguments)
        self._refuse_changing(query.ask, arguments)
        return query.ask

    def _refuse_changing(self, ask: Ask, arguments: Mapping[str, Param]) -> None:
        """Raise DesignError for a constant that changes from call to call, such as today's date.

        The planner calls the pattern's function only once. The plan would keep the value of that
        moment.
        """
        again = cast("Callable[..., Any]", self.function)(**arguments)
        names = set(self.function.__code__.co_names)
        for first, second in zip(_constants(ask), _constants(again.ask)):
            is_today = type(first) is date and bool(names & {"today", "now"})
            if is_today or not (first is second or first == second):
                raise DesignError(
                    f"{self.where}: {self.name} compares a field with {first!r}, which changes "
                    f"from call to call; the pattern runs only once, when it is planned",
                    hint="make it an argument, and pass the value with each call: "
                    f"def {self.name}(..., since: {type(first).__name__})",
                )

    def _refuse_unused(self, ask: Ask, arguments: Mapping[str, Param]) -> None:
        """Raise DesignError for an argument that the query does not depend on."""
        used = {
            value.name
            for condition in (*ask.tests, *ask.filters)
            for value in compared_values(condition)
            if isinstance(value, Param)
        }
        used |= {ask.limit.name} if isinstance(ask.limit, Param) else set()
        for name in arguments:
            if name not in used:
                raise DesignError(
                    f"{self.where}: {self.name} does not use its argument {name!r}",
                    hint=f"compare a field with {name}, or remove the argument",
                )


def _constants(ask: Ask) -> list[Any]:
    """Return the constants of a query, in the order of its conditions."""
    values = [
        value for condition in (*ask.tests, *ask.filters) for value in compared_values(condition)
    ]
    return [value for value in (*values, ask.limit) if not isinstance(value, (Param, FieldRef))]


def refuse_bare(decorator: str, given: Any) -> None:
    """Raise DesignError for a decorator without parentheses. ``given`` is what it decorates."""
    if given is not None:
        name = getattr(given, "__name__", repr(given))
        code = getattr(given, "__code__", None)
        where = "" if code is None else f"{code.co_filename}:{code.co_firstlineno}: "
        raise DesignError(
            f"{where}@{decorator} above {name} has no parentheses",
            hint=f"write @{decorator}(), or say how often it runs: @{decorator}(rps=10)",
        )


def read(
    bare: None = None,
    /,
    *,
    rps: float = 1.0,
    returns: float | None = None,
    consistent: bool = False,
    within: float | None = None,
    allow_scan: bool = False,
    paged: bool = False,
    shards: Literal["adaptive"] | None = None,
    between: tuple[str, str] | None = None,
) -> Callable[[Callable[P, Q]], Pattern[P, Q]]:
    """Declare a read pattern. The decorated function returns a query: ``find(...).where(...)``.

    ``rps`` is how often the read runs each second. ``returns`` is how many items it usually
    returns. ``consistent`` asks for strongly consistent reads. With ``within``, the plan warns if
    the read is expected to take longer than that many milliseconds. ``allow_scan`` permits a Scan
    of the whole table. ``paged`` says that callers read page by page, so that a key must hold the
    order. Without ``paged``, the client may sort a small result in memory. With
    ``shards="adaptive"``, a key value of the index that the pattern reads gets more shards while
    its writes are too many for one partition. ``between`` is the part of the day in which the read
    runs ``rps`` times a second, such as ``("02:00", "03:00")``; costs count the average of a day.
    """
    refuse_bare("read", bare)
    if shards not in (None, "adaptive"):
        raise DesignError(
            f"shards={shards!r}: the planner chooses the number of shards",
            hint='leave it out, or pass shards="adaptive", so that hot key values get more',
        )
    if shards is not None and consistent:
        raise DesignError(
            'shards="adaptive" is for global indexes, which are never strongly consistent',
            hint="leave out consistent=True or shards=",
        )
    check_quantity("rps", rps, most=MOST_A_SECOND)
    _check_positive("returns", returns, "items", "a rough estimate is enough, for example 25")
    _check_positive("within", within, "milliseconds", "for example within=20")
    window = daily_window(between)
    average = rps if window is None else rps * window.share
    traffic = Traffic(average, returns, consistent, within, allow_scan, paged, shards, window)
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    return lambda function: Pattern(function, traffic, used_names(function, caller))


def _check_positive(name: str, number: float | None, unit: str, hint: str) -> None:
    if number is None:
        return
    if isinstance(number, (int, float)) and number <= 0:
        raise DesignError(f"{name}={number} must be a positive number of {unit}", hint=hint)
    check_quantity(name, number)

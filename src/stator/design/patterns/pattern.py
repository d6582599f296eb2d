"""Access patterns: typed functions that declare a program's queries.

    @read(rps=120, returns=25)
    def orders_of_user(user_id: str) -> Query[Order]:
        return find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)

Called with values, a pattern returns a ``Query`` to be run. The planner traces it instead: it calls
the function once with a ``Param`` in place of each argument. The returned query shows which fields
are compared with which parameters, in what order, with what limit. A pattern must therefore build
the same query for all arguments; branching on an argument is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from stator.design.entities.conditions import (
    All,
    Comparison,
    Condition,
    Conditional,
    FieldRef,
    as_condition,
)
from stator.design.entities.derived_parts import PartComparison, PartRef
from stator.design.entities.entity import info
from stator.design.entities.shapes import CLASS_TAG, Choice, Maybe, Scalar
from stator.design.entities.symbols import SHOWN_USES, Symbol, Use
from stator.design.patterns.annotations import argument_types, used_names
from stator.design.patterns.compared_parts import check_annotation, check_part
from stator.design.patterns.compared_values import check_compared
from stator.design.patterns.explanation import Explanation, explain_call
from stator.design.patterns.hidden_branches import hidden_branches
from stator.design.patterns.quantities import MOST_A_SECOND, check_quantity
from stator.design.plan.plan import Plan
from stator.errors import DesignError

P = ParamSpec("P")
Q = TypeVar("Q", covariant=True)
E = TypeVar("E")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
F = TypeVar("F", covariant=True)


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


@dataclass(frozen=True, slots=True)
class Ask:
    """The contents of a query: its entities, conditions, order and limit.

    Each method returns a new ``Ask``.
    """

    targets: tuple[type[Any], ...]
    tests: tuple[Comparison, ...] = ()
    filters: tuple[Condition, ...] = ()
    order: FieldRef | None = None
    then: tuple[FieldRef, ...] = ()
    """The fields that order items with the same value of ``order``."""
    descending: bool = False
    against: tuple[str, ...] = ()
    """The names of fields in ``then`` that run in the other direction than ``order``."""
    by_time: bool = False
    """The query orders by time, and does not name the field that holds the time."""
    limit: int | Param | None = None
    is_count: bool = False
    only: tuple[str, ...] = ()
    """The fields to return, as a tuple; empty for whole entities."""

    def where(self, conditions: tuple[Any, ...]) -> Ask:
        """Add conditions.

        Comparisons of plain fields can be served by keys. All other conditions become filters.
        """
        tests, filters = list(self.tests), list(self.filters)
        for given in conditions:
            condition = as_condition(given)
            for part in condition.operands if isinstance(condition, All) else (condition,):
                self._check(part)
                (tests if isinstance(part, Comparison) and _indexable(part) else filters).append(
                    cast("Any", part)
                )
        return replace(self, tests=tuple(tests), filters=tuple(filters))

    def filtered(self, conditions: tuple[Any, ...]) -> Ask:
        for condition in conditions:
            self._check(as_condition(condition))
        return replace(self, filters=(*self.filters, *map(as_condition, conditions)))

    def ordered(self, fields: tuple[Any, ...], descending: bool) -> Ask:
        """Order the items by these fields in turn, or by a time field if ``fields`` is empty."""
        if self.order is not None or self.by_time:
            before = () if self.order is None else (self.order, *self.then)
            raise DesignError(
                f"the order is given twice: {self._shown_order(before, self.descending)} and "
                f"{self._shown_order(fields, descending)}",
                hint="order a query once; for several fields, write "
                "order_by(Product.rating, Product.name)",
            )
        given, fields = (
            fields,
            tuple(each.field if isinstance(each, DescendingField) else each for each in fields),
        )
        for field in fields:
            if not isinstance(field, FieldRef):
                raise DesignError(
                    f"{field!r} is not a field",
                    hint="order by a field of the entity, for example Order.placed_at",
                )
        if len({field.path for field in fields}) < len(fields):
            raise DesignError(
                f"the order names a field twice: {self._shown_order(fields, descending)}",
                hint="name each field once",
            )
        first, then = (fields[0], fields[1:]) if fields else (None, ())
        downward = [isinstance(each, DescendingField) is not descending for each in given]
        return replace(
            self,
            order=first,
            then=then,
            descending=downward[0] if downward else descending,
            against=tuple(
                field.name for field, down in zip(fields, downward) if down is not downward[0]
            ),
            by_time=not fields,
        )

    @staticmethod
    def _shown_order(fields: tuple[Any, ...], descending: bool) -> str:
        by = ", ".join(map(repr, fields)) or "time"
        return f"by {by}, {'descending' if descending else 'ascending'}"

    def limited(self, count: int | Param) -> Ask:
        if self.limit is not None:
            raise DesignError(
                f"the limit is given twice: {self.limit!r} and {count!r}",
                hint="limit a query once",
            )
        check_limit(count)
        return replace(self, limit=count)

    def projected(self, fields: tuple[Any, ...]) -> Ask:
        """Return only these fields of each item, not whole items."""
        for field in fields:
            if not isinstance(field, FieldRef) or len(field.path) != 1:
                raise DesignError(
                    f"{field!r} is not a field",
                    hint="name whole fields of the entity: only(Order.order_id, Order.total)",
                )
            if not issubclass(self.targets[0], field.owner):
                name = self.targets[0].__name__
                raise DesignError(
                    f"{field!r} is not a field of {name}", hint=f"name fields of {name}"
                )
        names = tuple(field.name for field in fields)
        if not names or len(set(names)) != len(names):
            raise DesignError(
                "only() takes one or more different fields",
                hint="for example only(Order.order_id, Order.total)",
            )
        return replace(self, only=names)

    def hides(self, target: type[Any]) -> str | None:
        """Return the ``soft_delete()`` field of ``target`` if the query leaves deleted items out.

        Returns None if ``target`` has no such field. Also returns None if the query has a condition
        on the field, because such a query sees deleted items.
        """
        found = (each.name for each in info(target).fields.values() if each.role == "soft_delete")
        name = next(found, None)
        is_named = any(
            reference.name == name and issubclass(target, reference.owner)
            for condition in (*self.tests, *self.filters)
            for reference in references(condition)
        )
        return None if is_named else name

    def _check(self, condition: Condition) -> None:
        for reference in references(condition):
            if not any(issubclass(target, reference.owner) for target in self.targets):
                names = " and ".join(target.__name__ for target in self.targets)
                raise DesignError(
                    f"{reference!r} is not a field of {names}",
                    hint=f"compare fields of {names}",
                )
            _refuse_path_into_plain(reference)
        for comparison in comparisons_in(condition):
            check_compared(info(comparison.field.owner), comparison)
        for test in parts_in(condition):
            check_part(info(test.field.owner), test.derived)
            [value] = test.values
            if isinstance(value, Param):
                shown = test.derived.shown(repr(test.field))
                check_annotation(test.derived, shown, value.name, value.annotation)


def _refuse_path_into_plain(reference: FieldRef) -> None:
    """Raise DesignError for a path into a value that has no members, such as a time."""
    declared = info(reference.owner).fields.get(reference.name)
    shape = declared.shape if declared is not None else None
    shape = shape.inner if isinstance(shape, Maybe) else shape
    if len(reference.path) == 1 or not isinstance(shape, (Scalar, Choice)):
        return
    whole = FieldRef(reference.owner, reference.path[:1])
    is_time = isinstance(shape, Scalar) and shape.python in (datetime, date)
    raise DesignError(
        f"{reference!r}: {whole!r} is one value and has no members",
        hint=f"for a part of a time, write month_of({whole!r}) == month, or compare a range: "
        f"{whole!r} >= start, {whole!r} < end"
        if is_time
        else f"compare {whole!r} itself",
    )


def _named_field(by: Any) -> tuple[Any, ...]:
    return () if by is None else (by,)


def check_limit(count: Any) -> None:
    """Raise DesignError unless the limit is a positive int or an int argument of the pattern."""
    if isinstance(count, Param):
        return
    if isinstance(count, bool) or not isinstance(count, int):
        raise DesignError(
            f"a limit is a whole number, not {type(count).__name__}",
            hint="use a limit of 1 or more",
        )
    if count < 1:
        raise DesignError(f"a limit of {count} returns nothing", hint="use a limit of 1 or more")


_INDEXABLE = frozenset(
    {"=", "<", "<=", ">", ">=", "between", "begins_with", "in", "in_list", "not_exists", "part"}
)


def _indexable(test: Comparison) -> bool:
    return test.operator in _INDEXABLE and len(test.field.path) == 1


def references(condition: Any) -> list[FieldRef]:
    """Return every field that a condition reads."""
    if isinstance(condition, Comparison):
        return [
            condition.field,
            *(value for value in condition.values if isinstance(value, FieldRef)),
        ]
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [reference for operand in operands for reference in references(operand)]


def parts_in(condition: Any) -> list[PartComparison]:
    """Return every comparison of a derived part in a condition."""
    if isinstance(condition, Comparison):
        return [condition] if isinstance(condition, PartComparison) else []
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [test for operand in operands for test in parts_in(operand)]


def comparisons_in(condition: Any) -> list[Comparison]:
    """Return every comparison in a condition."""
    if isinstance(condition, Comparison):
        return [condition]
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [test for operand in operands for test in comparisons_in(operand)]


def compared_values(condition: Any) -> list[Any]:
    """Return every value that a condition compares a field with."""
    if isinstance(condition, Comparison):
        return list(condition.values)
    operands = getattr(condition, "operands", None) or (condition.operand,)
    return [value for operand in operands for value in compared_values(operand)]


@dataclass(frozen=True, slots=True)
class DescendingField:
    """A field to sort in descending order: the result of ``descending(Task.rank)``."""

    field: FieldRef

    def __repr__(self) -> str:
        return f"descending({self.field!r})"


def descending(field: Any) -> DescendingField:
    """Sort by this field in descending order: ``order_by(descending(Task.rank), Task.title)``."""
    if not isinstance(field, FieldRef):
        raise DesignError(
            f"{field!r} is not a field",
            hint="name a field of the entity, for example descending(Task.rank)",
        )
    return DescendingField(field)


class PlanSource(Protocol):
    """An object with a ``plan``: in practice a ``Design``, which this module cannot import."""

    def plan(self) -> Plan: ...


class Question:
    """A read to run: its query, the pattern it belongs to, and the arguments of the call.

    ``arguments`` maps names to values, including defaults. ``ask`` has the contents of the query.
    After the pattern has been traced, ``ask`` has a ``Param`` in place of each argument.
    """

    __slots__ = ("arguments", "ask", "pattern")

    def __init__(
        self,
        ask: Ask,
        pattern: Pattern[..., Any] | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> None:
        self.ask = ask
        self.pattern = pattern
        self.arguments: dict[str, Any] = {} if arguments is None else arguments

    def __repr__(self) -> str:
        """Return the pattern with its arguments, or the conditions if there is no pattern."""
        if self.pattern is not None:
            given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
            return f"<{type(self).__name__} {self.pattern.name}({given})>"
        entities = ", ".join(target.__name__ for target in self.ask.targets)
        tests = ", ".join(map(repr, (*self.ask.tests, *self.ask.filters)))
        return f"<{type(self).__name__} of {entities}{f' where {tests}' if tests else ''}>"

    def _asked(self, ask: Ask) -> Ask:
        """Return ``ask``, or raise DesignError if a pattern returned this query.

        A caller cannot change the query of a pattern, because that query has been planned.
        """
        if self.pattern is not None:
            raise DesignError(
                f"the caller of {self.pattern.name} cannot change its query",
                hint="pass a limit to db.fetch(..., limit=5) or db.page(..., limit=5); "
                "for anything else, write another pattern",
            )
        return ask

    def explain(self, design: PlanSource | None = None) -> Explanation:
        """Explain this call: its exact requests, the index, the cost and the reasons.

        ``design`` is the design whose plan is used. By default, it is the last design that was
        created with the pattern.
        """
        pattern = self.pattern
        if pattern is None:
            raise DesignError(
                "only the query of an access pattern can be explained",
                hint="put it into a function decorated with @read, and call that function",
            )
        design = design or pattern.design
        if design is None:
            raise DesignError(
                f"{pattern.name} is in no design yet",
                hint="put it into a Design, or pass one: explain(design)",
            )
        plan = design.plan()
        only = self.ask.only
        if only:
            hidden = (self.ask.hides(target) for target in self.ask.targets)
            only = (*only, *(name for name in hidden if name is not None and name not in only))
        return explain_call(plan, pattern.name, self.arguments, only)


class Selection(Question, Generic[F]):
    """A query that returns items of type ``F``, unlike a ``Count``, which returns a number."""

    __slots__ = ()


class Query(Selection[E], Generic[E]):
    """A query for items of one entity. Each method returns a new query."""

    __slots__ = ()

    def where(self, *conditions: Conditional) -> Query[E]:
        """Add conditions that must all hold. Keys can serve comparisons of plain fields."""
        return Query(self._asked(self.ask.where(conditions)))

    def filter(self, *conditions: Conditional) -> Query[E]:
        """Add conditions that are checked after reading.

        Reads of discarded items are still billed.
        """
        return Query(self._asked(self.ask.filtered(conditions)))

    def newest_first(self, by: Any = None) -> Query[E]:
        """Order by a field, the greatest value first.

        ``by`` may be left out if the query has one range in ``where``: the order is then by the
        field of that range. Otherwise the default is the ``created()`` field, or else the only
        datetime field.
        """
        return Query(self._asked(self.ask.ordered(_named_field(by), descending=True)))

    def oldest_first(self, by: Any = None) -> Query[E]:
        """Order by a field, the least value first.

        ``by`` may be left out if the query has one range in ``where``: the order is then by the
        field of that range. Otherwise the default is the ``created()`` field, or else the only
        datetime field.
        """
        return Query(self._asked(self.ask.ordered(_named_field(by), descending=False)))

    def order_by(self, field: Any, *then: Any, descending: bool = False) -> Query[E]:
        """Order by a field, and items with the same value by the fields in ``then``.

        Each field ascends, unless it is given as ``descending(Task.rank)``. The argument
        ``descending`` reverses the whole order.
        """
        return Query(self._asked(self.ask.ordered((field, *then), descending)))

    def limit(self, count: int) -> Query[E]:
        """Return at most ``count`` items."""
        return Query(self._asked(self.ask.limited(count)))

    @overload
    def only(self, a: A, /) -> Only[tuple[A]]: ...
    @overload
    def only(self, a: A, b: B, /) -> Only[tuple[A, B]]: ...
    @overload
    def only(self, a: A, b: B, c: C, /) -> Only[tuple[A, B, C]]: ...
    @overload
    def only(self, a: A, b: B, c: C, d: D, /) -> Only[tuple[A, B, C, D]]: ...
    @overload
    def only(self, a: Any, b: Any, c: Any, d: Any, e: Any, /, *more: Any) -> Only[Any]: ...
    def only(self, *fields: Any) -> Only[Any]:
        """Return only these fields of each item, as a tuple: ``only(Order.order_id, Order.total)``.

        Inside a pattern, ``only`` lets the planner choose an index that holds just these fields,
        which is cheaper. A caller may also apply ``only`` to the query that a pattern returns. The
        plan then stays the same: replies become smaller, but reads cost the same.
        """
        return Only(self.ask.projected(fields), self.pattern, self.arguments)

    def count(self) -> Count[E]:
        """Count the items instead of returning them."""
        return Count(self._asked(replace(self.ask, is_count=True)))

    if not TYPE_CHECKING:  # for a type checker, these methods do not exist

        def __getattr__(self, name: str) -> Any:
            if name in _MISSING:
                why, hint = _MISSING[name]
                raise DesignError(f".{name}() does not exist: {why}", hint=hint)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


_NO_SUMS = "DynamoDB does not compute over items, it only reads them"
_SUM_HINT = (
    "keep the number up to date with each write: a counter (stator.patterns.counter), or a view "
    "(stator.pipeline) for a number per group; see the guides on patterns and views"
)
_JOIN_HINT = "read several entities of one owner with together(User, Order), or in two patterns"
_MISSING: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("sum", "avg", "average", "min", "max"), (_NO_SUMS, _SUM_HINT)),
    **dict.fromkeys(("group_by", "aggregate", "having"), (_NO_SUMS, _SUM_HINT)),
    "distinct": ("DynamoDB returns items, not the different values of a field", _SUM_HINT),
    "join": ("DynamoDB reads one table at a time", _JOIN_HINT),
    "offset": (
        "DynamoDB cannot skip items",
        "read pages with db.page(..., cursor=page.cursor)",
    ),
}


class Only(Selection[F], Generic[F]):
    """A query for some fields of its items. It returns tuples, which cannot be written back."""

    __slots__ = ()


class Count(Question, Generic[E]):
    """A query for the number of items."""

    __slots__ = ()


class _Bundle(Selection[F], Generic[F]):
    """A query for items of several entities. Each method returns a new query."""

    __slots__ = ()

    def where(self, *conditions: Conditional) -> Self:
        """Add conditions on the key that the entities share. All of them must hold."""
        return type(self)(self._asked(self.ask.where(conditions)))

    def newest_first(self, by: Any = None) -> Self:
        """Order by a field, the greatest value first."""
        return type(self)(self._asked(self.ask.ordered(_named_field(by), descending=True)))

    def oldest_first(self, by: Any = None) -> Self:
        """Order by a field, the least value first."""
        return type(self)(self._asked(self.ask.ordered(_named_field(by), descending=False)))

    def limit(self, count: int) -> Self:
        """Return at most ``count`` items of all entities together."""
        return type(self)(self._asked(self.ask.limited(count)))


class Bundle2(_Bundle[A | B], Generic[A, B]):
    """A query for items of two entities: the result of ``together(A, B)``."""

    __slots__ = ()


class Bundle3(_Bundle[A | B | C], Generic[A, B, C]):
    """A query for items of three entities: the result of ``together(A, B, C)``."""

    __slots__ = ()


class Bundle4(_Bundle[A | B | C | D], Generic[A, B, C, D]):
    """A query for items of four entities: the result of ``together(A, B, C, D)``."""

    __slots__ = ()


class BundleMany(_Bundle[Any]):
    """A query for five or more entities. Its result is not typed."""

    __slots__ = ()


def find(entity: type[E]) -> Query[E]:
    """Start a query for items of one entity or of one variant."""
    known = info(entity)
    ask = Ask((known.root,))
    if known.is_variant:
        is_tagged = Comparison(
            FieldRef(known.root, (CLASS_TAG,)), "=", (getattr(entity, CLASS_TAG),)
        )
        ask = replace(ask, tests=(is_tagged,))
    return Query(ask)


@overload
def together(a: type[A], b: type[B], /) -> Bundle2[A, B]: ...
@overload
def together(a: type[A], b: type[B], c: type[C], /) -> Bundle3[A, B, C]: ...
@overload
def together(a: type[A], b: type[B], c: type[C], d: type[D], /) -> Bundle4[A, B, C, D]: ...
@overload
def together(
    a: type[Any], b: type[Any], c: type[Any], d: type[Any], e: type[Any], /, *more: type[Any]
) -> BundleMany: ...
def together(*entities: type[Any]) -> Any:
    """Start one query that returns items of several entities, which must share a partition."""
    if len(entities) < 2 or len(set(entities)) != len(entities):
        raise DesignError(
            "together() takes two or more different entities", hint="use find() for one"
        )
    for entity in entities:
        _refuse_variant(entity)
    kinds: dict[int, type[_Bundle[Any]]] = {2: Bundle2, 3: Bundle3, 4: Bundle4}
    return kinds.get(len(entities), BundleMany)(Ask(tuple(entities)))


def _refuse_variant(entity: type[Any]) -> None:
    known = info(entity)
    if known.is_variant:
        root = known.root.__name__
        raise DesignError(
            f"together() reads whole entities, and {entity.__name__} is a variant of {root}",
            hint=f"read {root} together, and test isinstance(item, {entity.__name__})",
        )


# --- reads ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Traffic:
    """How often a read runs, how much it returns, and how fresh and fast it must be."""

    rps: float = 1.0
    returns: float | None = None
    consistent: bool = False
    within_ms: float | None = None
    allow_scan: bool = False
    paged: bool = False


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


def _refuse_bare(decorator: str, given: Any) -> None:
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
) -> Callable[[Callable[P, Q]], Pattern[P, Q]]:
    """Declare a read pattern. The decorated function returns a query: ``find(...).where(...)``.

    ``rps`` is how often the read runs each second. ``returns`` is how many items it usually
    returns. ``consistent`` asks for strongly consistent reads. With ``within``, the plan warns if
    the read is expected to take longer than that many milliseconds. ``allow_scan`` permits a Scan
    of the whole table. ``paged`` says that callers read page by page, so that a key must hold the
    order. Without ``paged``, the client may sort a small result in memory.
    """
    _refuse_bare("read", bare)
    check_quantity("rps", rps, most=MOST_A_SECOND)
    _check_positive("returns", returns, "items", "a rough estimate is enough, for example 25")
    _check_positive("within", within, "milliseconds", "for example within=20")
    traffic = Traffic(rps, returns, consistent, within, allow_scan, paged)
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    return lambda function: Pattern(function, traffic, used_names(function, caller))


def _check_positive(name: str, number: float | None, unit: str, hint: str) -> None:
    if number is None:
        return
    if isinstance(number, (int, float)) and number <= 0:
        raise DesignError(f"{name}={number} must be a positive number of {unit}", hint=hint)
    check_quantity(name, number)


# --- writes ---------------------------------------------------------------------------------------


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
    """A declared write. If it declares several changes, they form one transaction."""

    def __init__(self, function: Callable[[], Any], rps: float) -> None:
        self.function = function
        self.rps = rps
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    @property
    def name(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return f"<write pattern {self.name}>"

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


def write(bare: None = None, /, *, rps: float = 1.0) -> Callable[[Callable[[], Any]], WritePattern]:
    """Declare a write pattern that runs ``rps`` times a second.

    The decorated function returns what it writes: ``creates(Order)``, ``updates(Order.status)``,
    ``deletes(Order)``, or a tuple of these.
    """
    _refuse_bare("write", bare)
    check_quantity("rps", rps, most=MOST_A_SECOND)
    return lambda function: WritePattern(function, rps)

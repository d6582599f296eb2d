"""Queries: what an access pattern returns, and how programs write it.

    find(Order).where(Order.user_id == user_id).newest_first(Order.placed_at)

``find`` starts a query for one entity, ``together`` one for several. Each method returns a new
query with more in its ``ask``. A query is run by a ``Db``, never by itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, overload

from stator.design.entities.conditions import Comparison, Conditional, FieldRef
from stator.design.entities.entity import info
from stator.design.entities.shapes import CLASS_TAG
from stator.design.patterns.ask import Ask
from stator.design.patterns.explanation import Explanation, explain_call
from stator.design.plan.plan import Plan
from stator.errors import DesignError

E = TypeVar("E")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
F = TypeVar("F", covariant=True)


def _named_field(by: Any) -> tuple[Any, ...]:
    return () if by is None else (by,)


class PlanSource(Protocol):
    """An object with a ``plan``: in practice a ``Design``, which this module cannot import."""

    def plan(self) -> Plan: ...


class AskingPattern(Protocol):
    """The pattern that returned a query: what the query needs of it, which is defined later."""

    design: PlanSource | None

    @property
    def name(self) -> str: ...


class Question:
    """A read to run: its query, the pattern it belongs to, and the arguments of the call.

    ``arguments`` maps names to values, including defaults. ``ask`` has the contents of the query.
    After the pattern has been traced, ``ask`` has a ``Param`` in place of each argument.
    """

    __slots__ = ("arguments", "ask", "pattern")

    def __init__(
        self,
        ask: Ask,
        pattern: AskingPattern | None = None,
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
    "offset": ("DynamoDB cannot skip items", "read pages with db.page(..., cursor=page.cursor)"),
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

"""The contents of a query, which the planner reads: entities, conditions, order and limit.

Each method checks what a query says before it adds it, so that a wrong query is refused on the line
that writes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, cast

from stator.design.entities.conditions import All, Comparison, Condition, FieldRef, as_condition
from stator.design.entities.entity import info
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.patterns.compared_parts import check_annotation, check_part
from stator.design.patterns.compared_values import check_compared
from stator.design.patterns.condition_contents import comparisons_in, parts_in, references
from stator.design.patterns.param import Param
from stator.errors import DesignError


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
                f"the limit is given twice: {self.limit!r} and {count!r}", hint="limit a query once"
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
                    f"{reference!r} is not a field of {names}", hint=f"compare fields of {names}"
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

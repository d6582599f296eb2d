"""The metrics of a view: the values it has for each group.

``count()``, ``sum_of(field)``, ``avg(field)`` and ``percentiles(field)`` are sums;
``minimum(field)``, ``maximum(field)``, ``top(n, by=field)`` and ``latest(by=field)`` depend on an
order. Fields are named on their class, for example ``avg(Test.latency_ms)``. An item whose field is
None does not count in the metrics of that field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context as Arithmetic
from decimal import Decimal
from typing import Any, Final

from stator.design.entities.conditions import FieldRef
from stator.errors import DesignError
from stator.model.limits import NUMBER_DIGITS
from stator.model.wide_numbers import EXACT
from stator.pipeline.views.sketch import Percentiles, bucket_of, repaired

Number = int | Decimal
Parts = tuple[tuple[str, Number], ...]
Totals = Mapping[str, Decimal]

_DIVISION: Final = Arithmetic(prec=NUMBER_DIGITS)


@dataclass(frozen=True, slots=True)
class Additive:
    """A metric whose value is computed from sums, such as a count or an average.

    ``parts`` returns the names of the sums that an item's value adds to, and the amounts. ``read``
    computes the metric's value from the totals of these sums.
    """

    field: FieldRef | None
    parts: Callable[[str, Any], Parts]
    read: Callable[[str, Totals, type], Any]
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Ordered:
    """A metric that needs items in the order of a field, such as ``top`` or ``minimum``.

    The metric uses the first ``count`` items in that order. ``copies`` are the fields that are
    stored of each item; None means all fields.
    """

    field: FieldRef
    descending: bool
    count: int
    gives: str
    copies: tuple[FieldRef, ...] | None = None


Metric = Additive | Ordered


def field_of(given: Any, what: str) -> FieldRef:
    if not isinstance(given, FieldRef) or len(given.path) != 1:
        raise DesignError(
            f"{what} is {given!r}, not a field",
            hint="name a field on its class, for example Order.total",
        )
    return given


def exact(value: Any) -> Number:
    """Return a float as the Decimal that it prints as: 0.1 becomes ``Decimal("0.1")``.

    Any other number is returned unchanged.
    """
    return Decimal(repr(value)) if isinstance(value, float) else value


def add(sums: dict[str, Number], more: Parts, sign: int = 1) -> None:
    for name, amount in more:
        before = sums.get(name, 0)
        if isinstance(before, int) and isinstance(amount, int):
            sums[name] = before + sign * amount
        else:
            sums[name] = EXACT.add(before, amount) if sign > 0 else EXACT.subtract(before, amount)


# -- sums


def count(of: Any = None) -> Additive:
    """Return a metric that counts a group's items: all, or only items with a value in ``of``."""
    if of is None:
        return Additive(
            None, lambda name, value: (), lambda name, totals, kind: int(totals.get("n", 0))
        )
    return Additive(
        field_of(of, "count(of)"),
        lambda name, value: ((f"c:{name}", 1),),
        lambda name, totals, kind: int(totals.get(f"c:{name}", 0)),
        numeric=False,
    )


def sum_of(of: Any) -> Additive:
    """Return a metric for the sum of a field over a group's items.

    Its value is 0 if no item has the field.
    """

    def parts(name: str, value: Any) -> Parts:
        return ((f"s:{name}", exact(value)),)

    return Additive(
        field_of(of, "sum_of(of)"),
        parts,
        lambda name, totals, kind: kind(totals.get(f"s:{name}", Decimal(0))),
    )


def avg(of: Any) -> Additive:
    """Return a metric for the mean of a field over a group's items.

    Its value is None if no item has the field.
    """

    def parts(name: str, value: Any) -> Parts:
        return (f"s:{name}", exact(value)), (f"c:{name}", 1)

    def read(name: str, totals: Totals, kind: type) -> Any:
        counted = totals.get(f"c:{name}", Decimal(0))
        if not counted:
            return None
        mean = _DIVISION.divide(totals.get(f"s:{name}", Decimal(0)), counted)
        return mean if kind is Decimal else float(mean)

    return Additive(field_of(of, "avg(of)"), parts, read)


def percentiles(of: Any, *, accuracy: float = 0.02) -> Additive:
    """Return a metric from which every percentile of a field can be read.

    If it is declared as ``spread``, ``row.spread[99]`` is the 99th percentile, by nearest rank.
    ``accuracy`` is the largest relative error. Half the error takes twice as many stored numbers.
    """
    if not 0.001 <= accuracy <= 0.5:
        raise DesignError(
            f"percentiles(accuracy={accuracy}) is out of range",
            hint="use 0.001 to 0.5; 0.02 is within 2 percent",
        )

    def parts(name: str, value: Any) -> Parts:
        return ((f"b:{name}:{bucket_of(float(value), accuracy)}", 1),)

    def read(name: str, totals: Totals, kind: type) -> Percentiles:
        start = f"b:{name}:"
        counts = {
            attribute[len(start) :]: int(each)
            for attribute, each in totals.items()
            if attribute.startswith(start)
        }
        return Percentiles(repaired(counts), accuracy)

    return Additive(field_of(of, "percentiles(of)"), parts, read)


# -- orders


def minimum(of: Any) -> Ordered:
    """Return a metric for the least value of a field among a group's items.

    Its value is None if no item has the field.
    """
    return Ordered(field_of(of, "minimum(of)"), descending=False, count=1, gives="value", copies=())


def maximum(of: Any) -> Ordered:
    """Return a metric for the greatest value of a field among a group's items.

    Its value is None if no item has the field.
    """
    return Ordered(field_of(of, "maximum(of)"), descending=True, count=1, gives="value", copies=())


def top(
    count: int, *, by: Any, lowest: bool = False, fields: Sequence[Any] | None = None
) -> Ordered:
    """Return a metric that lists the ``count`` items with the greatest values of field ``by``.

    With ``lowest=True``, it lists the items with the lowest values, the lowest first. ``fields``
    are the fields to store of each item; without it, the whole item is stored.
    """
    if not 1 <= count <= 1000:
        raise DesignError(f"top({count}) is out of range", hint="use 1 to 1000")
    return Ordered(field_of(by, "top(by)"), not lowest, count, "many", _copies(fields))


def latest(*, by: Any, fields: Sequence[Any] | None = None) -> Ordered:
    """Return a metric for the item with the greatest value of field ``by``, usually a time.

    ``fields`` are the fields to store of the item; without it, the whole item is stored.
    """
    return Ordered(
        field_of(by, "latest(by)"), descending=True, count=1, gives="one", copies=_copies(fields)
    )


def _copies(fields: Sequence[Any] | None) -> tuple[FieldRef, ...] | None:
    return None if fields is None else tuple(field_of(each, "fields") for each in fields)

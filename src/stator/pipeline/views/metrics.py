"""The metrics of a view: the values it has for each group.

``count()``, ``sum_of(field)``, ``avg(field)`` and ``percentiles(field)`` are sums;
``minimum(field)``, ``maximum(field)``, ``top(n, by=field)`` and ``latest(by=field)`` depend on an
order. Fields are named on their class, for example ``avg(Test.latency_ms)``. A source whose field
is None does not count in the metrics of that field.
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
    """A metric that is a sum.

    ``parts`` returns the attributes that a source's value adds to, and the amounts. ``read`` turns
    their totals into the result.
    """

    field: FieldRef | None
    parts: Callable[[str, Any], Parts]
    read: Callable[[str, Totals, type], Any]
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Ordered:
    """A metric about the first ``count`` sources in the order of a field.

    ``copies`` are the fields that are stored of each source; None means all fields.
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
    """Return a float as the decimal number that it prints as, and any other number unchanged."""
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
    """Return a metric that counts the sources, or those in which the field ``of`` is not None."""
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
    """Return a metric for the sum of a field. It is 0 if no source has the field."""

    def parts(name: str, value: Any) -> Parts:
        return ((f"s:{name}", exact(value)),)

    return Additive(
        field_of(of, "sum_of(of)"),
        parts,
        lambda name, totals, kind: kind(totals.get(f"s:{name}", Decimal(0))),
    )


def avg(of: Any) -> Additive:
    """Return a metric for the mean of a field. Its value is None if no source has the field."""

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
    ``accuracy`` is the largest relative error. Halving it doubles how many numbers are stored.
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
    """Return a metric for the least value of a field, or None if no source has the field."""
    return Ordered(field_of(of, "minimum(of)"), descending=False, count=1, gives="value", copies=())


def maximum(of: Any) -> Ordered:
    """Return a metric for the greatest value of a field, or None if no source has the field."""
    return Ordered(field_of(of, "maximum(of)"), descending=True, count=1, gives="value", copies=())


def top(
    count: int, *, by: Any, lowest: bool = False, fields: Sequence[Any] | None = None
) -> Ordered:
    """Return a metric that lists the ``count`` sources with the greatest values of field ``by``.

    With ``lowest=True``, it lists those with the lowest values, the lowest first. ``fields`` are
    the fields to store of each source; without it, the whole source is stored.
    """
    if not 1 <= count <= 1000:
        raise DesignError(f"top({count}) is out of range", hint="use 1 to 1000")
    return Ordered(field_of(by, "top(by)"), not lowest, count, "many", _copies(fields))


def latest(*, by: Any, fields: Sequence[Any] | None = None) -> Ordered:
    """Return a metric for the source with the greatest value of field ``by``, such as a time.

    ``fields`` are the fields to store of the source; without it, the whole source is stored.
    """
    return Ordered(
        field_of(by, "latest(by)"), descending=True, count=1, gives="one", copies=_copies(fields)
    )


def _copies(fields: Sequence[Any] | None) -> tuple[FieldRef, ...] | None:
    return None if fields is None else tuple(field_of(each, "fields") for each in fields)

"""The share of an item in a view: its group, what it adds to the sums, and its rank rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from stator.design.entities.conditions import FieldRef, as_condition
from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.shapes import Epoch, Maybe, Scalar, Shape
from stator.design.patterns.condition_contents import references
from stator.design.patterns.filter_writer import FilterWriter
from stator.design.plan.key_text import SEPARATOR, Encoding, encoding_of, plain
from stator.errors import DesignError
from stator.expr.bind import bind_condition
from stator.expr.condition import evaluate
from stator.expr.parser import parse_condition
from stator.expr.tree import Condition as BoundCondition
from stator.model.periods import Period, following, period_start, period_text
from stator.model.values import Item
from stator.pipeline.views.layout import NO_BUCKET, ViewGroup
from stator.pipeline.views.metrics import Additive, Metric, Ordered, Parts
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.missing_attributes import may_have_default, missing_value, with_defaults

_NUMBERS: Final = (int, float, Decimal)
_REMEMBERED: Final = 20_000
_ONE: Final[Parts] = (("n", 1),)
_NO_ROWS: Final[dict[str, Item]] = {}

# The end of a time as entities write it: always 27 characters, in UTC, to the microsecond
# (stator.design.entities.wire).
_SECONDS: Final = r":[0-5][0-9]\.[0-9]{6}Z"
_MINUTES: Final = r":[0-5][0-9]" + _SECONDS


class ItemShare:
    """What one item contributes to a view.

    ``group`` is the group that it belongs to. ``sums`` has the amounts to add to the attributes of
    a partial. ``rows`` maps sort keys to the rank rows to store.
    """

    __slots__ = ("group", "rows", "sums")

    def __init__(self, group: ViewGroup, sums: Parts, rows: dict[str, Item]) -> None:
        self.group = group
        self.sums = sums
        self.rows = rows


@dataclass(frozen=True, slots=True)
class ViewDeclaration:
    """The arguments with which a user declared a view or a projection."""

    entity: type[Any]
    by: tuple[FieldRef, ...]
    bucket: tuple[FieldRef, Period] | None
    where: Any
    keep: timedelta | None
    metrics: Mapping[str, Metric]


# A table of millions of items has the same values again and again: results are remembered by text.


def _remember(known: dict[Any, Any], key: Any, made: Any) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = made


class _Grouping:
    """A field by which a view groups its items, and how its values are written in keys."""

    def __init__(self, name: str, decode: Callable[[Any], Any], encoding: Encoding) -> None:
        self.name = name
        self._decode = decode
        self._encoding = encoding
        self._kind = "N" if encoding.python in _NUMBERS else "S"
        self._known: dict[str, str] = {}

    def text(self, value: dict[str, Any]) -> str | None:
        text = value.get(self._kind) if len(value) == 1 else None
        known = None if text is None else self._known.get(text)
        return known if known is not None else self._new_text(value, text)

    def _new_text(self, value: dict[str, Any], text: str | None) -> str | None:
        made = self.made(self._decode(value))
        if text is not None and made is not None:
            _remember(self._known, text, made)
        return made

    def made(self, value: Any) -> str | None:
        return None if value is None else str(self._encoding.write(plain(value)))


class _Bucket:
    """The datetime field and the period that decide which time bucket an item is in."""

    def __init__(self, name: str, period: Period, decode: Callable[[Any], Any]) -> None:
        self.name = name
        self.period: Period = period
        self._decode = decode
        # The characters of a time that decide the bucket; the rest does not matter.
        self._told = len("2026-11-16T10:05") if period == "minute" else len("2026-11-16T10")
        self._rest = re.compile(_SECONDS if period == "minute" else _MINUTES)
        self._known: dict[str, str] = {}

    def text(self, value: dict[str, Any]) -> str | None:
        text = value.get("S")
        if text is None or len(value) != 1 or self._rest.fullmatch(text, self._told) is None:
            return self.made(self._decode(value))
        told = text[: self._told]
        known = self._known.get(told)
        if known is None:
            known = period_text(self.period, self._decode(value))
            _remember(self._known, told, known)
        return known

    def made(self, moment: Any) -> str | None:
        return None if moment is None else period_text(self.period, moment)


class _Measured:
    """Computes what an item's value of one field adds to the metrics of that field."""

    def __init__(
        self, name: str, decode: Callable[[Any], Any], metrics: Sequence[tuple[str, Additive]]
    ) -> None:
        self.name = name
        self._decode = decode
        self._metrics = metrics
        self._known: dict[str, Parts] = {}

    def parts(self, value: dict[str, Any]) -> Parts:
        text = value.get("N") if len(value) == 1 else None
        known = None if text is None else self._known.get(text)
        return known if known is not None else self._new_parts(value, text)

    def _new_parts(self, value: dict[str, Any], text: str | None) -> Parts:
        made = self.made(self._decode(value))
        if text is not None:
            _remember(self._known, text, made)
        return made

    def made(self, value: Any) -> Parts:
        if value is None:
            return ()
        return tuple([part for name, metric in self._metrics for part in metric.parts(name, value)])


class ViewSource:
    """Computes what stored items contribute to a declared view (``ItemShare``)."""

    def __init__(self, declared: ViewDeclaration, of: EntityMap) -> None:
        self.declared = declared
        self.of = of
        self._where = None if declared.where is None else bound(declared.where, of)
        self._decode = of.codec.decode_field
        self._by = tuple((each.name, self.encoding(each)) for each in declared.by)
        if declared.bucket is not None and self.encoding(declared.bucket[0]).python not in (
            datetime,
            Epoch,
        ):
            raise DesignError(
                f"{declared.bucket[0]!r} cannot make time buckets: it is not a datetime field",
                hint="name a datetime field in bucket=(...)",
            )
        self.additive = {
            name: each for name, each in declared.metrics.items() if isinstance(each, Additive)
        }
        self.orders = _orders(declared.metrics)
        self._ordered = {
            name: (self.encoding(each[0].field), _copied(each))
            for name, each in self.orders.items()
        }
        for each in self.additive.values():
            if each.field is not None:
                self.shape(each.field)
                if each.numeric:
                    self.kind(each.field)
        measured: dict[str, list[tuple[str, Additive]]] = {}
        for name, each in self.additive.items():
            if each.field is not None:
                measured.setdefault(each.field.name, []).append((name, each))
        self.names = self._field_names(measured)
        # Items may lack these attributes, and the fields still have values: their defaults.
        compared = () if declared.where is None else references(as_condition(declared.where))
        self._filled = frozenset(
            name
            for name in (*self.names, *(each.name for each in compared))
            if may_have_default(of, name)
        )
        self._shape = of.shape_version.value
        # Tells items of other entities in the same table apart.
        self._kind = (
            None if of.plan.discriminator is None else (of.plan.discriminator, {"S": of.name})
        )
        for name in self.names:
            if name in of.large:
                raise DesignError(
                    f"{of.name}.{name} is large(), and cannot be counted",
                    hint="count a field that is not large()",
                )
        self._groupings = [
            _Grouping(name, self._decode[name], encoding) for name, encoding in self._by
        ]
        self._measured = [
            _Measured(name, self._decode[name], metrics) for name, metrics in measured.items()
        ]
        self._bucket: _Bucket | None = None
        if declared.bucket is not None:
            name = declared.bucket[0].name
            self._bucket = _Bucket(name, declared.bucket[1], self._decode[name])
        self._groups: dict[tuple[str, str], ViewGroup] = {}

    # -- checking

    def shape(self, reference: FieldRef) -> Shape:
        found = self.of.fields.get(reference.name)
        if found is None or not issubclass(self.of.cls, reference.owner):
            raise DesignError(
                f"{reference!r} is not a field of {self.of.name}",
                hint=f"name a field of {self.of.name}",
            )
        return found.shape.inner if isinstance(found.shape, Maybe) else found.shape

    def encoding(self, reference: FieldRef) -> Encoding:
        found = encoding_of(self.shape(reference))
        if found is None:
            raise DesignError(
                f"{reference!r} cannot group or order a view: its type cannot be part of a key",
                hint="use a text, number or datetime field",
            )
        return found

    def kind(self, reference: FieldRef) -> type:
        """Return the Python type of a number field.

        Raises DesignError for a field that is not a number.
        """
        shape = self.shape(reference)
        if not isinstance(shape, Scalar) or shape.python not in _NUMBERS:
            raise DesignError(
                f"{reference!r} is not a number", hint="name an int, float or Decimal field"
            )
        return shape.python

    def _field_names(self, measured: Iterable[str]) -> tuple[str, ...]:
        names = [name for name, _ in self._by]
        names += [] if self.declared.bucket is None else [self.declared.bucket[0].name]
        names += measured
        return tuple(dict.fromkeys([*names, *self.orders]))

    # -- counting

    def counted(self, item: Item | None, mark: str, now: float) -> ItemShare | None:
        """Return what an item contributes to the view, or None if it is not in the view.

        ``item`` is one image of a change, or None if the change has no such image. ``mark``
        identifies the item in the keys of its rank rows. An item whose bucket has expired at
        ``now`` is not in the view.
        """
        if item is None or (self._kind is not None and item.get(self._kind[0]) != self._kind[1]):
            return None
        if self.of.told_by_key is not None and not self.of.told_by_key(item):
            return None
        if self.of.is_deleted(item):
            return None
        if item.get(VERSION_ATTRIBUTE) != self._shape:
            item = self.of.current(item)
        if not item.keys() >= self._filled:
            item = with_defaults(self.of, item, self._filled)
        if self._where is not None and not evaluate(self._where, item):
            return None
        group = self._group(item)
        if group is None or (self.declared.keep is not None and self.is_over(group.bucket, now)):
            return None
        sums: Parts = _ONE
        for measured in self._measured:
            value = item.get(measured.name)
            if value is not None:
                sums = sums + measured.parts(value)
            else:
                sums = sums + measured.made(missing_value(self.of, measured.name, item))
        return ItemShare(group, sums, self._rows(item, mark) if self._ordered else _NO_ROWS)

    def _group(self, item: Item) -> ViewGroup | None:
        """Return the group of an item, or None if a field of the group is None."""
        by = ""
        for at, grouping in enumerate(self._groupings):
            value = item.get(grouping.name)
            if value is not None:
                text = grouping.text(value)
            else:
                text = grouping.made(missing_value(self.of, grouping.name, item))
            if text is None:
                return None
            by = by + SEPARATOR + text if at else text
        bucket = NO_BUCKET
        if self._bucket is not None:
            value = item.get(self._bucket.name)
            if value is not None:
                text = self._bucket.text(value)
            else:
                text = self._bucket.made(missing_value(self.of, self._bucket.name, item))
            if text is None:
                return None
            bucket = text
        known = self._groups.get((by, bucket))
        if known is None:
            known = ViewGroup(by, bucket)
            _remember(self._groups, (by, bucket), known)
        return known

    def _rows(self, item: Item, mark: str) -> dict[str, Item]:
        rows = {}
        for name, (encoding, copied) in self._ordered.items():
            value = (
                self._decode[name](item[name])
                if name in item
                else missing_value(self.of, name, item)
            )
            if value is not None:
                text = encoding.write(plain(value))
                rows[f"{name}{SEPARATOR}{text}{SEPARATOR}{mark}"] = self._copy(item, name, copied)
        return rows

    def _copy(self, item: Item, name: str, copied: frozenset[str] | None) -> Item:
        item = self.of.with_key_fields(item)
        if copied is None:  # with the version, so that later versions can upcast the copy
            fields = self.of.fields
            return {
                attribute: value
                for attribute, value in item.items()
                if attribute in fields or attribute == VERSION_ATTRIBUTE
            }
        return {attribute: item[attribute] for attribute in (*copied, name) if attribute in item}

    # -- expiry

    def end(self, bucket: str) -> float | None:
        """Return the time at which the items of a time bucket expire, in seconds since the epoch.

        None means never.
        """
        if self.declared.keep is None or self._bucket is None:
            return None
        return (
            following(self._bucket.period, period_start(bucket)) + self.declared.keep
        ).timestamp()

    def is_over(self, bucket: str, now: float) -> bool:
        end = self.end(bucket)
        return end is not None and end <= now

    # -- asking

    def group_of(self, given: Mapping[str, Any], *, with_bucket: bool) -> ViewGroup:
        """Return the group with these field values.

        If ``with_bucket`` and the view has buckets, ``given`` must also have a time in the bucket.
        Raises DesignError if a field is missing or unknown.
        """
        names = [name for name, _ in self._by]
        if with_bucket and self._bucket is not None:
            names.append(self._bucket.name)
        listed = self.of.info.listed
        given = self.of.given(given)
        if set(names) != set(given):
            raise DesignError(
                f"a group of this view has the fields {listed(names) or '(none)'}, "
                f"not {listed(given) or '(none)'}",
                hint=f"pass exactly these: get({', '.join(f'{listed([n])}=...' for n in names)})",
            )
        by = SEPARATOR.join(encoding.write(plain(given[name])) for name, encoding in self._by)
        if not with_bucket or self._bucket is None:
            return ViewGroup(by)
        return ViewGroup(by, self.bucket_text(given[self._bucket.name]))

    def bucket_text(self, moment: datetime) -> str:
        if self._bucket is None:
            raise DesignError(
                f"this view of {self.of.name} has no time buckets",
                hint="declare it with bucket=(field, 'hour')",
            )
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise DesignError(
                f"{moment!r} is not a datetime with a time zone",
                hint="use datetime(..., tzinfo=UTC)",
            )
        return period_text(self._bucket.period, moment)

    def values_of(self, group: ViewGroup) -> dict[str, Any]:
        """Return the field values of a group, by name.

        The value of the bucket's field is the first moment of the time bucket.
        """
        texts = group.by.split(SEPARATOR) if self._by else []
        python = self.of.info.python_names
        values = {
            python.get(name, name): encoding.read(text)
            for (name, encoding), text in zip(self._by, texts, strict=True)
        }
        if self._bucket is not None:
            bucket = self._bucket.name
            values[python.get(bucket, bucket)] = period_start(group.bucket)
        return values


def _orders(metrics: Mapping[str, Metric]) -> dict[str, list[Ordered]]:
    """Return the ordered metrics by the field that orders them.

    Metrics that are ordered by the same field share their rank rows.
    """
    found: dict[str, list[Ordered]] = {}
    for metric in metrics.values():
        if isinstance(metric, Ordered):
            found.setdefault(metric.field.name, []).append(metric)
    return found


def _copied(metrics: Sequence[Ordered]) -> frozenset[str] | None:
    """Return the fields that rank rows copy from their source; None means all fields."""
    names: set[str] = set()
    for metric in metrics:
        if metric.copies is None:
            return None
        names.update(each.name for each in metric.copies)
    return frozenset(names)


def bound(where: Any, of: EntityMap) -> BoundCondition:
    """Return ``where`` as a condition that tests items in this process as DynamoDB would."""
    condition = as_condition(where)
    for reference in references(condition):
        if reference.name not in of.fields or reference.name in of.large:
            raise DesignError(
                f"{reference!r} cannot be compared in a view of {of.name}",
                hint=f"name a field of {of.name} that is not large()",
            )
    writer = FilterWriter()
    text = writer.term(condition, of.info)
    return bind_condition(parse_condition(text), writer.names, writer.values)

"""What an item of the source counts for: its group, what it adds to the group's sums, and where it stands in the group's orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from stator.design.conditions import FieldRef, as_condition
from stator.design.filters import FilterWriter
from stator.design.keys import SEPARATOR, Encoding, encoding_of, plain
from stator.design.patterns import references
from stator.design.types import Epoch, Maybe, Scalar, Shape
from stator.errors import DesignError, ItemMismatch
from stator.expr.bind import bind_condition
from stator.expr.condition import evaluate
from stator.expr.parser import parse_condition
from stator.expr.tree import Condition as BoundCondition
from stator.model.values import Item
from stator.patterns.periods import Period, following, period_start, period_text
from stator.pipeline.views.layout import Group
from stator.pipeline.views.metrics import Additive, Metric, Number, Ordered, Parts
from stator.tables.schema import EntityMap

_NUMBERS: Final = (int, float, Decimal)
_REMEMBERED: Final = 20_000
_UNKNOWN: Final = object()


@dataclass(slots=True)
class Counted:
    """One item. ``sums`` are attributes of the partial and what they grow by; ``rows`` sort keys and what stands there."""

    group: Group
    sums: dict[str, Number] = field(default_factory=dict)
    rows: dict[str, Item] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a view is of, as it was declared."""

    entity: type[Any]
    by: tuple[FieldRef, ...]
    bucket: tuple[FieldRef, Period] | None
    where: Any
    keep: timedelta | None
    metrics: Mapping[str, Metric]


# Values come again and again, in the millions of items of a table that a view is built from: what was made of one is remembered.


class _Field:
    """A field that is looked at, and values of it as they were read before."""

    def __init__(self, name: str, decode: Callable[[Any], Any], *, is_time: bool) -> None:
        self.name = name
        self._decode = decode
        self._is_time = is_time  # hardly one comes twice
        self._known: dict[str, Any] = {}

    def decoded(self, value: dict[str, Any]) -> Any:
        text = value.get("S")
        if text is None:
            text = value.get("N")
        if self._is_time or type(text) is not str or len(value) != 1:
            return self._decode(value)
        known = self._known.get(text, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._decode(value)
            if len(self._known) < _REMEMBERED:
                self._known[text] = known
        return known


class _Measured:
    """A metric of a field, and what values of it add to."""

    def __init__(self, name: str, field: str, metric: Additive) -> None:
        self.name = name
        self.field = field
        self._parts = metric.parts
        self._is_numeric = metric.numeric
        self._known: dict[Any, Parts] = {}

    def parts(self, value: Any) -> Parts:
        if not self._is_numeric:  # of a list or a map, perhaps, by which nothing can be remembered
            return self._parts(self.name, value)
        known = self._known.get(value)
        if known is None:
            known = self._parts(self.name, value)
            if len(self._known) < _REMEMBERED:
                self._known[value] = known
        return known


class Source:
    """A declaration with the entity as it is stored."""

    def __init__(self, declared: Declaration, of: EntityMap) -> None:
        self.declared = declared
        self.of = of
        self._where = None if declared.where is None else bound(declared.where, of)
        self._by = tuple((each.name, self.encoding(each)) for each in declared.by)
        self._bucket = None if declared.bucket is None else (declared.bucket[0].name, declared.bucket[1])
        if declared.bucket is not None and self.encoding(declared.bucket[0]).python not in (datetime, Epoch):
            raise DesignError(
                f"{declared.bucket[0]!r} is no time to make buckets of", hint="name a field of datetime in bucket=(...)"
            )
        self.additive = {name: each for name, each in declared.metrics.items() if isinstance(each, Additive)}
        self.orders = _orders(declared.metrics)
        self._ordered = {name: (self.encoding(each[0].field), _copied(each)) for name, each in self.orders.items()}
        for each in self.additive.values():
            if each.field is not None and each.numeric:
                self.kind(each.field)
        self._measured = tuple(
            _Measured(name, each.field.name, each) for name, each in self.additive.items() if each.field is not None
        )
        self.names = self._field_names()
        # Items of other entities in the same table say so; and most groups come again and again.
        self._kind = None if of.plan.discriminator is None else (of.plan.discriminator, {"S": of.name})
        self._texts: dict[tuple[Any, ...], str] = {}
        for name in self.names:
            if name in of.large:
                raise DesignError(
                    f"{of.name}.{name} is large(), and stored packed", hint="keep what you count in a field of its own"
                )
        times = () if declared.bucket is None else (declared.bucket[0].name,)
        self._read = tuple(_Field(name, of.codec.decode_field[name], is_time=name in times) for name in self.names)

    # -- checking

    def shape(self, reference: FieldRef) -> Shape:
        found = self.of.fields.get(reference.name)
        if found is None or not issubclass(self.of.cls, reference.owner):
            raise DesignError(f"{reference!r} is not a field of {self.of.name}", hint=f"name a field of {self.of.name}")
        return found.shape.inner if isinstance(found.shape, Maybe) else found.shape

    def encoding(self, reference: FieldRef) -> Encoding:
        found = encoding_of(self.shape(reference))
        if found is None:
            raise DesignError(f"{reference!r} has no order", hint="name a field of text, a number or a time")
        return found

    def kind(self, reference: FieldRef) -> type:
        """The type of a number."""
        shape = self.shape(reference)
        if not isinstance(shape, Scalar) or shape.python not in _NUMBERS:
            raise DesignError(f"{reference!r} is not a number", hint="name a field of int, float or Decimal")
        return shape.python

    def _field_names(self) -> tuple[str, ...]:
        names = [name for name, _ in self._by]
        names += [] if self._bucket is None else [self._bucket[0]]
        names += [each.field for each in self._measured]
        return tuple(dict.fromkeys([*names, *self.orders]))

    # -- counting

    def counted(self, item: Item | None, mark: str, now: float) -> Counted | None:
        """None for an item that is not there, is not in the view, or is in no group."""
        if item is None or (self._kind is not None and item.get(self._kind[0]) != self._kind[1]):
            return None
        if self._where is not None and not evaluate(self._where, item):
            return None
        values = self.values(item)
        group = self._group(values)
        if group is None or (self.declared.keep is not None and self.is_over(group.bucket, now)):
            return None
        sums: dict[str, Number] = {"n": 1}
        for measured in self._measured:
            value = values[measured.field]
            if value is not None:
                sums.update(measured.parts(value))
        counted = Counted(group, sums)
        for name, (encoding, copied) in self._ordered.items():
            if values[name] is not None:
                text = encoding.write(plain(values[name]))
                counted.rows[f"{name}{SEPARATOR}{text}{SEPARATOR}{mark}"] = self._copy(item, name, copied)
        return counted

    def values(self, item: Item) -> dict[str, Any]:
        """The fields that matter, decoded. What is absent is what the entity makes of it."""
        found = {}
        for each in self._read:
            value = item.get(each.name)
            found[each.name] = each.decoded(value) if value is not None else self._absent(each.name, item)
        return found

    def _absent(self, name: str, item: Item) -> Any:
        if isinstance(self.of.fields[name].shape, Maybe):
            return None
        if self.of.large:
            raise ItemMismatch(self.of.name, name, "the attribute is missing", None)
        return getattr(self.of.decode(item), name)

    def _group(self, values: Mapping[str, Any]) -> Group | None:
        by = tuple([values[name] for name, _ in self._by])
        text = self._texts.get(by)
        if text is None:
            if None in by:
                return None
            if len(self._texts) > _REMEMBERED:
                self._texts.clear()
            text = self._texts[by] = SEPARATOR.join(
                [each.write(plain(value)) for (_, each), value in zip(self._by, by)]
            )
        if self._bucket is None:
            return Group(text)
        moment = values[self._bucket[0]]
        return None if moment is None else Group(text, period_text(self._bucket[1], moment))

    def _copy(self, item: Item, name: str, copied: frozenset[str] | None) -> Item:
        if copied is None:
            return {attribute: value for attribute, value in item.items() if attribute in self.of.fields}
        return {attribute: item[attribute] for attribute in (*copied, name) if attribute in item}

    # -- expiry

    def end(self, bucket: str) -> float | None:
        """When a bucket's items expire."""
        if self.declared.keep is None or self._bucket is None:
            return None
        return (following(self._bucket[1], period_start(bucket)) + self.declared.keep).timestamp()

    def is_over(self, bucket: str, now: float) -> bool:
        end = self.end(bucket)
        return end is not None and end <= now

    # -- asking

    def asked(self, given: Mapping[str, Any], *, with_bucket: bool) -> Group:
        """The group that is asked for by the values of its fields."""
        names = [name for name, _ in self._by]
        if with_bucket and self._bucket is not None:
            names.append(self._bucket[0])
        if set(names) != set(given):
            raise DesignError(
                f"a group of this view is {', '.join(names) or 'everything'}, not {', '.join(given) or 'nothing'}",
                hint=f"as in get({', '.join(f'{name}=...' for name in names)})",
            )
        by = SEPARATOR.join(encoding.write(plain(given[name])) for name, encoding in self._by)
        if not with_bucket or self._bucket is None:
            return Group(by)
        return Group(by, self.bucket_text(given[self._bucket[0]]))

    def bucket_text(self, moment: datetime) -> str:
        if self._bucket is None:
            raise DesignError("this view has no buckets of time", hint="declare it with bucket=(field, 'hour')")
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise DesignError(f"{moment!r} is no datetime with a time zone", hint="say datetime(..., tzinfo=UTC)")
        return period_text(self._bucket[1], moment)

    def told(self, group: Group) -> dict[str, Any]:
        """The values of the fields that make a group; the bucket's is its first moment."""
        texts = group.by.split(SEPARATOR) if self._by else []
        told = {name: encoding.read(text) for (name, encoding), text in zip(self._by, texts, strict=True)}
        if self._bucket is not None:
            told[self._bucket[0]] = period_start(group.bucket)
        return told


def _orders(metrics: Mapping[str, Metric]) -> dict[str, list[Ordered]]:
    """The ordered metrics by their field: those of one field share its rows."""
    found: dict[str, list[Ordered]] = {}
    for metric in metrics.values():
        if isinstance(metric, Ordered):
            found.setdefault(metric.field.name, []).append(metric)
    return found


def _copied(metrics: Sequence[Ordered]) -> frozenset[str] | None:
    """What rows keep of their source; None for everything."""
    names: set[str] = set()
    for metric in metrics:
        if metric.copies is None:
            return None
        names.update(each.name for each in metric.copies)
    return frozenset(names)


def bound(where: Any, of: EntityMap) -> BoundCondition:
    """A condition that is evaluated here as DynamoDB would."""
    condition = as_condition(where)
    for reference in references(condition):
        if reference.name not in of.fields or reference.name in of.large:
            raise DesignError(f"{reference!r} cannot be compared in a view of {of.name}", hint="name a field of it")
    writer = FilterWriter()
    text = writer.term(condition, of.info)
    return bind_condition(parse_condition(text), writer.names, writer.values)

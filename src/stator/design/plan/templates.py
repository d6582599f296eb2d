"""Key templates and filters: text with placeholders for fields or arguments.

    PK  "USER#" {user_id}            SK  "ORDER#" {placed_at: datetime} "#" {order_id}

A template is data: the lock file stores it, and it works without the classes it was planned from. A
``native`` template is a single placeholder: the attribute's own value, in DynamoDB's own type.
Every other template produces a string.

A key value that one partition cannot serve is split into shards: a shard number, computed from a
hash of the item's identity, follows the value (``STATUS#open#07``). A caller that knows the
identity computes the shard; a caller that reads the whole value queries every shard.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from stator.design.entities.derived_parts import DerivedPart
from stator.design.entities.shapes import Scalar
from stator.design.entities.wire import WrongValue, encode_anything, encoder
from stator.design.plan import key_text as keys
from stator.errors import DesignError, RequestRefused
from stator.expr.bind import bind_condition
from stator.expr.condition import evaluate
from stator.expr.names import parse_with_names
from stator.expr.parser import parse_condition
from stator.model.values import Item, Value

MOST_OPTIONS = 100
"""DynamoDB's limit for the operands of IN."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a template.

    ``kind`` says which: ``text`` is literal, ``field`` and ``param`` are placeholders, and
    ``shard`` is a shard number. The number is computed from the parts in ``of``. If ``of`` is
    empty, the caller passes the number. If the part is ``adaptive``, a value may have more shards
    than ``shards``, and the number may be another one (``stator.tables.shards.index_shards``).
    """

    kind: Literal["text", "field", "param", "shard"]
    value: str = ""
    encoding: str = ""
    inverted: bool = False
    step: int = 0
    shards: int = 1
    of: tuple[Part, ...] = ()
    adaptive: bool = False

    def __str__(self) -> str:
        return {"text": self.value, "shard": "{shard}"}.get(self.kind, f"{{{self.name}}}")

    @property
    def name(self) -> str:
        """The name of the field or argument.

        A derived part has the name that the planner gives it, such as ``month_of(placed_at)``.
        """
        if self.kind != "field" or not keys.is_part(self.encoding):
            return self.value
        return str(DerivedPart(self.value, self.encoding.partition(".")[2]))

    def fill(self, values: Mapping[str, Any], shard: int | None) -> str | None:
        if self.kind == "text":
            return self.value
        if self.kind == "shard":
            return self._fill_shard(values, shard)
        value = stepped(self, values[self.value])
        try:
            return (
                None if value is None else keys.encode(self.encoding, value, inverted=self.inverted)
            )
        except DesignError as error:
            raise _about(self.name, error) from None

    def _fill_shard(self, values: Mapping[str, Any], shard: int | None) -> str | None:
        if not self.of:
            assert shard is not None
            return shard_text(shard, self.shards)
        texts = [part.fill(values, shard) for part in self.of]
        return shard_text(shard_of(keys.SEPARATOR.join(map(str, texts)), self.shards), self.shards)


def stepped(part: Part, value: Any) -> Any:
    """Return the next value above ``value`` if ``part.step`` is 1, below it if -1.

    A BETWEEN includes its bounds, so an exclusive bound is replaced by its neighbour. With a step
    of 0, ``value`` itself is returned.
    """
    if not part.step or value is None:
        return value
    step = keys.encoding_named(part.encoding).step
    assert step is not None
    try:
        return step(keys.plain(value), part.step)
    except (TypeError, OverflowError):
        fill = (part.encoding, keys.plain(value))
        try:
            keys.encode(*fill)  # names the type that the key needs
        except DesignError as error:
            raise _about(part.name, error) from None
        raise RequestRefused(
            f"{part.name}: there is no value next to {value!r:.60} to exclude",
            hint="compare with <= or >=",
        ) from None


def text(value: str) -> Part:
    return Part("text", value)


def shard_of(identity: str, shards: int) -> int:
    """Return the shard of an item, computed from the key text of its identity.

    The hash function must never change, because stored keys contain the shard.
    """
    return zlib.crc32(identity.encode()) % shards


def shard_text(shard: int, shards: int) -> str:
    """Return the shard number, padded so that all shards of a value have the same width."""
    return f"{shard:0{len(str(shards - 1))}d}"


@dataclass(frozen=True, slots=True)
class Template:
    parts: tuple[Part, ...]
    native: bool = False

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    @property
    def is_open(self) -> bool:
        """Whether the template is native and its value is a placeholder, not a constant."""
        return self.native and self.parts[0].kind != "text"

    def fill(self, values: Mapping[str, Any], shard: int | None = None) -> Value | None:
        """Return the attribute's value, or None if any value in the template is None."""
        if self.native:
            [part] = self.parts
            if part.kind == "text":
                return {str(keys.encoding_named(part.encoding).native): part.value}
            value = stepped(part, values[part.value])
            return None if value is None else wire_value(part.encoding, value, part.name)
        texts = [part.fill(values, shard) for part in self.parts]
        return None if any(each is None for each in texts) else {"S": "".join(map(str, texts))}


def filled(template: Template, arguments: Mapping[str, Any], shard: int | None = None) -> Value:
    """Return the value of a template for a key condition.

    Raises RequestRefused if an argument is None, because no key contains None.
    """
    value = template.fill(arguments, shard)
    if value is None:
        names = [part.name for part in template.parts if arguments.get(part.value, "") is None]
        raise RequestRefused(
            f"{' and '.join(names) or template} is None, which no key contains",
            hint="pass a value; to find items without one, declare another pattern with == None",
        )
    if value in _EMPTY:
        raise RequestRefused(
            f"{template.parts[0].name} is empty, which no key contains", hint="pass a value"
        )
    return value


_EMPTY = ({"S": ""}, {"B": ""})


def listed_argument(name: str, given: Any) -> list[Any]:
    """Return the members of a list argument. Raises RequestRefused for anything else."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise RequestRefused(
            f"{name} is a list of values, not {type(given).__name__}",
            hint=f"pass {name}=[first, second]",
        )
    members = list(given)
    if any(member is None for member in members):
        raise RequestRefused(f"{name} contains None, which is not a value", hint="leave None out")
    return members


def _about(name: str, error: DesignError) -> DesignError:
    """Return the error with the name of the field or argument in front of its message."""
    return DesignError(f"{name}: {error.message}", hint=error.hint)


def _shown(value: Any) -> str:
    """Return a wrong value as text for an error message: ``: 17``.

    Returns "" unless the value is text, a number or a date: lists and maps may contain whole items.
    """
    return f": {value!r:.60}" if isinstance(value, (str, int, float, date)) else ""


def wire_value(encoding: str, value: Any, name: str) -> Value:
    """Return a value as DynamoDB JSON, in the form of an encoding.

    The encoding ``any`` follows the value's own type. For the encoding of a derived part, such as
    ``datetime.month``, the result is text. ``name`` is the field or argument to name in an error.
    """
    if keys.is_part(encoding):
        return {"S": keys.part_text(encoding, value)}
    try:
        if encoding == "any":
            return encode_anything(keys.plain(value))
        return encoder(Scalar(keys.encoding_named(encoding).python))(keys.plain(value))
    except WrongValue as error:
        if encoding == "any":
            raise DesignError(
                f"{name}: a condition cannot compare this {type(value).__name__}",
                hint="compare with text, bytes, a number, a time, a list or a map; or test the "
                "parts of the value, such as attr(...).contains(...)",
            ) from None
        raise DesignError(
            f"{name}: {error.wanted}{_shown(value)}", hint="pass a value of the field's type"
        ) from None


@dataclass(frozen=True, slots=True)
class PlannedKeyAttribute:
    """A key attribute that items carry: its name and the template that fills it.

    ``index`` is None for the table's own key. ``when`` has the conditions of a sparse index, as
    pairs of a template and a text. An item gets the attribute only if each template, filled in for
    the item, gives its text. If the text is None, the item must lack the field instead.
    """

    name: str
    template: Template
    index: str | None = None
    when: tuple[tuple[Template, str | None], ...] = ()
    is_sort: bool = field(default=False, compare=False)
    """Whether this is a sort key. It is not compared, because lock files of format 1 lack it."""

    @property
    def condition(self) -> str:
        """The conditions under which an item has the attribute, as text."""
        return " and ".join(
            f"{test} is {'absent' if wanted is None else wanted}" for test, wanted in self.when
        )

    def value(self, values: Mapping[str, Any]) -> Value | None:
        for test, required in self.when:
            if test.fill(values) != (None if required is None else {"S": required}):
                return None
        return self.template.fill(values)


# --- filters --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterValue:
    """A value in a filter: an argument of the pattern (``param``), or a ``constant``.

    ``encoding`` is the name of the encoding in which the argument is written, such as ``int``.
    """

    placeholder: str
    param: str | None = None
    encoding: str = "any"
    constant: Value | None = None
    is_list: bool = False
    """Whether the argument is a list. The filter then accepts any value in the list."""

    def fill_list(self, arguments: Mapping[str, Any]) -> dict[str, Value]:
        """Return a placeholder for each member of a list argument, with its value."""
        assert self.param is not None
        members = dict.fromkeys(listed_argument(self.param, arguments[self.param]))
        if len(members) > MOST_OPTIONS:
            raise RequestRefused(
                f"{self.param} has {len(members)} values; a filter takes {MOST_OPTIONS} at most",
                hint="split the list, and call the pattern for each part",
            )
        return {
            f"{self.placeholder}_{at}": wire_value(self.encoding, member, self.param)
            for at, member in enumerate(members)
        }

    def fill(self, arguments: Mapping[str, Any]) -> Value:
        if self.param is None:
            assert self.constant is not None
            return self.constant
        return wire_value(self.encoding, arguments[self.param], self.param)


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter expression with its attribute names and values."""

    expression: str
    names: tuple[tuple[str, str], ...]
    values: tuple[FilterValue, ...]

    @property
    def lists(self) -> tuple[str, ...]:
        """The names of the arguments that are lists: the filter accepts any value in the list."""
        return tuple(str(value.param) for value in self.values if value.is_list)

    def fill(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
        """Return the expression and the values of its placeholders."""
        expression, filled = self.expression, dict[str, Value]()
        for value in self.values:
            if value.is_list:
                members = value.fill_list(arguments)
                expression = expression.replace(f"({value.placeholder})", f"({', '.join(members)})")
                filled |= members
            else:
                filled[value.placeholder] = value.fill(arguments)
        return expression, filled

    def condition(self, arguments: Mapping[str, Any]) -> Callable[[Item], bool]:
        """Return a function that says whether an item passes, as DynamoDB would evaluate it."""
        expression, values = self.fill(arguments)
        bound = bind_condition(
            parse_with_names(parse_condition, expression, self.names), None, values
        )
        return lambda item: evaluate(bound, item)

    def __str__(self) -> str:
        shown = self.expression
        for placeholder, name in reversed(self.names):
            shown = shown.replace(placeholder, name)
        for value in reversed(self.values):
            what = f":{value.param}" if value.param is not None else _literal(value.constant)
            shown = shown.replace(value.placeholder, what)
        return shown


def _literal(value: Value | None) -> str:
    [(_, content)] = (value or {"NULL": True}).items()
    return repr(content)

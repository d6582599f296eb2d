"""Python source of encoders and decoders, written shape by shape for the codec.

Each shape becomes an expression in which a common value costs a type test, a dictionary and no
call: ``{"S": v} if type(v) is str else e3(v)``. ``e3`` and the like are closures of ``wire``, which
accept other values that fit (a subclass, an int for a Decimal) or raise. A nested class gets its
own function. Decoding has no tests: a value that does not fit fails somewhere, and the codec then
walks the item field by field to find out where.

The reason is speed: closures that call closures took 1.65 times as long for an order with four
lines (``python -m bench.codecs``).
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from stator.design.entities.shapes import (
    Choice,
    ListOf,
    MapOf,
    Maybe,
    Nested,
    Scalar,
    SetOf,
    Shape,
    default_maker,
)
from stator.design.entities.wire import (
    REQUIRED,
    absent_value,
    choices,
    decode_time,
    decoder,
    encode_utc,
    encoder,
    maker_of,
)

# For the values that need no closure: the test that the fast form applies, and the fast form.
_ENCODE: dict[type, tuple[str, str]] = {
    str: ("type({v}) is str", '{{"S": {v}}}'),
    int: ("type({v}) is int", '{{"N": str({v})}}'),
    bool: ("{v} is True or {v} is False", '{{"BOOL": {v}}}'),
    Decimal: ("type({v}) is Decimal and {v}.is_finite()", '{{"N": str({v})}}'),
    bytes: ("type({v}) is bytes", '{{"B": b64encode({v}).decode()}}'),
    UUID: ("type({v}) is UUID", '{{"S": str({v})}}'),
    datetime: (
        "type({v}) is datetime and {v}.tzinfo is UTC",
        '{{"S": encode_utc({v})}}',
    ),
}
_DECODE: dict[type, str] = {
    str: '{v}["S"]',
    int: 'int({v}["N"])',
    float: 'float({v}["N"])',
    Decimal: 'Decimal({v}["N"])',
    bool: '{v}["BOOL"]',
    bytes: 'b64decode({v}["B"])',
    datetime: 'decode_time({v}["S"])',
    date: 'date.fromisoformat({v}["S"])',
    UUID: 'UUID({v}["S"])',
}
_MEMBER: dict[type, str] = {
    int: "int",
    float: "float",
    Decimal: "Decimal",
    bytes: "b64decode",
    UUID: "UUID",
}


class CodecSource:
    """Collects the source of generated functions, and the objects that the source refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "Decimal": Decimal, "UUID": UUID, "UTC": UTC, "date": date, "datetime": datetime,
            "b64encode": b64encode, "b64decode": b64decode, "decode_time": decode_time,
            "encode_utc": encode_utc, "new": object.__new__,
        }  # fmt: skip
        self._count = 0
        self._nested: dict[tuple[str, Nested], str] = {}
        """The functions written for nested classes, so that each is written once."""

    def bind(self, prefix: str, value: Any) -> str:
        """Make an object available to the generated code, and return its new name there."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _once(self, kind: str, shape: Nested, write: Callable[[Nested], str]) -> str:
        """Return the name of the function of this ``kind`` for a nested class.

        The first call for a kind and a class calls ``write``, which adds the function's source and
        returns its name.
        """
        if (kind, shape) not in self._nested:
            self._nested[kind, shape] = write(shape)
        return self._nested[kind, shape]

    def function(self, name: str, argument: str, body: list[str]) -> None:
        self.lines += [f"def {name}({argument}):", *(f"    {line}" for line in body), ""]

    def compiled(self, name: str) -> Callable[[Any], Any]:
        return self.functions()[name]

    def functions(self) -> dict[str, Callable[[Any], Any]]:
        """Compile the source and return its namespace: functions and bound objects by name."""
        namespace = dict(self.names)
        exec("\n".join(self.lines), namespace)  # noqa: S102 - all names are identifiers
        return namespace

    # --- encoding --------------------------------------------------------------------------------

    def encode(self, shape: Shape, value: str) -> str:
        """Return an expression for the wire form of the variable ``value``.

        The expression handles None only for an optional shape that stores None (``kept``). For any
        other shape, the caller must have excluded None.
        """
        if isinstance(shape, Maybe):
            inner = self.encode(shape.inner, value)
            return f'({{"NULL": True}} if {value} is None else {inner})' if shape.kept else inner
        if isinstance(shape, Nested):
            return f"{self._once('encode', shape, self._encode_nested)}({value})"
        other = f"{self.bind('e', encoder(shape))}({value})"
        match shape:
            case Scalar(python) if python in _ENCODE:
                test, form = (part.format(v=value) for part in _ENCODE[python])
                return f"{form} if {test} else {other}"
            case Choice(enum=enum, scalar=scalar, is_literal=False) if (
                enum is not None and scalar.python in (str, int)
            ):
                inner = f"{value}._value_" if scalar.python is str else f"str({value}._value_)"
                test = f"type({value}) is {self.bind('t', enum)}"
                return f'{{"{shape.kind}": {inner}}} if {test} else {other}'
            case ListOf(elements=(element,), fixed=False):
                item = self.fresh("x")
                one = self.encode(element, item)
                test = f"type({value}) is {shape.container.__name__}"
                return f'{{"L": [{one} for {item} in {value}]}} if {test} else {other}'
            case SetOf(element=Scalar(python=python), frozen=frozen, kept=False) if python is str:
                container, only_str = "frozenset" if frozen else "set", self.bind("t", {str})
                test = f"type({value}) is {container} and {{*map(type, {value})}} == {only_str}"
                return f'{{"SS": sorted({value})}} if {test} else {other}'
        return other

    def _encode_nested(self, shape: Nested) -> str:
        name = self.fresh("nested")
        cls, other = self.bind("t", shape.cls), self.bind("e", encoder(shape))
        body = [f"if type(o) is not {cls}:", f"    return {other}(o)", "item = {}"]
        for field, inner, _ in shape.fields:
            body += [f"v = {attribute('o', field)}", *self.put(field, inner)]
        self.function(name, "o", [*body, 'return {"M": item}'])
        return name

    def put(self, field: str, shape: Shape) -> list[str]:
        """Return statements that encode the variable ``v`` and store it in ``item``.

        The statements store nothing for None or an empty set.
        """
        form = f"item[{field!r}] = {self.encode(shape, 'v')}"
        tests = []
        if isinstance(shape, Maybe) and not shape.kept:
            tests.append("v is not None")
            shape = shape.inner
        if isinstance(shape, SetOf) and not shape.kept:
            tests.append("(v or type(v) not in (set, frozenset))")
        return [f"if {' and '.join(tests)}:", f"    {form}"] if tests else [form]

    # --- decoding --------------------------------------------------------------------------------

    def decode(self, shape: Shape, value: str) -> str:
        """Return an expression that decodes the wire value in the variable ``value``."""
        match shape:
            case Scalar(python) if python in _DECODE:
                return _DECODE[python].format(v=value)
            case Choice(scalar=scalar):
                return f"{self.bind('m', choices(shape))}[{self.decode(scalar, value)}]"
            case Maybe(inner):
                return f'(None if "NULL" in {value} else {self.decode(inner, value)})'
            case ListOf(elements=(element,), fixed=False):
                item = self.fresh("x")
                made = f'[{self.decode(element, item)} for {item} in {value}["L"]]'
                return made if shape.container is list else f"tuple({made})"
            case MapOf(values):
                key, item = self.fresh("k"), self.fresh("x")
                decoded = self.decode(values, item)
                return f'{{{key}: {decoded} for {key}, {item} in {value}["M"].items()}}'
            case SetOf(element=Scalar(python=python) as element, frozen=frozen, kept=False) if (
                python is str or python in _MEMBER
            ):
                members = f'{value}["{element.kind}S"]'
                made = members if python is str else f"map({_MEMBER[python]}, {members})"
                return f"{'frozenset' if frozen else 'set'}({made})"
            case Nested():
                return f"{self._once('decode', shape, self._decode_nested)}({value})"
        return f"{self.bind('d', decoder(shape))}({value})"

    def _decode_nested(self, shape: Nested) -> str:
        name = self.fresh("nested")
        if is_plain(shape.cls):
            shapes = {field: inner for field, inner, _ in shape.fields}
            defaults = {
                field: default_of(shape.cls, field, inner) for field, inner in shapes.items()
            }
            body = self.fill(self.bind("t", shape.cls), shapes, defaults)
        else:
            body = ["d = {}"]
            for field, inner, has_default in shape.fields:
                body += self.get(field, inner, absent_value(inner), leave_out=has_default)
            body.append(f"return {self.bind('make', maker_of(shape))}(d)")
        self.function(name, "value", ['item = value["M"]', *body])
        return name

    def fill(
        self,
        cls: str,
        shapes: dict[str, Shape],
        absent: dict[str, Callable[[], Any]],
        fields: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Return statements that create an object from ``item``.

        The statements fill its ``__dict__`` directly, without ``__init__``. ``fields`` maps the
        names of attributes to the names of fields; by default both are the same.
        """
        body = [f"o = new({cls})", "d = o.__dict__"]
        for name, shape in shapes.items():
            body += self.get(name, shape, absent[name], field=(fields or {}).get(name, name))
        return [*body, "return o"]

    def get(
        self,
        name: str,
        shape: Shape,
        absent: Callable[[], Any],
        *,
        leave_out: bool = False,
        field: str | None = None,
    ) -> list[str]:
        """Return statements that decode the attribute ``name`` of ``item`` into ``d``.

        With ``leave_out``, the statements skip a missing attribute. ``field`` is the name in ``d``,
        by default the name of the attribute.
        """
        form, field = self.decode(shape, "v"), field or name
        if leave_out:
            return [f"v = item.get({name!r})", "if v is not None:", f"    d[{field!r}] = {form}"]
        if absent is REQUIRED:
            return [f"v = item[{name!r}]", f"d[{field!r}] = {form}"]
        return [
            f"v = item.get({name!r})",
            f"d[{field!r}] = {self.bind('a', absent)}() if v is None else {form}",
        ]


def attribute(owner: str, name: str) -> str:
    """Return source that reads an attribute: ``o.total``.

    For a name that is a Python keyword, which some model libraries allow, the source calls
    ``getattr``.
    """
    return f"getattr({owner}, {name!r})" if keyword.iskeyword(name) else f"{owner}.{name}"


def is_plain(cls: type) -> bool:
    """Whether instances can be built by filling ``__dict__``, without calling ``__init__``.

    This is possible if the ``__init__`` of the dataclass does nothing but set the fields.
    """
    if "__dataclass_params__" not in cls.__dict__ or hasattr(cls, "__post_init__"):
        return False
    made: Any = cls
    params = made.__dataclass_params__
    stored_elsewhere = any(
        hasattr(inspect.getattr_static(cls, field.name, None), "__set__")
        for field in dataclasses.fields(cls)
    )
    return (
        bool(params.init)
        and cls.__dictoffset__ != 0
        and made.__new__ is object.__new__
        and (bool(params.frozen) or made.__setattr__ is object.__setattr__)
        and not stored_elsewhere
    )


def default_of(cls: type, name: str, shape: Shape) -> Callable[[], Any]:
    """Return a function that creates the value of a field whose attribute the item lacks.

    The value is the field's default. If there is none, the field's type decides (``absent_value``).
    """
    declared = next(field for field in dataclasses.fields(cls) if field.name == name)
    return default_maker(declared) or absent_value(shape)

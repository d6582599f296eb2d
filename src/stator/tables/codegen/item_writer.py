"""Whole items as JSON, for batches: from the object to the bytes of a PutRequest in one function.

A batch of small items needs few requests, so the Python time for each item matters. Building
DynamoDB JSON as dictionaries and then serialising them took 8.5 microseconds for an item of 1 KB.
Writing the bytes directly takes about half. The generated code is about

    def bulk(o):
        v1 = o.item_id
        if type(v1) is not str: return checked(o)
        v2 = o.total
        if type(v2) is not Decimal or not v2.is_finite(): return checked(o)
        k1 = "ITEM#" + w1(v1)
        out = b'{"PutRequest":{"Item":{"item_id":{"S":%b},"total":{"N":"%b"},"PK":{"S":%b}' % (
            dumps(v1), str(v2).encode(), dumps(k1))
        v3 = o.note
        if v3 is not None:
            if type(v3) is not str: return checked(o)
            out += b',"note":{"S":%b}' % dumps(v3)
        return k1, out + b"}}}"

``w1`` escapes a value for key text. The function returns the item's key and the bytes. If a value
is not exactly of its field's type, the object goes to ``checked``, the codec's encoder. It accepts
other fitting values, such as a subclass, or raises an error that names the field. The tests check
that the generated code and ``checked`` return the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from stator.design.entities.codec_source import CodecSource, attribute
from stator.design.entities.entity import EntityInfo
from stator.design.entities.entity_versions import UNKNOWN, VERSION_ATTRIBUTE
from stator.design.entities.shapes import Choice, Maybe, Scalar, SetOf, Shape
from stator.design.entities.wire import WrongValue
from stator.design.plan.plan import EntityPlan, TablePlan
from stator.tables.codegen.key_writer import is_simple, is_the_field, key_text, key_writer

BulkEntry = tuple[Any, bytes]

# By type: the test that the fast form does not apply, the JSON with a placeholder, its value.
_FORMS: dict[type, tuple[str, str, str]] = {
    str: ("type({v}) is not str", '{{"S":%b}}', "dumps({v})"),
    int: ("type({v}) is not int", '{{"N":"%d"}}', "{v}"),
    bool: ("type({v}) is not bool", '{{"BOOL":%b}}', "(b'true' if {v} else b'false')"),
    Decimal: (
        "type({v}) is not Decimal or not {v}.is_finite()",
        '{{"N":"%b"}}',
        "str({v}).encode()",
    ),
    UUID: ("type({v}) is not UUID", '{{"S":"%b"}}', "str({v}).encode()"),
    datetime: (
        "type({v}) is not datetime or {v}.tzinfo is not UTC",
        '{{"S":%b}}',
        (
            "(dumps({v}, None, UTC_Z) if {v}.microsecond"
            " else dumps({v}, None, UTC_Z)[:20] + b'.000000Z\"')"
        ),
    ),
}


def bulk_writer(
    known: EntityInfo, plan: EntityPlan, table: TablePlan, checked: Callable[[Any], BulkEntry]
) -> Callable[[Any], BulkEntry]:
    """Return a function that turns an object into its key and the JSON of a PutRequest.

    ``checked`` is the slower function for objects with a value that is not exactly of its field's
    type. It is returned itself for entities with variants, and for table keys that are not simple
    (``is_simple``).
    """
    names = (table.partition,) if table.sort is None else (table.partition, table.sort)
    base = [key for key in plan.keys if key.index is None]
    if known.variants or not all(is_simple(known, key) for key in base):
        return checked
    writer = _Writer(known, checked)
    for name, field in known.fields.items():
        writer.field(name, field.shape, may_be_falsy=name not in plan.identity)
    for key in plan.keys:
        if is_the_field(key):
            continue
        if is_simple(known, key):
            writer.key(
                key.name,
                " + ".join(key_text(writer.source, known, part) for part in key.template.parts),
            )
        else:
            writer.rest.append(key)
    if plan.discriminator is not None:
        writer.constant(plan.discriminator, {"S": plan.name})
    if known.shape_version.value is not None:
        writer.constant(VERSION_ATTRIBUTE, known.shape_version.value)
    return writer.compiled(names)


class _Writer:
    def __init__(self, known: EntityInfo, checked: Callable[[Any], BulkEntry]) -> None:
        self.source = CodecSource()
        self.source.names |= {
            "dumps": orjson.dumps,
            "checked": checked,
            "UTC_Z": orjson.OPT_UTC_Z,
            "WrongValue": WrongValue,
        }
        self.known = known
        self.rest: list[Any] = []
        self._checks: list[str] = []
        self._later: list[str] = []
        self._template: list[str] = []
        self._values: list[str] = []
        self._keys: dict[str, str] = {}

    def field(self, name: str, shape: Shape, *, may_be_falsy: bool) -> None:
        value = self.source.fresh("f")
        field = self.known.python_names.get(name, name)
        self._checks.append(f"{value} = {attribute('o', field)}")
        if not may_be_falsy:  # empty text in the identity is refused there
            self._checks.append(f"if not {value}: return checked(o)")
        is_optional = isinstance(shape, Maybe) and not shape.kept
        inner = shape.inner if isinstance(shape, Maybe) and is_optional else shape
        may_be_empty = isinstance(inner, SetOf) and not inner.kept
        test, form, written = self._forms(inner, value)
        if not is_optional and not may_be_empty:
            self._checks += [f"if {test}: return checked(o)"] if test else []
            self._template.append(f"{_quoted(name)}:{form}")
            self._values.append(written)
            return
        present = [f"{value} is not None"] if is_optional else []
        present += [f"({value} or type({value}) not in (set, frozenset))"] if may_be_empty else []
        self._later.append(f"if {' and '.join(present)}:")
        self._later += [f"    if {test}: return checked(o)"] if test else []
        self._later.append(f"    out += {f',{_quoted(name)}:{form}'.encode()!r} % ({written},)")

    def _forms(self, shape: Shape, value: str) -> tuple[str, str, str]:
        """Return three pieces of source code for one value.

        The first is the test that sends the value to ``checked``, the second the JSON with a
        placeholder, and the third the expression that fills the placeholder.
        """
        if isinstance(shape, Scalar) and shape.python in _FORMS:
            test, form, written = _FORMS[shape.python]
            return test.format(v=value), form.format(), written.format(v=value)
        if isinstance(shape, Choice) and _is_text_enum(shape):
            return (
                f"type({value}) is not {self.source.bind('t', shape.enum)}",
                '{"S":%b}',
                f"dumps({value}._value_)",
            )
        return "", "%b", f"dumps({self.source.encode(shape, value)})"

    def key(self, name: str, text: str) -> None:
        value = self.source.fresh("k")
        self._checks.append(f"{value} = {text}")
        self._template.append(f'{_quoted(name)}:{{"S":%b}}')
        self._values.append(f"dumps({value})")
        self._keys[name] = value

    def constant(self, name: str, value: dict[str, Any]) -> None:
        self._template.append(f"{_quoted(name)}:{orjson.dumps(value).decode().replace('%', '%%')}")

    def compiled(self, key_names: tuple[str, ...]) -> Callable[[Any], BulkEntry]:
        template = '{"PutRequest":{"Item":{' + ",".join(self._template)
        body = [
            f"if getattr(o, {UNKNOWN!r}, None) is not None: return checked(o)",
            *self._checks,
            f"out = {template.encode()!r} % ({', '.join(self._values)},)",
            *self._later,
        ]
        if self.rest:
            write = self.source.bind("rest", key_writer(self.known, self.rest))
            body += ["more = {}", f"{write}(o, more)"]
            body += ["if more: out += b',' + dumps(more)[1:-1]"]
        keys = [self._keys[name] for name in key_names]
        body.append(
            f"return {keys[0] if len(keys) == 1 else f'({keys[0]}, {keys[1]})'}, out + b'}}}}}}'"
        )
        # A codec function refuses a wrong value without naming the field; ``checked`` does.
        guarded = [
            "try:",
            *(f"    {line}" for line in body),
            "except WrongValue:",
            "    return checked(o)",
        ]
        self.source.function("bulk", "o", guarded)
        made: Callable[[Any], BulkEntry] = self.source.compiled("bulk")
        return made


def _is_text_enum(shape: Choice) -> bool:
    """Whether a field is a str Enum. Every member is valid, so its type is the only check."""
    return shape.enum is not None and shape.scalar.python is str and not shape.is_literal


def _quoted(name: str) -> str:
    return orjson.dumps(name).decode().replace("%", "%%")

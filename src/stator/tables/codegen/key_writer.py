"""Generated functions that compute key attributes. Every write needs them, so they must be fast.

For ``PK "USER#" {user_id}`` and a sparse ``GSI1PK "OPEN#" {region}`` the code is about

    def keys(o, item):
        item["PK"] = {"S": "USER#" + w1(o.user_id)}
        v2 = o.region
        v3 = o.status
        if v2 is not None and v3 is not None and w4(v3) == "open":
            item["GSI1PK"] = {"S": "OPEN#" + w5(v2)}

``key_writer`` reads the fields of an object whose types the codec has checked. ``key_reader``
returns one function per attribute that reads a mapping of field values, any of which may be None.
The tests compare both with the plan's own templates, which fill keys without generated code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from stator.design.entities.codec_source import CodecSource, attribute
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import CLASS_TAG, Choice, Coded, Maybe, Scalar
from stator.design.plan import key_text as keys
from stator.design.plan.plan import EntityPlan
from stator.design.plan.templates import (
    Part,
    PlannedKeyAttribute,
    Template,
    shard_of,
    shard_text,
    stepped,
    wire_value,
)
from stator.model.values import Item, Value

KeyWriter = Callable[[Any, Item], None]
KeyReader = Callable[[Mapping[str, Any]], Value | None]


def key_writer(known: EntityInfo, attributes: Iterable[PlannedKeyAttribute]) -> KeyWriter:
    """Return a function that puts key attributes of an object into its item.

    A key attribute that is itself a field is skipped, because the codec has written it.
    """
    writer = _KeySource(known, lambda field: _of_object(known, field), is_checked=True)
    body = [
        line for each in attributes if not is_the_field(each) for line in writer.statements(each)
    ]
    writer.source.function("keys", "o, item", body or ["pass"])
    return writer.source.compiled("keys")  # type: ignore[return-value]


def key_reader(known: EntityInfo, key: PlannedKeyAttribute) -> KeyReader:
    """Return a function that computes a key attribute from a mapping of field values.

    The function returns None if an item with these values does not have the attribute.
    """
    writer = _KeySource(
        known, lambda field: f"o[{field!r}]" if field in known.fields else "None", is_checked=False
    )
    body = ["item = {}", *writer.statements(key), f"return item.get({key.name!r})"]
    writer.source.function("key", "o", body)
    return writer.source.compiled("key")


def _of_object(known: EntityInfo, field: str) -> str:
    """Return the source that reads a field of the object ``o``, such as ``o.user_id``.

    The source is ``None`` if only another variant of the entity has the field.
    """
    if field not in known.own_fields and field != CLASS_TAG:
        return "None"
    return attribute("o", known.python_names.get(field, field))


class _KeySource:
    """Generates the Python source that computes key attributes.

    ``read`` maps the name of a field to the source that reads the field. ``is_checked`` says that
    the codec has already checked the types of the values.
    """

    def __init__(self, known: EntityInfo, read: Callable[[str], str], *, is_checked: bool) -> None:
        self.source = CodecSource()
        self._known = known
        self._read = read
        self._is_checked = is_checked

    def statements(self, key: PlannedKeyAttribute) -> list[str]:
        """Return statements that write the key attribute into ``item``.

        They leave the attribute out if one of its fields is None, or if a condition of its sparse
        path is false.
        """
        if self._is_checked and is_simple(self._known, key):
            parts = " + ".join(
                key_text(self.source, self._known, each) for each in key.template.parts
            )
            return [f'item[{key.name!r}] = {{"S": {parts}}}']
        lines: list[str] = []
        tests: list[str] = []
        for template, required in key.when:
            if required is None:
                tests.append(f"{self._value(template.parts[0], lines)} is None")
                continue
            text = self._template(template, lines, tests)
            tests.append(f"{text} == {{'S': {required!r}}}")
        value = self._template(key.template, lines, tests)
        written = f"item[{key.name!r}] = {value}"
        return [*lines, *([f"if {' and '.join(tests)}:", f"    {written}"] if tests else [written])]

    def _template(self, template: Template, lines: list[str], tests: list[str]) -> str:
        """Return an expression for the value of a template.

        Appends the statements that the expression needs to ``lines``, and the conditions under
        which it is valid to ``tests``.
        """
        if not template.native:
            texts = [self._part(part, lines, tests) for part in template.parts]
            return f'{{"S": {" + ".join(texts)}}}'
        [part] = template.parts
        if part.kind == "text":
            return repr({str(keys.encoding_named(part.encoding).native): part.value})
        value = self._value(part, lines)
        tests.append(f"{value} is not None")
        wire = self.source.bind("wire", wire_value)
        return f"{wire}({part.encoding!r}, {self._stepped(part, value)}, {part.name!r})"

    def _part(self, part: Part, lines: list[str], tests: list[str]) -> str:
        if part.kind == "text":
            return repr(part.value)
        if part.kind == "shard":
            identity = [self._member(each, lines) for each in part.of]
            joined = f" + {keys.SEPARATOR!r} + ".join(identity)
            shard = f"{self.source.bind('shard_of', shard_of)}({joined}, {part.shards})"
            return f"{self.source.bind('shard_text', shard_text)}({shard}, {part.shards})"
        value = self._value(part, lines)
        tests.append(f"{value} is not None")
        return self._encoded(part, value)

    def _member(self, part: Part, lines: list[str]) -> str:
        """Return the source for one identity field, in a key that has a shard number.

        A hash of all identity fields determines the shard number. The hash sees None as "None".
        """
        if part.kind == "text":
            return repr(part.value)
        value = self._value(part, lines)
        return f"('None' if {value} is None else {self._encoded(part, value)})"

    def _value(self, part: Part, lines: list[str]) -> str:
        name = self.source.fresh("v")
        lines.append(f"{name} = {self._read(part.value)}")
        return name

    def _encoded(self, part: Part, value: str) -> str:
        encode = self.source.bind("w", _encoder(part))
        return f"{encode}({self.source.bind('plain', keys.plain)}({self._stepped(part, value)}))"

    def _stepped(self, part: Part, value: str) -> str:
        if not part.step:
            return value
        return f"{self.source.bind('stepped', stepped)}({self.source.bind('part', part)}, {value})"


def _encoder(part: Part) -> Callable[[Any], str]:
    encoding = keys.encoding_named(part.encoding)
    write = encoding.turn if part.inverted else encoding.write
    assert write is not None  # the planner inverts only what can be inverted
    return write


def fields_of(key: PlannedKeyAttribute) -> set[str]:
    """Return the fields that a key attribute contains or depends on."""
    found: set[str] = set()

    def walk(parts: tuple[Part, ...]) -> None:
        for part in parts:
            if part.kind == "field":
                found.add(part.value)
            walk(part.of)

    walk(key.template.parts)
    for test, _ in key.when:
        walk(test.parts)
    return found


def is_the_field(key: PlannedKeyAttribute) -> bool:
    """Whether a key attribute is a field itself, stored under the field's own name."""
    return key.template.native and not key.when and key.template.parts[0].value == key.name


def is_simple(known: EntityInfo, key: PlannedKeyAttribute) -> bool:
    """Whether every item has the key attribute, and it consists only of text and whole fields.

    Such a simple key has no condition, shard number, derived part or optional field.
    """
    if key.when or key.template.native:
        return False
    return all(
        part.kind == "text"
        or (
            part.kind == "field"
            and not part.step
            and part.value in known.fields
            and not isinstance(known.fields[part.value].shape, Maybe)
        )
        for part in key.template.parts
    )


def key_text(source: CodecSource, known: EntityInfo, part: Part) -> str:
    """Return an expression for the text of one part of a simple key, from the object ``o``."""
    if part.kind == "text":
        return repr(part.value)
    value = attribute("o", known.python_names.get(part.value, part.value))
    shape = known.fields[part.value].shape
    encode = _encoder(part)
    if isinstance(shape, Coded) or (isinstance(shape, Choice) and shape.enum is not None):
        value = f"{source.bind('plain', keys.plain)}({value})"
    is_whole = not part.inverted and not keys.is_part(part.encoding)
    if isinstance(shape, Scalar) and shape.python is str and is_whole:
        # Most identifiers are letters and digits: no escapes. The codec has checked the type.
        name = source.fresh("v")
        return f"({name} if ({name} := {value}).isalnum() else {source.bind('w', encode)}({name}))"
    return f"{source.bind('w', encode)}({value})"


def base_keys(plan: EntityPlan) -> tuple[PlannedKeyAttribute, ...]:
    """Return the attributes of the table's own key."""
    return tuple(key for key in plan.keys if key.index is None)

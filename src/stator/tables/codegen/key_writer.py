"""The key attributes of an entity as one generated function: they are written with every item, so they are written fast.

For ``PK "USER#" {user_id}`` and ``SK "ORDER#" {placed_at}`` the code is about

    def keys(o, item):
        v0 = o.user_id; v1 = o.placed_at
        item["PK"] = {"S": "USER#" + w1(v0)}
        item["SK"] = {"S": "ORDER#" + w2(v1)}

An attribute that may be absent (an optional field in it, a sparse index) or is computed (a shard) goes the plain way,
``PlannedKeyAttribute.value``; both ways are compared in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from stator.design.entities.codec_source import CodecSource, attribute
from stator.design.entities.entity import EntityInfo
from stator.design.entities.shapes import Choice, Maybe, Scalar
from stator.design.plan import key_text as keys
from stator.design.plan.plan import (
    Attributes,
    EntityPlan,
)
from stator.design.plan.templates import Part, PlannedKeyAttribute
from stator.model.values import Item

KeyWriter = Callable[[Any, Item], None]


def key_writer(known: EntityInfo, attributes: Iterable[PlannedKeyAttribute]) -> KeyWriter:
    """A function that puts the key attributes of an object into its item."""
    source = CodecSource()
    body: list[str] = []
    plain: list[PlannedKeyAttribute] = []
    for each in attributes:
        if is_the_field(each):
            continue  # the codec has written it
        if is_simple(known, each):
            parts = " + ".join(key_text(source, known, part) for part in each.template.parts)
            body.append(f'item[{each.name!r}] = {{"S": {parts}}}')
        else:
            plain.append(each)
    if plain:
        body.append(f"{source.bind('rest', slow_keys(plain))}(o, item)")
    source.function("keys", "o, item", body or ["pass"])
    return source.compiled("keys")  # type: ignore[return-value]


def fields_of(key: PlannedKeyAttribute) -> set[str]:
    """The fields that a key attribute is made of, or depends on."""
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
    """Whether a key attribute is a field as it is: changing the field changes the key."""
    return key.template.native and not key.when and key.template.parts[0].value == key.name


def is_simple(known: EntityInfo, key: PlannedKeyAttribute) -> bool:
    """Whether a key is always there, and made of text and fields alone."""
    if key.when or key.template.native:
        return False
    return all(
        part.kind == "text"
        or (
            part.kind == "field"
            and not part.step
            and not isinstance(known.fields[part.value].shape, Maybe)
        )
        for part in key.template.parts
    )


def key_text(source: CodecSource, known: EntityInfo, part: Part) -> str:
    if part.kind == "text":
        return repr(part.value)
    encoding = keys.encoding_named(part.encoding)
    write = encoding.turn if part.inverted else encoding.write
    value = attribute("o", part.value)
    shape = known.fields[part.value].shape
    if isinstance(shape, Choice) and shape.enum is not None:
        value = f"{source.bind('plain', keys.plain)}({value})"
    if isinstance(shape, Scalar) and shape.python is str and not part.inverted:
        # Most identifiers are letters and digits, none of which needs to be escaped; the codec has checked the type.
        name = source.fresh("v")
        return f"({name} if ({name} := {value}).isalnum() else {source.bind('w', write)}({name}))"
    return f"{source.bind('w', write)}({value})"


def slow_keys(attributes: list[PlannedKeyAttribute]) -> KeyWriter:
    def write(of: Any, item: Item) -> None:
        values = Attributes(of)
        for key in attributes:
            value = key.value(values)
            if value is not None:
                item[key.name] = value

    return write


def base_keys(plan: EntityPlan) -> tuple[PlannedKeyAttribute, ...]:
    return tuple(key for key in plan.keys if key.index is None)

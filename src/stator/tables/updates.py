"""From what was recorded to one UpdateItem: index keys recomputed, version counted up, times set.

An index key is made of fields. When one of them changes, the key changes with it, and all the other fields it is made of have to be known.
They are: the identity; what the update itself sets; and, when the update was begun with an object instead of a class, everything that the
object holds, on condition that the stored item still has it. Where that is not enough, the update is refused, naming what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from stator.design.plan import KeyAttribute
from stator.design.templates import Part
from stator.errors import RequestRefused, UpdateRefused
from stator.model.values import Item, Value
from stator.tables.expressions import Expressions
from stator.tables.recording import Recording
from stator.tables.schema import EntityMap
from stator.tables.statements import Statement, Terms, meaning_of


def fields_of(key: KeyAttribute) -> set[str]:
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


def is_the_field(key: KeyAttribute) -> bool:
    """Whether a key attribute is a field as it is: changing the field changes the key."""
    return key.template.native and not key.when and key.template.parts[0].value == key.name


def update_statement(
    of: EntityMap,
    recording: Recording,
    key: Item,
    values: Mapping[str, Any],
    *,
    entity: Any = None,
    when: list[Any],
    must_exist: bool = True,
    now: float,
    old_unique: Mapping[str, Value | None] | None = None,
) -> Statement:
    """``values`` are fields known to be so because the key is made of them; ``entity`` an object as it was read, if there is one."""
    shown = of.shown(values)
    _refuse_fixed(of, recording)
    if not recording.actions:
        raise RequestRefused(f"the update of {shown} changes nothing", hint="change a field inside the with block")
    terms = Terms(of)
    written = terms.expressions
    if must_exist:
        terms.present()
    key_changes, relied_on = _index_keys(of, recording, values, entity)
    for name in sorted(relied_on):
        terms.equal(name, _stored(of, name, getattr(entity, name)))
    expected: int | None = None
    if entity is not None and of.version is not None:
        expected = int(getattr(entity, of.version))
        terms.version(expected)
    for name, value in (old_unique or {}).items():
        terms.equal(name, value)
    for condition in when:
        terms.user(condition)
    update = recording.expression(written, _own_changes(of, key_changes, now, written))
    request = {"TableName": of.table.name, "Key": key, "UpdateExpression": update}
    return Statement(
        "Update",
        terms.into(request),
        f"update {shown}",
        meaning_of(of, shown, must_exist=must_exist, expected=expected),
        relative=recording.relative and expected is None,
    )


def _refuse_fixed(of: EntityMap, recording: Recording) -> None:
    fixed = recording.fields & {*of.base_fields, *of.identity}
    if fixed:
        name = min(fixed)
        raise UpdateRefused(
            f"{of.name}.{name} is part of the item's key and cannot change",
            hint="create the item with its new key and delete the old one, in a transaction",
        )
    kept = recording.fields & {name for name in (of.version, of.created, of.updated) if name is not None}
    if kept:
        raise UpdateRefused(f"{of.name}.{min(kept)} is kept by Stator itself", hint="leave it out of the update")


def _stored(of: EntityMap, name: str, value: Any) -> Value | None:
    return None if value is None else of.codec.encode_field[name](value)


def _index_keys(
    of: EntityMap, recording: Recording, values: Mapping[str, Any], entity: Any
) -> tuple[dict[str, Value | None], set[str]]:
    """New values of the key attributes that change, and the fields of ``entity`` that this relies on."""
    changed, known = recording.fields, recording.known()
    found: dict[str, Value | None] = {}
    relied_on: set[str] = set()
    for key in of.plan.keys:
        needs = fields_of(key)
        if key.index is None or not needs & changed or is_the_field(key):
            continue
        _refuse_computed(of, key, needs & changed - known.keys())
        missing = needs - known.keys() - values.keys()
        if missing and entity is None:
            raise _incomplete(of, key, needs & changed, missing)
        relied_on |= missing
        filled = {name: getattr(entity, name) for name in missing} | dict(values) | known
        found[key.name] = key.value(filled)
    return found, relied_on


def _refuse_computed(of: EntityMap, key: KeyAttribute, computed: set[str]) -> None:
    if computed:
        name = min(computed)
        raise UpdateRefused(
            f"{of.name}.{name} is part of the key {key.name} of {key.index}, which cannot be computed from a change of it",
            missing=(name,),
            hint="set the field to a value, instead of adding to it",
        )


def _incomplete(of: EntityMap, key: KeyAttribute, changed: set[str], missing: set[str]) -> UpdateRefused:
    names = tuple(sorted(missing))
    return UpdateRefused(
        f"changing {of.name}.{min(changed)} changes the key {key.name} of {key.index}, which is also made of "
        f"{', '.join(names)}",
        missing=names,
        hint=f"pass the {of.name} itself to db.update, or set {', '.join(names)} too",
    )


def _own_changes(
    of: EntityMap, keys: dict[str, Value | None], now: float, written: Expressions
) -> dict[str, list[str]]:
    """What is changed beside what the user said: keys, times, the version."""
    sets = [f"{written.name(name)} = {written.value(value)}" for name, value in keys.items() if value is not None]
    if of.updated is not None:
        moment = of.codec.encode_field[of.updated](datetime.fromtimestamp(now, UTC))
        sets.append(f"{written.name(of.updated)} = {written.value(moment)}")
    if of.version is not None:
        name = written.name(of.version)
        sets.append(f"{name} = if_not_exists({name}, {written.value({'N': '0'})}) + {written.value({'N': '1'})}")
    return {"SET": sets, "REMOVE": [written.name(name) for name, value in keys.items() if value is None]}

"""Turns a recording into one UpdateItem: recomputes index keys, increments the version, sets times.

An index key contains fields. When one of them changes, the key changes too, and all its other
fields must be known. The identity and the values that the update sets are known. If the update was
started with an object instead of a class, the object's fields are known as well, on condition that
the stored item still has them. If that is not enough, the update is refused, and the error names
the missing fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from typing import Any

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.shapes import CLASS_TAG, Maybe
from stator.design.plan.templates import PlannedKeyAttribute
from stator.errors import PathMissing, RequestRefused, UpdateRefused, ValidationFailed
from stator.expr.paths import INVALID_PATH
from stator.expr.update import MISSING
from stator.model.values import Item, Value
from stator.tables.codegen.key_writer import fields_of, is_the_field
from stator.tables.schema.entity_map import KEPT_EXPIRY, EntityMap
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.recorder import Recording
from stator.tables.writes.statements import Statement, Terms, WriteProof, meaning_of


def update_statement(
    of: EntityMap,
    recording: Recording,
    key: Item,
    values: Mapping[str, Any],
    *,
    entity: Any = None,
    when: list[Any],
    or_create: bool = False,
    now: float,
    as_stored: Mapping[str, Value | None] | None = None,
    beside: Mapping[str, Value | None] | None = None,
    tags: tuple[str, ...] = (),
    token: str | None = None,
    shape: Value | None = None,
    marks_deleted: bool = False,
    kept_expiry: Value | None = None,
) -> Statement:
    """Return the UpdateItem statement of a recording.

    ``values`` are the field values that the item's key contains. ``entity`` is the object that the
    update was started with, if any. The update requires that the item has the attribute values in
    ``as_stored``, and that its shape has the version ``shape``; None stands for version 1. It
    requires the values in ``beside`` of an existing item only. ``tags`` are the variants that the
    item may be of; empty stands for any.
    ``token`` is the value of the entity's ``write_token()`` field, if it has one. With
    ``marks_deleted``, the recording may change the ``soft_delete()`` field, and a deleted item may
    be changed. The item then gets the attribute ``kept_expiry``, or loses it if that is None.
    """
    shown = of.shown(values)
    if not marks_deleted:
        refuse_fixed(of, recording)
    if not recording.actions:
        raise RequestRefused(
            f"the update of {shown} changes nothing", hint="change a field inside the with block"
        )
    terms = Terms(of)
    written = terms.expressions
    if not or_create:
        terms.present()
    if not marks_deleted:
        terms.not_deleted()
    stamps = _stamps(of, now, token)
    known = recording.known() | stamps
    key_changes, relied_on = _index_keys(of, recording, known, values, entity)
    for name in sorted(relied_on):
        terms.equal(name, of.codec.attribute(name, getattr(entity, name)))
    expected: int | None = None
    if entity is not None and of.version is not None:
        expected = of.version_of(entity)
        terms.version(expected)
    terms.stored(as_stored or {})
    if or_create:
        terms.absent_or_stored(beside or {})
    else:
        terms.stored(beside or {})
    terms.variant(tags)
    terms.shape(shape, may_be_absent=or_create)
    for condition in when:
        terms.user(condition, creates=or_create)
    own = _own_changes(of, key_changes, stamps, written, now)
    if marks_deleted and of.ttl is not None:
        kept = written.name(KEPT_EXPIRY)
        if kept_expiry is None:
            own["REMOVE"].append(kept)
        else:
            own["SET"].append(f"{kept} = {written.value(kept_expiry)}")
    if or_create:
        own["SET"] += _of_a_new_item(of, recording, values, key_changes, now, written, shape)
    update = recording.expression(written, own)
    request = {"TableName": of.table.name, "Key": key, "UpdateExpression": update}
    return Statement(
        "Update",
        terms.into(request),
        f"update {shown}",
        of=of,
        meaning=meaning_of(of, shown, must_exist=not or_create, expected=expected),
        explain=lambda refused: _missing_path(of, recording, shown, refused),
        relative=recording.relative and expected is None,
        done=None
        if entity is None
        else lambda: of.write_back(entity, known | _counted(of, expected)),
        proof=None if of.write_token is None else WriteProof(key, of.write_token, {"S": token}),
    )


def _missing_path(
    of: EntityMap, recording: Recording, shown: str, refused: ValidationFailed
) -> ValidationFailed:
    """Return an error that names the missing path.

    DynamoDB does not say which path it means. If several are possible, all are named.
    """
    if INVALID_PATH in refused.message:
        found, trouble = (
            recording.inner_paths(),
            "is inside a value that the item does not have, or that is no map or list",
        )
        hint = (
            "set the whole field, for example `order.address = Address(...)`, "
            "or read the item and put it back"
        )
    elif MISSING in refused.message:
        found, trouble = recording.added_to(), "does not exist, so nothing can be added to it"
        hint = (
            "use a start value, for example `p.counts[key] = if_not_exists(p.counts[key], 0) + 1`, "
            "or set it to a value"
        )
    else:
        return refused
    if not found:
        return refused
    paths = tuple(recording.shown(path) for path in found)
    which = paths[0] if len(paths) == 1 else f"one of {', '.join(paths)}"
    return PathMissing(
        f"the update of {shown} was refused: {which} {trouble}",
        entity=of.name,
        paths=paths,
        hint=hint,
    )


def refuse_fixed(of: EntityMap, recording: Recording) -> None:
    """Refuse changes to fields of the table's key, and to fields that Stator sets."""
    fixed = recording.fields & {*of.base_fields, *of.identity}
    if fixed:
        name = min(fixed)
        raise UpdateRefused(
            f"{of.name}.{name} is part of the item's key and cannot change",
            hint="create the item with its new key and delete the old one, in a transaction",
        )
    kept = recording.fields & {
        name
        for name in (of.version, of.created, of.updated, of.write_token, of.deleted, CLASS_TAG)
        if name is not None
    }
    if kept:
        raise UpdateRefused(
            f"{of.name}.{min(kept)} is set by Stator itself", hint="leave it out of the update"
        )


def _counted(of: EntityMap, expected: int | None) -> dict[str, Any]:
    return {} if of.version is None or expected is None else {of.version: expected + 1}


def _stamps(of: EntityMap, now: float, token: str | None) -> dict[str, Any]:
    """Return the fields that every update sets, with their new values."""
    stamps: dict[str, Any] = {}
    if of.updated is not None:
        stamps[of.updated] = datetime.fromtimestamp(now, UTC)
    if of.write_token is not None:
        stamps[of.write_token] = token
    return stamps


def _index_keys(
    of: EntityMap,
    recording: Recording,
    known: Mapping[str, Any],
    values: Mapping[str, Any],
    entity: Any,
) -> tuple[dict[str, Value | None], set[str]]:
    """Return the index keys that change, with their new values.

    The second result names the fields that were read from ``entity`` to compute them.
    """
    changed = recording.fields | {name for name in (of.updated, of.version) if name is not None}
    found: dict[str, Value | None] = {}
    relied_on: set[str] = set()
    for key in of.plan.keys:
        needs = fields_of(key)
        if key.index is None or not needs & changed or is_the_field(key):
            continue
        if not needs <= of.fields.keys():
            continue  # a key of another variant: this one never has it
        _refuse_computed(of, key, needs & changed - known.keys())
        missing = needs - known.keys() - values.keys()
        if missing and entity is None:
            raise _incomplete(of, changed, known.keys() | values.keys())
        relied_on |= missing
        filled = {name: getattr(entity, name) for name in missing} | dict(values) | dict(known)
        found[key.name] = of.key_value(key, filled)
    return found, relied_on


def _refuse_computed(of: EntityMap, key: PlannedKeyAttribute, computed: set[str]) -> None:
    if computed:
        name = min(computed)
        raise UpdateRefused(
            f"{of.name}.{name} is part of {key.name}, a key of {key.index}: "
            "the new key cannot be computed from a relative change",
            missing=(name,),
            hint="set the field to a value, instead of adding to it",
        )


def _incomplete(of: EntityMap, changed: set[str], known: Set[str]) -> UpdateRefused:
    """Return the refusal of an update that changes index keys whose other fields are not known.

    It names every field to add. Setting one of these may change further keys, whose fields are
    named as well.
    """
    missing: set[str] = set()
    touched: dict[str, str] = {}
    while True:
        before = len(missing)
        for key in of.plan.keys:
            needs = fields_of(key)
            by = needs & (changed | missing)
            if key.index is None or is_the_field(key) or not by or not needs <= of.fields.keys():
                continue
            if needs - known:
                touched.setdefault(f"{key.name} of {key.index}", min(by & changed or by))
                missing |= needs - known
        if len(missing) == before:
            break
    names = tuple(sorted(missing))
    [(first, cause), *others] = touched.items()
    keys = f"the key {first}" if not others else f"the keys {', '.join(touched)}"
    return UpdateRefused(
        f"changing {of.name}.{cause} changes {keys}, which also hold"
        f"{'s' if not others else ''} {', '.join(names)}",
        missing=names,
        hint=f"pass the {of.name} itself to db.update, or set {', '.join(names)} too",
    )


def next_version(of: EntityMap, written: Expressions, now: float) -> str:
    """Return the SET term that increments the version, or gives a new item its first one."""
    name = written.name(of.version or "")
    before = written.value({"N": str(of.version_before_first(now))})
    return f"{name} = if_not_exists({name}, {before}) + {written.value({'N': '1'})}"


def _own_changes(
    of: EntityMap,
    keys: dict[str, Value | None],
    stamps: Mapping[str, Any],
    written: Expressions,
    now: float,
) -> dict[str, list[str]]:
    """Return the changes that Stator adds to the user's: index keys, stamps and the version.

    The result has update terms by clause: ``{"SET": ["#n1 = :v1"], "REMOVE": ["#n2"]}``.
    """
    sets = [
        f"{written.name(name)} = {written.value(value)}"
        for name, value in keys.items()
        if value is not None
    ]
    for name, value in stamps.items():
        sets.append(f"{written.name(name)} = {written.value(of.codec.encode_field[name](value))}")
    if of.version is not None:
        sets.append(next_version(of, written, now))
    return {
        "SET": sets,
        "REMOVE": [written.name(name) for name, value in keys.items() if value is None],
    }


def _of_a_new_item(
    of: EntityMap,
    recording: Recording,
    values: Mapping[str, Any],
    changed_keys: Mapping[str, Value | None],
    now: float,
    written: Expressions,
    shape: Value | None,
) -> list[str]:
    """Return SET terms for the attributes that an item needs if the update creates it.

    ``if_not_exists`` keeps the values of an existing item.
    """
    known = _defaults(of, recording) | dict(values) | recording.known()
    stored: dict[str, Value] = {
        name: of.codec.encode_field[name](value)
        for name, value in known.items()
        if name not in recording.fields and not of.codec.omits_field[name](value)
    }
    for name in (of.version, of.updated, of.write_token):
        stored.pop(name or "", None)  # every update sets those itself
    if of.plan.discriminator is not None:
        stored[of.plan.discriminator] = {"S": of.name}
    if shape is not None:
        stored[VERSION_ATTRIBUTE] = shape
    if of.created is not None:
        stored[of.created] = of.codec.encode_field[of.created](datetime.fromtimestamp(now, UTC))
    expiry = of.expiry(now)
    if of.ttl is not None and expiry is not None and of.ttl not in recording.fields:
        known[of.ttl] = expiry
        stored[of.ttl] = of.codec.encode_field[of.ttl](expiry)
    for key in of.plan.keys:
        if key.index is None or key.name in changed_keys or is_the_field(key):
            continue
        value = of.key_value(key, known)
        if value is not None:
            _refuse_doubtful(of, key)
            stored[key.name] = value
    names = [name for name in stored if name not in of.key_names and name not in recording.fields]
    return [
        f"{written.name(name)} = if_not_exists({written.name(name)}, {written.value(stored[name])})"
        for name in names
    ]


def _defaults(of: EntityMap, recording: Recording) -> dict[str, Any]:
    """Return the default values of the fields that the update does not set.

    Raises UpdateRefused if one has no default.
    """
    found = {}
    needed = of.fields.keys() - recording.fields - {*of.identity, *of.base_fields}
    missing = []
    for name in needed:
        default = recording.default(name)
        if default is None:
            missing.append(name)
        else:
            found[name] = default()
    if missing:
        raise UpdateRefused(
            f"{of.name} cannot be created by an update without {', '.join(sorted(missing))}",
            missing=tuple(sorted(missing)),
            hint="set them in the block, or create the item first",
        )
    return found


def _refuse_doubtful(of: EntityMap, key: PlannedKeyAttribute) -> None:
    """Raise UpdateRefused if some items are meant to lack an index key.

    A new item needs the key, so the update would set the key where it is missing. But the update
    cannot see whether the item exists already and lacks the key on purpose.
    """
    if key.when or any(isinstance(of.fields[name].shape, Maybe) for name in fields_of(key)):
        raise UpdateRefused(
            f"an update with or_create=True cannot compute {key.name} of {key.index}: the key "
            "depends on fields that the update cannot see",
            missing=tuple(sorted(fields_of(key))),
            hint="use db.upsert with the whole item, or set those fields in the block",
        )

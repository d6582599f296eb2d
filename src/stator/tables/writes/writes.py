"""Plans single writes (create, put, upsert, update, delete, check) as statements.

``sender`` sends the statements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.entities.markers import NOT_YET
from stator.design.entities.shapes import CLASS_TAG
from stator.errors import ConditionFailed, RequestRefused, UpdateRefused
from stator.model.values import Item, Value
from stator.tables.blobs.blobs import blob_keys, packed
from stator.tables.context import Context
from stator.tables.reads.locator import locate
from stator.tables.schema.entity_map import KEPT_EXPIRY, EntityMap, Stamped
from stator.tables.work import Call, Work
from stator.tables.writes.computed_update import computed_update
from stator.tables.writes.recorder import Recording
from stator.tables.writes.shape_upgrade import ShapeUpgrade, unchanged_since, upgraded_item
from stator.tables.writes.statements import (
    LostRace,
    Meaning,
    Statement,
    Terms,
    WriteProof,
    meaning_of,
    read_as_far_as_possible,
)
from stator.tables.writes.unique_guards import guards, unique_value, watched_attributes
from stator.tables.writes.update_statement import next_version, update_statement

WRITE_TOKEN_CHARACTERS = 16


class WritePlanner:
    """Plans the statements of writes. Reads the stored item first if a unique value may change."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.place = context.schema.place
        self._upgrade = ShapeUpgrade(context)

    # -- whole items

    def create(self, entity: Any, when: Any = None) -> Work[list[Statement]]:
        of = self.context.schema.of_object(entity)
        now = self.context.now()
        stamped = of.stamped(entity, now, fresh=True, token=self.new_write_token(of))
        shown = of.shown_entity(entity)
        terms = Terms(of)
        terms.absent(now)
        terms.user(when)
        statement = yield from self._put(
            of, entity, stamped, terms, f"create {shown}", meaning_of(of, shown, creates=True)
        )
        return [
            statement,
            *guards(self.place, of, None, statement.wanted, of.key_of(stamped.made), now),
        ]

    def put(self, entity: Any, when: Any = None) -> Work[list[Statement]]:
        of = self.context.schema.of_object(entity)
        now = self.context.now()
        expected = None if of.version is None else of.version_of(entity)
        stamped = of.stamped(entity, now, fresh=False, token=self.new_write_token(of))
        shown = of.shown_entity(entity)
        terms = Terms(of)
        if expected is not None:
            terms.version(expected, now)
        terms.user(when)
        key = of.key_of(stamped.made)
        meaning = meaning_of(of, shown, expected=expected)
        if when is not None:
            meaning = yield from self._upgrade.required(of, key, terms, meaning)
        old = (yield from self.stored(of, key)) if of.guarded or of.offloads else None
        if of.guarded:
            meaning = _watched(of, old, terms, meaning)
        statement = yield from self._put(of, entity, stamped, terms, f"put {shown}", meaning)
        statement.old, statement.obsolete_blobs = old, tuple(blob_keys(of, old))
        return [statement, *guards(self.place, of, old, statement.wanted, key, now)]

    def _put(
        self,
        of: EntityMap,
        entity: Any,
        stamped: Stamped,
        terms: Terms,
        shown: str,
        meaning: Meaning,
    ) -> Work[Statement]:
        item = of.item(stamped.made)
        if of.large:
            item = yield from self._packed(of, item)
        return Statement(
            "Put",
            terms.into({"TableName": of.table.name, "Item": item}),
            shown,
            meaning,
            done=lambda: of.write_back(entity, stamped.changes),
            wanted=item,
            of=of,
            new_blobs=tuple(blob_keys(of, item)),
            proof=_proof(of, of.stored_key(item), item),
            stored=stamped.made if of.info.is_frozen else entity,
        )

    def new_write_token(self, of: EntityMap) -> str | None:
        """Return a token for one write, or None if the entity has no field for it."""
        return None if of.write_token is None else self.context.token()[:WRITE_TOKEN_CHARACTERS]

    def _packed(self, of: EntityMap, item: Item) -> Work[Item]:
        return (yield from packed(of, item, self.context.blobs, self.context.token()))

    def upsert(self, entity: Any, when: Any = None) -> Work[list[Statement]]:
        """Plan the write that creates an item or sets every field of the existing one.

        The time of creation does not change, nor do attributes that are not fields.
        """
        of = self.context.schema.of_object(entity)
        now = self.context.now()
        old = None
        if (
            of.created is not None
            and of.is_keyed_by(of.created)
            and getattr(entity, of.created) == NOT_YET
        ):
            old = yield from self.stored(
                of, of.key_of(entity)
            )  # a key contains the time of creation, which must not change
        if old is not None and of.created in old:
            assert of.created is not None
            entity = of.copied(
                entity, {of.created: of.codec.decode_field[of.created](old[of.created])}
            )
        stamped = of.stamped(entity, now, fresh=False, token=self.new_write_token(of))
        item, key = of.known_item(stamped.made), of.key_of(stamped.made)
        if of.large:
            item = yield from self._packed(of, item)
        shown = of.shown_entity(entity)
        terms = Terms(of)
        terms.user(when)
        meaning = meaning_of(of, shown)
        if when is not None:
            meaning = yield from self._upgrade.required(of, key, terms, meaning)
        else:
            meaning = self._upgrade.not_newer(of, key, terms, meaning)
        if self._upgrade.newer(of, key) is not None:
            item.pop(VERSION_ATTRIBUTE, None)  # the item keeps its later version
        if old is None and (of.guarded or of.offloads):
            old = yield from self.stored(of, key)
        if of.guarded:
            meaning = _watched(of, old, terms, meaning)
        request = {
            "TableName": of.table.name,
            "Key": key,
            "UpdateExpression": _set_all(of, item, terms, now),
        }
        statement = Statement(
            "Update",
            terms.into(request),
            f"upsert {shown}",
            meaning,
            of=of,
            obsolete_blobs=tuple(blob_keys(of, old)),
            new_blobs=tuple(blob_keys(of, item)),
            proof=_proof(of, key, item),
        )
        return [statement, *guards(self.place, of, old, item, key, now)]

    # -- parts of items

    def update(
        self,
        of: EntityMap,
        recording: Recording,
        values: Mapping[str, Any],
        *,
        entity: Any = None,
        when: list[Any],
        or_create: bool = False,
    ) -> Work[list[Statement]]:
        key = yield from self.key(of, values)
        now = self.context.now()
        gone = (yield from self._gone(of, key, now)) if or_create else None
        older = (yield from self._upgrade.older_item(of, key)) if gone is None else None
        if gone is None and older is None:
            shape = self._upgrade.required_shape(of, key)
        else:
            shape = of.shape_version.value  # the update writes the whole item in this shape
        known = {name: values[name] for name in {*of.identity, *of.base_fields} & values.keys()}
        known |= of.tag
        if not of.has_base(values):  # the key was looked up, and holds more fields
            known = of.key_fields(key) | known
        beside = _wire(of, of.beside_the_key(values) if entity is None else of.tag)
        tags = _tags_of_variants(of, recording, or_create)
        touched = [name for name in of.unique if name in recording.fields]
        _refuse_unseen(of, recording)
        expires = of.ttl is not None and of.guarded and of.ttl in recording.fields
        may_reserve = or_create and of.plan.is_guarded
        large = [name for name in of.large if name in recording.fields]
        new_blobs = (yield from self._pack_changes(of, recording, key, large)) if large else ()
        if not (touched or expires or may_reserve or (large and of.offloads) or older):
            statement = update_statement(
                of,
                recording,
                key,
                known,
                entity=entity,
                when=when,
                or_create=or_create,
                now=now,
                beside=beside,
                tags=tags,
                token=self.new_write_token(of),
                shape=shape,
            )
            if gone is not None:
                return [_replacing(of, statement, gone)]
            statement.meaning = self._upgrade.meaning(of, key, statement.meaning)
            return [statement]
        if older is not None:
            old: Item | None = upgraded_item(of, older)
        else:
            old = (yield from self.stored(of, key)) if gone is None else None
        watched = watched_attributes(of, old)
        if of.ttl is not None:
            watched[of.ttl] = None if old is None else old.get(of.ttl)
        statement = update_statement(
            of,
            recording,
            key,
            known,
            entity=entity,
            when=when,
            or_create=or_create,
            now=now,
            as_stored=watched,
            beside=beside,
            tags=tags,
            token=self.new_write_token(of),
            shape=shape,
        )
        statement.meaning = _raced_or(of, old, self._upgrade.meaning(of, key, statement.meaning))
        statement.old = old
        replaced = {name: (old or {})[name] for name in large if name in (old or {})}
        statement.obsolete_blobs, statement.new_blobs = tuple(blob_keys(of, replaced)), new_blobs
        if gone is not None:
            statement = _replacing(of, statement, gone)
        if older is not None:
            statement = computed_update(of, statement, older, old, unchanged_since(of, older))
        after = _after(of, old, recording, values, now if or_create else None)
        return [statement, *guards(self.place, of, older or old, after, key, now)]

    def _gone(self, of: EntityMap, key: Item, now: float) -> Work[Item | None]:
        """Return the item with this key if it has expired or is marked as deleted, or None.

        An update with ``or_create`` must replace such an item, as if there were none.
        """
        if of.ttl is None and of.deleted is None:
            return None
        old = yield from self.stored(of, key)
        return old if old is not None and of.is_gone(old, now) else None

    def _pack_changes(
        self, of: EntityMap, recording: Recording, key: Item, names: list[str]
    ) -> Work[tuple[str, ...]]:
        """Replace the large values in a recording by their packed form.

        The packed form is the compressed value, or the name of a blob that this method has written.
        ``names`` are the large fields that the update changes. Return the names of the blobs.
        """
        found: Item = dict(key)
        for name in names:
            action = recording.actions.get((name,))
            if action is None or not (action.value is None or isinstance(action.value, dict)):
                raise UpdateRefused(
                    f"{of.name}.{name} is large(): an update can replace it only as a whole",
                    hint="assign a whole value",
                )
            if action.value is not None:
                found[name] = action.value
        found = yield from self._packed(of, found)
        for name in names:
            if name in found:
                recording.actions[name,] = replace(recording.actions[name,], value=found[name])
        return tuple(blob_keys(of, found))

    def delete(
        self,
        of: EntityMap,
        values: Mapping[str, Any],
        *,
        entity: Any = None,
        when: Any = None,
        must_exist: bool = False,
        keep_blobs: bool = False,
        purge: bool = False,
    ) -> Work[list[Statement]]:
        key = yield from locate(of, values)
        if key is None and not must_exist:
            return []
        shown = of.shown(values)
        if key is None:
            raise meaning_of(of, shown, must_exist=True)(None)
        if of.deleted is not None and not purge:
            return (
                yield from self._mark_deleted(
                    of, key, values, entity=entity, when=when, must_exist=must_exist
                )
            )
        terms = Terms(of)
        expected: int | None = None
        if entity is not None and of.version is not None:
            expected = of.version_of(entity)
            terms.version(expected)
        if must_exist:
            terms.present()
        beside = of.beside_the_key(values) if entity is None else of.tag
        terms.absent_or_stored(_wire(of, beside))
        terms.user(when)
        meaning = meaning_of(of, shown, must_exist=must_exist, expected=expected)
        if when is not None:
            meaning = yield from self._upgrade.required(of, key, terms, meaning)
        request = {"TableName": of.table.name, "Key": key}
        old = (yield from self.stored(of, key)) if of.guarded or of.offloads else None
        if of.guarded:
            meaning = _watched(of, old, terms, meaning)
        statement = Statement("Delete", terms.into(request), f"delete {shown}", meaning, old=old)
        named = tuple(blob_keys(of, old))
        statement.obsolete_blobs, statement.kept_blobs = ((), named) if keep_blobs else (named, ())
        return [statement, *guards(self.place, of, old, None, key, self.context.now())]

    # -- soft deletes

    def _mark_deleted(
        self,
        of: EntityMap,
        key: Item,
        values: Mapping[str, Any],
        *,
        entity: Any,
        when: Any,
        must_exist: bool,
    ) -> Work[list[Statement]]:
        """Plan the update that marks an item as deleted and frees its unique values.

        The item is read first. A missing item would otherwise be created by the update.
        """
        assert of.deleted is not None
        now = self.context.now()
        old = yield from self.stored(of, key)
        expected = None
        if entity is not None and of.version is not None:
            expected = of.version_of(entity)
        meaning = meaning_of(of, of.shown(values), must_exist=must_exist, expected=expected)
        if old is None or of.is_gone(old, now):
            if must_exist or expected:
                raise meaning(old)
            return []
        beside = _wire(of, of.beside_the_key(values) if entity is None else of.tag)
        if any(old.get(name) != value for name, value in beside.items()):
            raise meaning(old)
        if expected is not None and old.get(str(of.version)) != {"N": str(expected)}:
            raise meaning(old)
        changes = {of.deleted: datetime.fromtimestamp(now, UTC)}
        kept: Value | None = None
        marker = of.fields[of.deleted].marker
        if of.ttl is not None and marker is not None and marker.after is not None:
            changes[of.ttl] = datetime.fromtimestamp(now, UTC) + marker.after
            kept = old.get(of.ttl, {"NULL": True})
        return self._marked(of, key, old, changes, when, meaning, now, kept)

    def restore(self, of: EntityMap, values: Mapping[str, Any]) -> Work[list[Statement]]:
        """Plan the update that brings a deleted item back and takes its unique values again.

        Returns no statements if the item is not deleted. Raises ItemNotFound if there is no item.
        """
        if of.deleted is None:
            raise RequestRefused(
                f"{of.name} has no soft_delete() field, so its deleted items are gone",
                hint="add `deleted_at: datetime | None = soft_delete()`",
            )
        key, now = (yield from self.key(of, values)), self.context.now()
        old = yield from self.stored(of, key)
        meaning = meaning_of(of, of.shown(values), must_exist=True)
        if old is None or of.is_expired(old, now):
            raise meaning(None)
        if not of.is_deleted(old):
            return []
        changes: dict[str, Any] = {of.deleted: None}
        marker = of.fields[of.deleted].marker
        if of.ttl is not None and marker is not None and marker.after is not None:
            changes[of.ttl] = _own_expiry(of, old, now)
            if of.is_expired({of.ttl: old.get(KEPT_EXPIRY, {"NULL": True})}, now):
                raise meaning(None)  # not deleted, it would have expired by now
        return self._marked(of, key, old, changes, None, meaning, now)

    def _marked(
        self,
        of: EntityMap,
        key: Item,
        old: Item,
        changes: Mapping[str, Any],
        when: Any,
        meaning: Meaning,
        now: float,
        kept_expiry: Value | None = None,
    ) -> list[Statement]:
        """Plan an update of ``old`` to or from the deleted state, with its guards.

        An item of an earlier shape is upcast by the same write: the guards of its upcast values
        may belong to other items, and a deleted item needs none.
        """
        assert of.deleted is not None
        recording = Recording(of)
        for name, value in changes.items():
            recording.set((name,), value)
        base = upgraded_item(of, old) if of.is_old(old) else old
        shape = self._upgrade.required_shape(of, key)
        statement = update_statement(
            of,
            recording,
            key,
            {name: of.codec.decode_field[name](old[name]) for name in of.identity},
            entity=read_as_far_as_possible(of, old) if not of.large else None,
            when=[] if when is None else [when],
            now=now,
            as_stored=watched_attributes(of, base) | {of.deleted: old.get(of.deleted)},
            token=self.new_write_token(of),
            shape=shape,
            marks_deleted=True,
            kept_expiry=kept_expiry,
        )

        def means(item: Item | None) -> ConditionFailed:
            return meaning(item) if item == base else LostRace(item=item)

        statement.meaning = self._upgrade.meaning(of, key, means)
        if base is not old:
            statement = computed_update(of, statement, old, base, unchanged_since(of, old))
        statement.done, statement.old = None, old
        after = dict(base)
        for name, value in changes.items():
            stored = of.codec.attribute(name, value)
            after.pop(name, None)
            if stored is not None:
                after[name] = stored
        return [statement, *guards(self.place, of, old, after, key, now)]

    def check(
        self, of: EntityMap, values: Mapping[str, Any], when: Any, must_exist: bool
    ) -> Work[list[Statement]]:
        key = yield from self.key(of, values)
        shown = of.shown(values)
        terms = Terms(of)
        if must_exist:
            terms.present()
            terms.not_deleted()
        terms.stored(_wire(of, of.beside_the_key(values)))
        terms.user(when)
        meaning = meaning_of(of, shown, must_exist=must_exist)
        if when is not None:
            meaning = yield from self._upgrade.required(of, key, terms, meaning)
        request = terms.into({"TableName": of.table.name, "Key": key})
        return [Statement("ConditionCheck", request, f"check {shown}", meaning)]

    # -- what is there

    def key(self, of: EntityMap, values: Mapping[str, Any]) -> Work[Item]:
        key = yield from locate(of, values)
        if key is None:
            raise meaning_of(of, of.shown(values), must_exist=True)(None)
        return key

    def stored(self, of: EntityMap, key: Item) -> Work[Item | None]:
        request = {"TableName": of.table.name, "Key": key, "ConsistentRead": True}
        reply = yield Call("GetItem", request, f"read {of.name} before a write")
        found: Item | None = reply.get("Item")
        return found


def _own_expiry(of: EntityMap, deleted: Item, now: float) -> Any:
    """Return the expiry that a deleted item had before, as a value of its field.

    An item that an earlier version of Stator has deleted gets the expiry of a new item.
    """
    assert of.ttl is not None
    kept = deleted.get(KEPT_EXPIRY)
    if kept is None:
        return of.expiry(now)
    return None if "NULL" in kept else of.codec.decode_field[of.ttl](kept)


def _replacing(of: EntityMap, planned: Statement, gone: Item) -> Statement:
    """Return the update ``planned`` of no item as a write that replaces the item ``gone``."""
    watched = {name: gone.get(name) for name in (of.ttl, of.deleted) if name is not None}
    statement = computed_update(of, planned, gone, None, watched)
    statement.obsolete_blobs = tuple(blob_keys(of, gone))
    statement.replaces_gone = True
    return statement


def _proof(of: EntityMap, key: Item, item: Item) -> WriteProof | None:
    name = of.write_token
    return None if name is None else WriteProof(key, name, item[name])


def _wire(of: EntityMap, values: Mapping[str, Any]) -> dict[str, Value | None]:
    return {name: of.codec.attribute(name, value) for name, value in values.items()}


def _set_all(of: EntityMap, item: Item, terms: Terms, now: float) -> str:
    """Return the UpdateExpression of an upsert.

    It sets every attribute of ``item``, and removes every field and index key that ``item`` lacks.
    The time of creation is set only if it is missing, and the version is incremented.
    """
    written = terms.expressions
    sets, removals = [], []
    key_attributes = {key.name for key in of.plan.keys if key.index is not None}
    for name in dict.fromkeys((*of.all_fields, *key_attributes, *item)):
        if name in of.key_names:
            continue
        if name == of.version:
            sets.append(next_version(of, written, now))
        elif name not in item:
            removals.append(written.name(name))
        elif name == of.created:
            path = written.name(name)
            sets.append(f"{path} = if_not_exists({path}, {written.value(item[name])})")
        else:
            sets.append(f"{written.name(name)} = {written.value(item[name])}")
    return f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removals)}" if removals else "")


def _watched(of: EntityMap, old: Item | None, terms: Terms, otherwise: Meaning) -> Meaning:
    """Add the condition that the unique values have not changed since they were read.

    Return the function that turns a failed condition into an error: LostRace if they have changed,
    and the error of ``otherwise`` if not.
    """
    terms.stored(watched_attributes(of, old))
    return _raced_or(of, old, otherwise)


def _raced_or(of: EntityMap, old: Item | None, otherwise: Meaning) -> Meaning:
    def means(item: Item | None) -> ConditionFailed:
        if any(unique_value(of, name, item) != unique_value(of, name, old) for name in of.guarded):
            return LostRace(item=item)
        return otherwise(item)

    return means


def _tags_of_variants(of: EntityMap, recording: Recording, or_create: bool) -> tuple[str, ...]:
    """Return the tags of the variants that have all changed fields, if not every item has them.

    An update by the entity's class may change a field of a variant, in items of that variant only.
    """
    fields = recording.fields - of.own_fields.keys() - {CLASS_TAG}
    if not fields or not of.variants:
        return ()
    tags = tuple(tag for tag, each in of.variants.items() if fields <= each.fields.keys())
    if or_create or not tags:
        names = ", ".join(sorted(fields))
        raise UpdateRefused(
            f"{names} of {of.name} belongs to a variant, and "
            + ("an update by the entity cannot create one" if tags else "no variant has all these"),
            hint=f"pass the variant's class in place of {of.name}",
        )
    return tags


def _refuse_unseen(of: EntityMap, recording: Recording) -> None:
    """Refuse updates that let DynamoDB compute a unique value, or the expiry of its guard.

    The guard item stores the value and its expiry, so Stator must know them before the write.
    """
    guarded = {*of.unique, *([of.ttl] if of.guarded and of.ttl else [])}
    unseen = (guarded & recording.fields) - recording.known().keys()
    if unseen:
        name = min(unseen)
        raise UpdateRefused(
            f"{of.name}.{name} "
            f"{'is unique' if name in of.unique else 'sets the expiry of unique values'}, "
            "so DynamoDB cannot compute it in an update",
            missing=(name,),
            hint="read the item and set the field, instead of computing it in the update",
        )


def _after(
    of: EntityMap,
    old: Item | None,
    recording: Recording,
    values: Mapping[str, Any],
    created_at: float | None,
) -> Item:
    """Return the item after an update, with all values that are known before the write.

    Guarded values and the expiry of their guards are always known. ``created_at`` is the time from
    which the expiry of a new item counts, or None if the update cannot create items.
    """
    after: Item = dict(old or {})
    if old is None:
        after |= {name: of.codec.encode_field[name](values[name]) for name in of.identity}
    if old is None and created_at is not None and of.ttl is not None:
        expiry = of.expiry(created_at)
        if expiry is not None:
            after[of.ttl] = of.codec.encode_field[of.ttl](expiry)
    for name, value in recording.known().items():
        stored = of.codec.attribute(name, value)
        if stored is None:
            after.pop(name, None)
        else:
            after[name] = stored
    return after

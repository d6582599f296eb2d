"""Entities in a plan: how each class is stored, and how items become objects again."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Final

import orjson

from stator.design.entities.codec import Codec
from stator.design.entities.codec_source import is_plain
from stator.design.entities.entity import EntityField, info
from stator.design.entities.entity_versions import UNKNOWN, VERSION_ATTRIBUTE, version_of
from stator.design.entities.hooks import hooks_of, run_hooks
from stator.design.entities.markers import NOT_YET
from stator.design.entities.shapes import CLASS_TAG, Epoch
from stator.design.plan.key_sizes import check_size
from stator.design.plan.key_text import encoding_of
from stator.design.plan.own_table import IDENTITY
from stator.design.plan.plan import EntityPlan, TablePlan
from stator.design.plan.templates import PlannedKeyAttribute
from stator.errors import DesignError, ItemMismatch, RequestRefused, StatorError
from stator.model.values import Item, Value
from stator.tables.codegen.item_writer import BulkEntry, bulk_writer
from stator.tables.codegen.key_writer import (
    KeyReader,
    base_keys,
    fields_of,
    is_the_field,
    key_reader,
    key_writer,
)
from stator.tables.schema.key_identity import KeyAttributeReader, KeyIdentity

_NONE: frozenset[str] = frozenset()

TOMBSTONE: Final = "_deleted"
"""The attribute, set to true, of an item that stands in the place of a deleted one.

Table sinks and ingests leave such items. Their guards refuse late changes to the deleted item.
"""
INGESTED: Final = "_ingested"
"""The attribute of a tombstone that an ingest left: the name of the app."""
SEQUENCE: Final = "_sequence"
"""The attribute of an item that a table sink wrote: the sequence number of its change."""
KEPT_EXPIRY: Final = "_kept_expiry"
"""The attribute of a deleted item that keeps its own expiry, for ``restore``."""


@dataclass(slots=True)
class Stamped:
    """A copy (``made``) of the caller's object with the version, times and expiry of a write.

    ``changes`` has the fields in which the copy differs. After the write they are set on the
    caller's object as well.
    """

    made: Any
    changes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AdaptiveKey:
    """A partition key of an index whose shards follow the traffic: at least ``least`` of them."""

    attribute: str
    index: str
    least: int


_EMPTY: Final = ({"S": ""}, {"B": ""})


class EntityMap:
    """How one entity is stored in one plan."""

    def __init__(self, cls: type[Any], plan: EntityPlan, table: TablePlan) -> None:
        self.cls = cls
        self.info = info(cls)
        self.plan = plan
        self.table = table
        self.name = plan.name
        self.codec: Codec = self.info.codec
        self.fields: dict[str, EntityField] = self.info.fields
        self.own_fields = self.info.own_fields
        self.identity = plan.identity
        self.key_names = (table.partition,) if table.sort is None else (table.partition, table.sort)
        self.key_values = _key_values(table)
        self.base_fields = plan.base_fields
        self.version = self._role("version")
        self.created = self._role("created")
        self.updated = self._role("updated")
        self.ttl = self._role("ttl")
        self.write_token = self._role("write_token")
        self.deleted = self._role("soft_delete")
        self.unique = tuple(field.name for field in self.fields.values() if field.role == "unique")
        self.guarded = (*self.unique, *((IDENTITY,) if plan.is_guarded else ()))
        """The fields whose values have guards. IDENTITY stands for the whole identity."""
        self._after = None if self.ttl is None else _marker_after(self.fields[self.ttl])
        self.large = {
            name: field.marker
            for name, field in self.fields.items()
            if field.marker and field.role == "large"
        }
        self.offloads = any(marker.offload_over_bytes is not None for marker in self.large.values())
        self.adaptive_keys = tuple(
            AdaptiveKey(key.name, key.index, shard.shards)
            for key in plan.keys
            for shard in key.template.parts
            if key.index is not None and shard.kind == "shard" and shard.adaptive
        )
        """The keys of indexes whose shards follow the traffic."""
        self.is_written_alone = (
            bool(self.guarded or self.large or self.adaptive_keys) or self.version is not None
        )
        self.stamps = tuple(
            name
            for name in (
                self.version,
                self.created,
                self.updated,
                self.ttl,
                self.write_token,
                self.deleted,
            )
            if name is not None
        )
        """The fields that Stator itself sets: version, times, expiry, write token, soft delete."""
        model = getattr(self.info, "model", cls)
        self.before_write = hooks_of(model, "before_write")
        self._after_load = hooks_of(model, "after_load")
        self.as_stored: Callable[[Item], Any] = self._decode_own
        """Decodes an item without hooks. An item of a variant becomes the variant."""
        self.decode: Callable[[Item], Any] = self._load if self._after_load else self._decode_own
        """Decodes an item, and runs its ``@after_load`` hooks."""
        self.has_stamps = any(
            (
                self.version,
                self.created,
                self.updated,
                self._after,
                self.write_token,
                self.before_write,
            )
        )
        """Whether the object that is stored differs from the object that is passed to a write."""
        self._is_plain = dataclasses.is_dataclass(cls) and is_plain(cls)
        self._refuse_stale(plan)
        self._identity_texts = tuple(
            name
            for name in self.identity
            if name in self.fields and getattr(self.fields[name].shape, "kind", "") in ("S", "B")
        )
        """Fields of the identity that could be empty, so that a key would not have them."""
        self._write_keys = key_writer(self.info, plan.keys)
        self._write_base = key_writer(self.info, base_keys(plan))
        self._base_fields = tuple(
            (key.name, key.template.parts[0].value) for key in base_keys(plan) if is_the_field(key)
        )
        self.shape_version = self.info.shape_version
        self.tag: dict[str, Any] = {CLASS_TAG: cls._class} if self.info.is_variant else {}
        """The variant, as a field and its value. Empty if this is not a variant's map."""
        self.variants: Mapping[str, EntityMap] = {}
        self.all_fields = info(self.info.root).fields.keys() if self.tag else self.fields.keys()
        """The fields of the entity and of all its variants."""
        self._own = _own_attributes(plan, table) - self.fields.keys()
        if self.deleted is not None and self.ttl is not None:
            self._own |= {KEPT_EXPIRY}
        self._known = frozenset({*self.fields, *self._own}) | (
            frozenset() if self.shape_version.value is None else {VERSION_ATTRIBUTE}
        )
        self._written_keys = self._keys_by_hand()
        self._in_keys = frozenset(name for each in self._written_keys for name in each.fields)
        self._base_keys = tuple((key, key_reader(self.info, key)) for key in base_keys(plan))
        self._key_readers: dict[tuple[str, str | None], KeyReader] = {}
        self.bulk_entry = bulk_writer(self.info, plan, table, self._checked_entry)
        self._type = None if plan.discriminator is None else (plan.discriminator, {"S": plan.name})

        self.told_by_key: Callable[[Item], bool] | None = None
        """Whether an item belongs to this entity, by its key. None if the key is not needed."""
        self.neighbours: list[EntityMap] = []
        """The other entities of the table."""

    @cached_property
    def attributes(self) -> frozenset[str]:
        """Every attribute that an item of this entity may have: fields, keys, discriminator."""
        names = {*self.fields, *(key.name for key in self.plan.keys), *self.key_names}
        return frozenset(names if self._type is None else {*names, self._type[0]})

    def _refuse_stale(self, plan: EntityPlan) -> None:
        """Refuse a plan whose keys name fields that the class no longer has."""
        known = info(self.info.root).fields
        missing = {name for key in plan.keys for name in fields_of(key)} - known.keys()
        if missing:
            raise DesignError(
                f"the plan's keys of {plan.name} name fields that the class {self.info.name} "
                f"does not have: {', '.join(sorted(missing))}",
                hint="write the lock file again with `stator plan --write`, or pass the plan of "
                "this design",
            )

    def _role(self, role: str) -> str | None:
        return next((field.name for field in self.fields.values() if field.role == role), None)

    # -- items

    def item(self, entity: Any) -> Item:
        """Return the whole item as stored.

        If the object was read, this includes the attributes that the class does not know.
        """
        item = self.known_item(entity)
        unknown = getattr(entity, UNKNOWN, None)
        return item if unknown is None else item | unknown

    def known_item(self, entity: Any) -> Item:
        """Return the item without the attributes that the class does not know."""
        item = self.codec.encode(entity)
        for name in self._identity_texts:
            if item.get(name) in _EMPTY:
                raise ItemMismatch(self.name, name, "a field of the identity cannot be empty", "")
        self._write_keys(entity, item)
        if self._type is not None:
            item[self._type[0]] = self._type[1]
        return item

    def _checked_entry(self, entity: Any) -> BulkEntry:
        item = self.item(entity)
        return self.key_values(item), b'{"PutRequest":{"Item":%b}}' % orjson.dumps(item)

    def take_variants(self, variants: Mapping[str, EntityMap]) -> None:
        """Set the maps of the entity's variants, by their tags.

        Afterwards this map and the variants' maps decode each item as the variant that the item's
        tag attribute names.
        """
        if not variants:
            return
        self.variants = variants
        family = (self, *variants.values())
        stored = {tag: each.as_stored for tag, each in variants.items()}
        loaded = {tag: each.decode for tag, each in variants.items()}
        as_stored = self._by_variant(self.as_stored, stored)
        decode = self._by_variant(self.decode, loaded)
        for each in family:
            each.as_stored, each.decode = as_stored, decode
            each.neighbours = self.neighbours

    def _by_variant(
        self, own: Callable[[Item], Any], variants: Mapping[str, Callable[[Item], Any]]
    ) -> Callable[[Item], Any]:
        def decode(item: Item) -> Any:
            tag = item.get(CLASS_TAG)
            if tag is None:
                return own(item)
            found = variants.get(tag.get("S", ""))
            if found is None:
                raise ItemMismatch(
                    self.name,
                    CLASS_TAG,
                    f"no variant has this tag; known are {', '.join(variants)}",
                    tag.get("S"),
                ).of_item(self._shown_item(item))
            return found(item)

        return decode

    def _decode_own(self, item: Item) -> Any:
        """Decode an item into an object of the entity, upcast to the current shape. No hooks run.

        The object keeps attributes that the class does not know, and ``item`` writes them back. So
        a program that was deployed before a field was added does not erase that field.
        """
        try:
            item = self.with_key_fields(item)
            if not self._known.issuperset(item):
                return self._decode_with_unknown(item)
            if item.get(VERSION_ATTRIBUTE) != self.shape_version.value:
                return self._decode_with_unknown(self.current(item))
            return self.codec.decode(item)
        except ItemMismatch as mismatch:
            raise mismatch.of_item(self._shown_item(item)) from mismatch.__cause__

    def _keys_by_hand(self) -> tuple[KeyAttributeReader, ...]:
        """Return the readers of the handwritten keys that hold fields as text: ``"ORDER#{id}"``."""
        by_hand = self.info.overrides
        indexes = {name for name, _ in by_hand.indexes}
        written = [
            key
            for key in self.plan.keys
            if (by_hand.key is not None if key.index is None else key.index in indexes)
        ]
        return tuple(
            KeyAttributeReader(self, key)
            for key in written
            if not key.template.native and fields_of(key)
        )

    def with_key_fields(self, item: Item) -> Item:
        """Return an item with all fields, including those that only its handwritten keys hold.

        An example: an item of another program with the key ``ORDER#o1`` and no attribute ``id``
        gets ``id`` = "o1".
        """
        if not self._in_keys or item.keys() >= self._in_keys:
            return item
        found: Item = {}
        for each in self._written_keys:
            for name, value in (each.read(item.get(each.name)) or {}).items():
                if name not in item and not self.codec.omits_field[name](value):
                    found[name] = self.codec.encode_field[name](value)
        return item | found

    def is_same_value(self, name: str, value: Value, stored: Value | None) -> bool:
        """Whether two texts of an adaptive index key differ in the number of the shard only."""
        if stored is None or all(each.attribute != name for each in self.adaptive_keys):
            return False
        return bool(value["S"].rpartition("#")[0] == stored["S"].rpartition("#")[0])

    def is_in_written_key(self, field: str) -> bool:
        """Whether a handwritten key holds the field, so that items may lack its attribute."""
        return field in self._in_keys

    def current(self, item: Item) -> Item:
        """Return an item upcast to the current shape, with the same key attributes.

        The user's upcast functions get only the fields, without keys and discriminator.
        """
        if item.get(VERSION_ATTRIBUTE) == self.shape_version.value:
            return item
        own = {name: item[name] for name in self._own if name in item}
        rest = {name: value for name, value in item.items() if name not in own}
        return self.codec.current(rest) | own

    def is_old(self, item: Item) -> bool:
        """Whether an earlier version of the entity has written the item."""
        return version_of(item) < self.shape_version.version

    def current_item(self, item: Item) -> Item:
        """Return an item with the fields that only its keys hold, upcast to the current shape.

        Raises NewerVersion or ItemMismatch, with the item named, if that cannot be done.
        """
        try:
            return self.current(self.with_key_fields(item))
        except ItemMismatch as mismatch:
            raise mismatch.of_item(self._shown_item(item)) from mismatch.__cause__

    def without_keys(self, item: Item) -> Item:
        """Return the fields of an item, upcast to the current shape, by their names in Python.

        The keys and the discriminator are left out. Attributes that the class does not know are
        kept. If an item cannot be upcast, its fields are returned as stored.
        """
        with contextlib.suppress(StatorError):
            item = self.current(self.with_key_fields(item))
        python, shape = self.info.python_names, self.shape_version.value
        return {
            python.get(name, name): value
            for name, value in item.items()
            if name not in self._own and (name != VERSION_ATTRIBUTE or value != shape)
        }

    def _decode_with_unknown(self, item: Item) -> Any:
        item = self.current(item)
        entity = self.codec.decode(item)
        unknown = {name: value for name, value in item.items() if name not in self._known}
        if version_of(item) > self.shape_version.version:
            unknown[VERSION_ATTRIBUTE] = item[VERSION_ATTRIBUTE]
        if unknown and hasattr(entity, "__dict__"):
            entity.__dict__[UNKNOWN] = unknown
        return entity

    def _shown_item(self, item: Item) -> str:
        found: dict[str, Any] = {}
        for name in self.identity:
            with contextlib.suppress(ItemMismatch, KeyError):
                found[name] = self.codec.decode_field[name](item[name])
        return self.shown(found) if found else f"{self.name} {self.stored_key(item)}"

    def _load(self, item: Item) -> Any:
        return run_hooks(self._decode_own(item), self._after_load)

    def key_of(self, entity: Any) -> Item:
        """Return the table's key for an object."""
        key: Item = {}
        try:
            self._write_base(entity, key)
        except (DesignError, AttributeError, TypeError):
            python = self.info.python_names
            for name in self.base_fields:  # raises for the field whose value is at fault
                self.codec.encode_field[name](getattr(entity, python.get(name, name)))
            raise
        for name, field in self._base_fields:
            key[name] = self.codec.encode_field[field](getattr(entity, field))
        return key

    def key_from(self, values: Mapping[str, Any]) -> Item:
        """Return the table's key, computed from field values. Their types are checked."""
        for name in self.base_fields:
            if name in values:
                self.codec.encode_field[name](values[name])
        item: Item = {}
        for key, read in self._base_keys:
            try:
                value = read(values)
            except KeyError as error:
                raise DesignError(
                    f"the key of {self.name} needs {error.args[0]}",
                    hint=f"pass {self.info.listed(self.base_fields)}",
                ) from None
            if value is not None:
                check_size(self.name, key, value, values)
                item[key.name] = value
        return item

    def key_value(self, key: PlannedKeyAttribute, values: Mapping[str, Any]) -> Value | None:
        """Compute one key attribute of an item from its field values.

        Returns None if an item with these values does not have the attribute, as in a sparse index.
        """
        which = (key.name, key.index)
        read = self._key_readers.get(which)
        if read is None:
            read = self._key_readers[which] = key_reader(self.info, key)
        return read(values)

    def stored_key(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names}

    @cached_property
    def key_identity(self) -> KeyIdentity:
        """The decoder that reads field values back from an item's key."""
        return KeyIdentity(self)

    @cached_property
    def is_key_certain(self) -> bool:
        """Whether a key of this entity cannot belong to another entity of the table."""
        return not any(self.key_identity.overlaps(each.key_identity) for each in self.neighbours)

    def key_fields(self, key: Item) -> dict[str, Any]:
        """Return the field values that a key of this entity holds, as far as they can be read."""
        return self.key_identity.read(key) or {}

    def beside_the_key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of ``values`` whose fields are not part of the table's key.

        A read by key does not verify these values: a caller who identifies an item by ``values``
        must compare them with the stored item.
        """
        beside = {name: value for name, value in values.items() if name not in self.base_fields}
        return beside | self.tag if self.tag else beside

    def given(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the field values that a caller passed, under their stored names.

        If the field ``name`` is stored as ``n``: ``{"name": "Anna"}`` -> ``{"n": "Anna"}``.
        """
        stored = self.info.stored_names
        if not stored:
            return values
        return {stored.get(name, name): value for name, value in values.items()}

    def has_base(self, values: Mapping[str, Any]) -> bool:
        """Whether these values include every field of the table's key."""
        for name in values:
            if name not in self.fields:
                raise DesignError(
                    f"{self.name} has no field {name!r}",
                    hint=f"it is identified by {self.info.listed(self.identity)}",
                )
        return all(name in values for name in self.base_fields)

    # -- times and versions

    def stamped(self, entity: Any, now: float, *, fresh: bool, token: str | None = None) -> Stamped:
        """Return a copy of the entity with the version, times and expiry of a write at ``now``.

        The ``@before_write`` hooks run first. ``fresh`` means that the write creates the item.
        ``token`` is stored in the entity's ``write_token()`` field, if there is such a field.
        """
        if not self.has_stamps:
            return Stamped(entity, {})
        moment = datetime.fromtimestamp(now, UTC)
        changes: dict[str, Any] = {}
        if self.before_write:
            entity, changes = self._before_write(entity)
        if self.version is not None:
            known = 0 if fresh else self.version_of(entity)
            changes[self.version] = (known or self.version_before_first(now)) + 1
        if self.created is not None and (fresh or getattr(entity, self.created) == NOT_YET):
            changes[self.created] = moment
        if self.updated is not None:
            changes[self.updated] = moment
        if (
            self.ttl is not None
            and self._after is not None
            and getattr(entity, self.ttl) is None
            and not self._was_read(entity, fresh)
        ):
            changes[self.ttl] = self.expiry(now)
        if self.write_token is not None and token is not None:
            changes[self.write_token] = token
        made = self.copied(entity, changes)
        return Stamped(made, changes)

    def version_before_first(self, now: float) -> int:
        """Return the number that the first version of an item written at ``now`` comes after."""
        marker = None if self.version is None else self.fields[self.version].marker
        return int(now * 1_000_000) if marker is not None and marker.starts_at_clock else 0

    def version_of(self, entity: Any) -> int:
        """Return the number in the ``version()`` field. Raises ItemMismatch if it is no number."""
        assert self.version is not None
        found = getattr(entity, self.version)
        if isinstance(found, bool) or not isinstance(found, int):
            raise ItemMismatch(
                self.name, self.version, f"expected int, got {type(found).__name__}", found
            )
        return found

    def _before_write(self, entity: Any) -> tuple[Any, dict[str, Any]]:
        """Run the hooks on a deep copy. Return the copy and the fields that they changed."""
        made = run_hooks(copy.deepcopy(entity), self.before_write)
        fields = [name for name in self.own_fields if name not in self.stamps]
        changed = {name: getattr(made, name) for name in fields}
        return made, {
            name: value for name, value in changed.items() if value != getattr(entity, name)
        }

    def stamped_or_refused(
        self, entity: Any, now: float, *, fresh: bool, token: str | None = None
    ) -> Stamped:
        """Stamp an entity like ``stamped``, for one of many writes of a batch.

        If a hook raises an error that is not a StatorError, raises RequestRefused instead.
        """
        if not self.before_write:
            return self.stamped(entity, now, fresh=fresh, token=token)
        try:
            return self.stamped(entity, now, fresh=fresh, token=token)
        except StatorError:
            raise
        except Exception as error:
            raise refused_by_hook(self, entity, error) from error

    def _was_read(self, entity: Any, fresh: bool) -> bool:
        """Whether the object was read from the table, judged by its version or time of creation.

        A write gives a default expiry only to objects that were not read: an item that was read
        without an expiry has none on purpose. If ``fresh``, the write creates the item, so the
        object counts as not read.
        """
        if fresh:
            return False
        version = 0 if self.version is None else self.version_of(entity)
        return version > 0 or (
            self.created is not None and getattr(entity, self.created) != NOT_YET
        )

    def expiry(self, now: float) -> Any:
        """Return when an item written at ``now`` expires, in the type of the field.

        Returns None if it does not expire.
        """
        if self.ttl is None or self._after is None:
            return None
        moment = math.ceil(now + self._after.total_seconds())  # stored in whole seconds
        encoding = encoding_of(self.fields[self.ttl].shape)
        is_time = encoding is not None and encoding.python is Epoch
        return datetime.fromtimestamp(moment, UTC) if is_time else int(moment)

    def is_keyed_by(self, field: str) -> bool:
        """Whether a key attribute contains the field and more: ``"ORDER#{field}"``.

        A key attribute that is the field itself does not count.
        """
        return any(field in fields_of(key) and not is_the_field(key) for key in self.plan.keys)

    def copied(self, entity: Any, changes: Mapping[str, Any]) -> Any:
        """Return a copy of the object with some fields changed."""
        if not self._is_plain or type(entity) is not self.cls or self.info.python_names:
            return self.info.replaced(entity, changes)
        made = object.__new__(self.cls)
        made.__dict__.update(entity.__dict__)
        made.__dict__.update(changes)
        return made

    def write_back(self, entity: Any, changes: Mapping[str, Any]) -> None:
        """Copy the values that a write set on the item to the caller's object.

        A frozen object is left unchanged.
        """
        if not self.info.is_frozen:
            for name, value in changes.items():
                setattr(entity, name, value)

    def is_expired(self, item: Item, now: float) -> bool:
        if self.ttl is None:
            return False
        value = item.get(self.ttl)
        return value is not None and "N" in value and float(value["N"]) <= now

    def is_deleted(self, item: Item) -> bool:
        """Whether the item is marked as deleted, in its ``soft_delete()`` field."""
        return self.deleted is not None and self.deleted in item

    def is_tombstone(self, item: Item) -> bool:
        """Whether a table sink or an ingest left the item in the place of a deleted one."""
        return (
            TOMBSTONE in item
            and (SEQUENCE in item or INGESTED in item)
            and item[TOMBSTONE] == {"BOOL": True}
            and TOMBSTONE not in self.fields
        )

    def is_gone(self, item: Item, now: float) -> bool:
        """Whether writes treat the item as absent: it has expired, or is marked as deleted."""
        return self.is_deleted(item) or self.is_expired(item, now)

    def is_hidden(
        self, item: Item, now: float, *, include_expired: bool, include_deleted: bool
    ) -> bool:
        """Whether reads leave the item out."""
        return (
            (not include_deleted and self.is_deleted(item))
            or (not include_expired and self.is_expired(item, now))
            or self.is_tombstone(item)
        )

    def shown(self, values: Mapping[str, Any]) -> str:
        """Return the entity and its identity for messages: ``Order(order_id='o1')``."""
        python = self.info.python_names
        shown = (
            f"{python.get(name, name)}={value!r}"
            for name, value in values.items()
            if name in self.identity
        )
        return f"{self.info.name if self.tag else self.name}({', '.join(shown)})"

    def shown_entity(self, entity: Any) -> str:
        return self.shown({name: getattr(entity, name) for name in self.identity})


def _own_attributes(plan: EntityPlan, table: TablePlan) -> set[str]:
    """Return the attributes that Stator adds to the items of an entity: keys and discriminator."""
    names = {table.partition, *(key.name for key in plan.keys)}
    names |= {table.sort} if table.sort is not None else set()
    return names | ({plan.discriminator} if plan.discriminator is not None else set())


def refused_by_hook(of: EntityMap, entity: Any, error: Exception) -> RequestRefused:
    """Return the RequestRefused for one write of a batch whose ``@before_write`` hook failed."""
    return RequestRefused(
        f"@before_write of {of.shown_entity(entity)} refused the write: "
        f"{type(error).__name__}: {error}",
        hint="correct the object; the other changes are not affected",
    )


def _key_values(table: TablePlan) -> Callable[[Item], Any]:
    """Return a function that takes an item and returns its table key: ``("u1", "o1")``.

    These keys can be compared and hashed.
    """
    types = dict(table.attributes)
    partition, kind = table.partition, types[table.partition]
    sort, sort_kind = table.sort, types.get(table.sort or "", "")
    if "N" in (kind, sort_kind):
        names = [(partition, kind), *([(sort, sort_kind)] if sort is not None else [])]
        return lambda item: tuple(_comparable(item[name][each], each) for name, each in names)
    if sort is None:
        return lambda item: item[partition][kind]
    return lambda item: (item[partition][kind], item[sort][sort_kind])


def _comparable(content: str, kind: str) -> Any:
    """Return the content of a key attribute in a form that compares by value.

    Numbers become Decimals, because DynamoDB may return ``1.0`` as ``1``.
    """
    return Decimal(content) if kind == "N" else content


def _marker_after(field: EntityField) -> Any:
    return None if field.marker is None else field.marker.after

"""Changes: a stream record as it came, and as handlers see it, with entities before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import orjson

from stator.design.entities.entity_versions import version_of
from stator.errors import IdentityUnknown, ImageNotShown, NotAnEntity, StatorError
from stator.model.values import Item
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.key_identity import TableKeyReader
from stator.tables.schema.missing_attributes import with_defaults

E = TypeVar("E")
Kind = Literal["INSERT", "MODIFY", "REMOVE"]


@dataclass(frozen=True, slots=True)
class Record:
    """A stream record. ``key`` is text that identifies the item within its table.

    ``sequence`` is the stream's sequence number as text; it is empty for an item of a snapshot.
    ``at`` is the time of the change, in seconds since the epoch. ``by_service`` says that DynamoDB
    deleted the item because it had expired. ``raw`` is the record as DynamoDB sent it.
    """

    table: str
    kind: Kind
    keys: Item
    old: Item | None
    new: Item | None
    sequence: str
    event_id: str
    at: float
    by_service: bool
    shard: str
    raw: Mapping[str, Any]

    @property
    def key(self) -> str:
        return key_text(self.keys)

    @property
    def image(self) -> Item:
        """The item after the change or, if it was deleted, the item before the change.

        If the stream shows no image, this is only the item's key.
        """
        return self.new or self.old or self.keys

    @property
    def is_snapshot(self) -> bool:
        """Whether this record is an existing item, read by a snapshot, and not a change."""
        return not self.sequence


def key_text(keys: Item) -> str:
    return orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def key_mark(table: str, key: str) -> str:
    """Return a short text that identifies an item: its table and a hash of its key.

    An example is ``shop#5c0a...``. Items that are stored about this item have the text in their
    keys.
    """
    return f"{table}#{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def read_record(raw: Mapping[str, Any], table: str, shard: str) -> Record:
    """Return a record of a GetRecords reply or of a Lambda event as a ``Record``.

    The two sources spell ``PrincipalId`` differently.
    """
    body = raw["dynamodb"]
    identity = raw.get("userIdentity") or {}
    principal = identity.get("PrincipalId") or identity.get("principalId")
    return Record(
        table,
        raw["eventName"],
        body["Keys"],
        body.get("OldImage"),
        body.get("NewImage"),
        body["SequenceNumber"],
        raw.get("eventID", ""),
        float(body.get("ApproximateCreationDateTime", 0.0)),
        principal == "dynamodb.amazonaws.com",
        shard,
        raw,
    )


def snapshot_record(table: str, keys: Item, item: Item, at: float) -> Record:
    """Return an item of a snapshot as the record of an insert.

    ``at`` is the time of the snapshot. The result's ``raw`` has the form of a stream record,
    because parked records are stored in that form.
    """
    body = {"Keys": keys, "NewImage": item, "SequenceNumber": "", "ApproximateCreationDateTime": at}
    raw = {"eventName": "INSERT", "dynamodb": body}
    return Record(table, "INSERT", keys, None, item, "", "", at, False, "", raw)


class Change(Generic[E]):
    """A change to one item, with entities before and after.

    ``old`` and ``new`` are None if there is no item, or if the stream does not show it.
    """

    __slots__ = ("_decoded", "_keys", "_of", "record")

    def __init__(
        self,
        record: Record,
        of: EntityMap | None,
        decoded: dict[str, Any] | None = None,
        keys: TableKeyReader | None = None,
    ) -> None:
        self.record = record
        self._of = of
        self._decoded: dict[str, Any] = {} if decoded is None else decoded
        self._keys = keys

    @property
    def old(self) -> E | None:
        """The entity before the change, or None. Raises NotAnEntity for an item of no entity."""
        return self._image("old", self.record.old)

    @property
    def new(self) -> E | None:
        """The entity after the change, or None. Raises NotAnEntity for an item of no entity."""
        return self._image("new", self.record.new)

    def _image(self, name: str, item: Item | None) -> E | None:
        if name not in self._decoded and item is not None:
            self._decoded[name] = self._entity_map.decode(item)
        entity: E | None = self._decoded.get(name)
        return entity

    @property
    def _entity_map(self) -> EntityMap:
        if self._of is None:
            raise NotAnEntity(
                f"the item {self.record.key} of table {self.record.table} is not an entity of the"
                " design"
            )
        return self._of

    @property
    def identity(self) -> Mapping[str, Any]:
        """The names and values of the item's identity fields, as Python values.

        ``db.get(Order, **change.identity)`` reads the item as it is now. The identity is read from
        an image, or from the key if the stream shows no image. Raises IdentityUnknown if the key
        does not hold the identity.
        """
        of, item = self._entity_map, self.record.new or self.record.old
        if item is not None and all(name in item for name in of.identity):
            return {
                of.info.listed([name]): of.codec.decode_field[name](item[name])
                for name in of.identity
            }
        found = None if self._keys is None else self._keys.identity_of(of, self.record.keys)
        if found is None:
            raise IdentityUnknown(
                f"the key {self.record.key} does not hold the identity of {of.name}",
                hint="set the stream's view type to NEW_AND_OLD_IMAGES",
            )
        return {of.info.listed([name]): value for name, value in found.items()}

    @property
    def kind(self) -> Kind:
        """``INSERT``, ``MODIFY`` or ``REMOVE``."""
        return self.record.kind

    @property
    def entity(self) -> str | None:
        """The entity's name, or None for an item that is not an entity of the design."""
        return None if self._of is None else self._of.name

    @property
    def sequence_number(self) -> str:
        """The sequence number of the change, as text; empty for an item of a snapshot."""
        return self.record.sequence

    @property
    def event_id(self) -> str:
        """The change's id, the same in every delivery, so that receivers recognise a repeat."""
        return self.record.event_id

    @property
    def at(self) -> float:
        """The time of the change, in seconds since the epoch, rounded down."""
        return self.record.at

    @property
    def expired(self) -> bool:
        """Whether DynamoDB deleted the item because its time to live was over."""
        return self.record.kind == "REMOVE" and self.record.by_service

    @property
    def is_snapshot(self) -> bool:
        """Whether this is not a change, but an item that a snapshot read when the app started."""
        return self.record.is_snapshot

    @property
    def changed(self) -> frozenset[str]:
        """The names of the attributes that differ between the two images.

        Images of different entity versions are compared in the current shape.
        """
        return changed_attributes(self.record, self._of)

    def __repr__(self) -> str:
        shown = self.entity or self.record.table
        return f"<{type(self).__name__} {self.kind} {shown} {self.record.key}>"


class Insert(Change[E]):
    """A new item, or an item of a snapshot."""

    __slots__ = ()

    @property
    def new(self) -> E:
        """The entity that was created."""
        return _there(self._image("new", self.record.new), "NEW_IMAGE")


class Modify(Change[E]):
    """An update to an existing item.

    ``old`` and ``new`` raise ImageNotShown if the stream does not show them.
    """

    __slots__ = ()

    @property
    def old(self) -> E:
        """The entity before the update."""
        return _there(self._image("old", self.record.old), "OLD_IMAGE")

    @property
    def new(self) -> E:
        """The entity after the update."""
        return _there(self._image("new", self.record.new), "NEW_IMAGE")


class Remove(Change[E]):
    """A deleted item: by a program, or because its time to live was over (``expired``)."""

    __slots__ = ()

    @property
    def old(self) -> E:
        """The entity that was deleted."""
        return _there(self._image("old", self.record.old), "OLD_IMAGE")


def _there(entity: E | None, view: str) -> E:
    if entity is None:
        raise ImageNotShown(view)
    return entity


def entity_of(record: Record, context: Context) -> EntityMap | None:
    """Return the entity that a change belongs to, or None.

    The entity is found from the item's image or, if the stream shows no image, from its key.
    """
    schema = context.schema
    if record.table not in schema.tables:
        return None
    found = schema.of_item(record.image, record.table)
    if found is None and record.new is None and record.old is None:
        return schema.table_keys(record.table).entity_of(record.keys)
    return found


def changed_attributes(record: Record, of: EntityMap | None = None) -> frozenset[str]:
    """Return the names of the attributes that differ between the two images of a record.

    If the images have different entity versions, ``of`` turns both into the current shape first. An
    upgrade of an item to the current version is then no change of any field. An attribute that one
    image lacks counts with the field's default: writing the default first is no change either.
    """
    old, new = record.old or {}, record.new or {}
    if of is not None and old and new and version_of(old) != version_of(new):
        with suppress(StatorError):  # an image that cannot be upcast is compared as it is
            old, new = of.current(old), of.current(new)
    differing = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if of is not None and old and new:
        missing = [name for name in differing & of.all_fields if not (name in old and name in new)]
        if missing:
            old, new = with_defaults(of, old, missing), with_defaults(of, new, missing)
            differing -= {name for name in missing if old.get(name) == new.get(name)}
    return frozenset(differing)


CHANGES: dict[str, type[Change[Any]]] = {"INSERT": Insert, "MODIFY": Modify, "REMOVE": Remove}

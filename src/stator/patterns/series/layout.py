"""The layout of a series: keys, shards, and the entity's fields on an item.

    PK  SERIES#readings#s-17#2026-11-16#2    SK  2026-11-16T10:05:00.000000Z#r-9    the fields, TTL

The partition key names the series, the value of ``by``, the bucket of time, and the shard. The sort
key is the time, followed by the rest of the identity. A hash of the identity, or of one field,
chooses the shard, so that writing the same object again finds the same item.

Items are stored in the design's own table, among items of other kinds, or in a table per period.
Where one table is the limit, some shards are in further tables: ``<table>-<series>-2`` and so on.

A field may have the same name as a key attribute, the TTL attribute or the discriminator of that
table. It is then stored with ``_`` appended to its name, so that no index picks it up by accident.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from stator.design.entities.conditions import FieldRef
from stator.design.entities.entity import EntityInfo, info
from stator.design.plan.key_text import AFTER, SEPARATOR, encode, encoding_of, escape
from stator.errors import ConfigurationError
from stator.model.periods import (
    Period,
    check_moment,
    check_period,
    is_within,
    period_start,
    period_text,
)
from stator.model.seconds import is_seconds
from stator.model.values import Item
from stator.patterns.series.spread import ShardLocation, Spread
from stator.tables.schema.place import Place
from stator.tables.schema.schema import Schema

_PLAIN_ROLES = frozenset({None, "ident", "counter"})


@dataclass(frozen=True, slots=True)
class KeyField:
    """A field that is part of a key, and the encoding that turns its values into key text."""

    name: str
    encoding: str

    def text(self, value: Any) -> str:
        return encode(self.encoding, value)

    def of(self, entity: Any) -> str:
        return self.text(getattr(entity, self.name))


class SeriesLayout:
    """The keys and items of one series."""

    def __init__(
        self,
        schema: Schema,
        entity: type[Any],
        *,
        name: str | None,
        by: Any,
        at: Any,
        bucket: Period,
        shard_by: Any,
        keep: timedelta | None,
        table_per: Period | None,
        most_tables: int = 1,
    ) -> None:
        self.info = info(entity)
        self.name = name or self.info.name.lower()
        self.place = schema.place
        self.by = key_field(self.info, by, "by")
        self.at = key_field(self.info, at, "at")
        self.bucket: Period = bucket
        self.keep = keep
        self.table_per: Period | None = table_per
        self.most_tables = most_tables
        self._rest = tuple(
            key_field(self.info, name, "identity")
            for name in self.info.identity
            if name not in (self.by.name, self.at.name)
        )
        self._sharded = () if shard_by is None else (key_field(self.info, shard_by, "shard_by"),)
        self._check()
        self._stored_name = _stored_names(schema, self.info)
        self._head = f"SERIES{SEPARATOR}{escape(self.name)}"

    def _check(self) -> None:
        check_period(self.bucket, "a bucket of a series")
        if self.at.encoding != "datetime":
            raise ConfigurationError(
                f"{self.info.name}.{self.at.name} is not a datetime",
                hint="pass the datetime field of the reading as at=",
            )
        special = next(
            (field for field in self.info.fields.values() if field.role not in _PLAIN_ROLES), None
        )
        if special is not None:
            raise ConfigurationError(
                f"{self.info.name}.{special.name} is {special.role}(),"
                " which a series does not support",
                hint="use keep=... for a time to live; remove other markers from the entity",
            )
        if self.keep is not None and not is_seconds(self.keep.total_seconds()):
            raise ConfigurationError(
                f"keep={self.keep} must be a duration above 0, and up to a hundred years",
                hint="pass a duration such as keep=timedelta(days=90)",
            )
        if self.table_per is not None:
            self._check_table_period(self.table_per)
        if self.table_per is not None or self.most_tables > 1:
            self._check_table_name()

    def _check_table_period(self, period: Period) -> None:
        check_period(period, "table_per of a series")
        if period not in ("day", "month", "year") or not is_within(self.bucket, period):
            raise ConfigurationError(
                f"table_per={period!r} does not fit buckets of one {self.bucket}",
                hint='use "day", "month" or "year", no shorter than the bucket',
            )

    def _check_table_name(self) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,100}", self.name):
            raise ConfigurationError(
                f"{self.name!r} cannot be part of a table name",
                hint="name the series with 1 to 100 letters, digits, _ . -",
            )

    # -- keys

    def bucket_of(self, entity: Any) -> str:
        moment: datetime = getattr(entity, self.at.name)
        check_moment(moment, f"{self.info.name}.{self.at.name}")
        return period_text(self.bucket, moment)

    def sort_text(self, entity: Any) -> str:
        return SEPARATOR.join((self.at.of(entity), *(field.of(entity) for field in self._rest)))

    def shard(self, entity: Any, shards: int) -> int:
        """Return the shard of a reading in a bucket with this many shards.

        The shard is a hash of the reading's identity, or of the field ``shard_by`` if there is one.
        """
        if shards == 1:
            return 0
        fields = self._sharded or (self.at, *self._rest)
        text = SEPARATOR.join(field.of(entity) for field in fields)
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) % shards

    def location(self, entity: Any, spread: Spread) -> ShardLocation:
        """Return the shard and the table of a reading in a bucket that is spread like this."""
        return spread.location(self.shard(entity, spread.shards))

    def partition(self, by: str, bucket: str, shard: int) -> str:
        """Return a shard's partition key, such as ``SERIES#readings#s-17#2026-11-16#2``.

        ``by`` is the series key as key text, which ``self.by`` encodes.
        """
        return SEPARATOR.join((self._head, by, bucket, str(shard)))

    def bucket_of_partition(self, partition: str) -> tuple[str, str] | None:
        """Return the series key and the bucket in the partition key of a shard.

        Returns None for any other partition key. The series key is key text.
        """
        if not partition.startswith(self._head + SEPARATOR):
            return None
        parts = partition.removeprefix(self._head + SEPARATOR).split(SEPARATOR)
        if len(parts) != 3 or not parts[2].isdecimal():
            return None
        return parts[0], parts[1]

    def directory(self, by: str) -> str:
        """Return the partition key under which the buckets of a series key are listed."""
        return SEPARATOR.join((self._head, by))

    @property
    def tables_partition(self) -> str:
        return self._head

    def period(self, bucket: str) -> str:
        """Return the period whose tables hold a bucket, or "" if tables are not per period."""
        if self.table_per is None:
            return ""
        return period_text(self.table_per, period_start(bucket))

    def table(self, bucket: str, number: int = 0) -> str:
        """Return the table of a bucket's shards in the table ``number``, counted from 0."""
        return self.period_table(self.period(bucket), number)

    def period_table(self, text: str, number: int = 0) -> str:
        """Return the name of a period's table; the period "" is all time."""
        if not text and not number:
            return self.place.table
        parts = [self.place.table, self.name, *([text] if text else [])]
        return "-".join(parts if not number else [*parts, str(number + 1)])

    def period_place(self, text: str, number: int = 0) -> Place:
        return replace(self.place, table=self.period_table(text, number))

    # -- bounds of sort keys

    def bounds(self, start: datetime, end: datetime) -> tuple[str, str]:
        """Return the lowest and the highest sort key that a reading in the range can have.

        The range begins at ``start``, included, and ends before ``end``.
        """
        return self.at.text(start), self.at.text(end - timedelta(microseconds=1)) + AFTER

    # -- items

    def item(self, entity: Any, bucket: str, shards: int) -> Item:
        """Return the item that stores a reading in a bucket with this many shards."""
        item: Item = {
            self._stored_name.get(name, name): value
            for name, value in self.info.codec.encode(entity).items()
        }
        item |= self.place.key(
            self.partition(self.by.of(entity), bucket, self.shard(entity, shards)),
            self.sort_text(entity),
        )
        if self.keep is not None:
            item[self.place.ttl] = seconds((getattr(entity, self.at.name) + self.keep).timestamp())
        return item

    def key_of(self, item: Item) -> Item:
        return {name: item[name] for name in (self.place.partition, self.place.sort)}

    def sort_of(self, item: Item) -> str:
        text: str = item[self.place.sort]["S"]
        return text

    def decode(self, item: Item) -> Any:
        if self._stored_name:
            item = dict(item)
            for name, stored in self._stored_name.items():
                item.pop(name, None)
                if stored in item:
                    item[name] = item.pop(stored)
        return self.info.codec.decode(item)

    def is_expired(self, item: Item, now: float) -> bool:
        value = item.get(self.place.ttl)
        return value is not None and "N" in value and float(value["N"]) <= now

    def bucket_expiry(self, end: datetime) -> Item:
        """Return the expiry attribute of a bucket's directory entry; ``end`` is the bucket's end.

        The entry expires no earlier than any reading in the bucket.
        """
        return {} if self.keep is None else {self.place.ttl: seconds((end + self.keep).timestamp())}


def seconds(moment: float) -> dict[str, str]:
    return {"N": str(math.ceil(moment))}


def key_field(entity: EntityInfo, given: Any, what: str) -> KeyField:
    """Return the field that ``given`` names, as part of a key.

    ``given`` is a reference, such as ``Reading.sensor_id``, or a field name. ``what`` is the
    parameter that was given, for error messages.
    """
    if isinstance(given, FieldRef) and len(given.path) > 1:
        raise ConfigurationError(
            f"{what}={given!r} is only part of a field", hint=f"name a whole field of {entity.name}"
        )
    name = given.name if isinstance(given, FieldRef) else given
    field = entity.fields.get(name) if isinstance(name, str) else None
    if field is None:
        raise ConfigurationError(
            f"{what}={given!r} is not a field of {entity.name}",
            hint=f"use one of {', '.join(entity.fields)}",
        )
    encoding = encoding_of(field.shape)
    if encoding is None:
        raise ConfigurationError(
            f"{entity.name}.{name} cannot be part of a key: values of its type have no order",
            hint="use a field with a single value, such as text, a number or a time",
        )
    return KeyField(field.name, encoding.name)


def _stored_names(schema: Schema, entity: EntityInfo) -> dict[str, str]:
    place = schema.place
    taken = {place.partition, place.sort, place.ttl}
    table = schema.tables.get(place.table)
    if table is not None:
        taken |= {name for name, _ in table.attributes}
    taken |= {
        each.discriminator
        for each in schema.plan.entities
        if each.table == place.table and each.discriminator
    }
    names: dict[str, str] = {}
    for name in entity.fields:
        if name in taken:
            stored = name + "_"
            while stored in taken or stored in entity.fields:
                stored += "_"
            names[name] = stored
    return names

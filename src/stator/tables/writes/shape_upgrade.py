"""Upgrades of items that were stored in an earlier shape, before a write that relies on the shape.

An update sets single attributes. On an item of an earlier version, an update would mix two shapes:
the item would have some fields of the current version, and old values in all others. A user's
condition has the same problem, because it names fields of the current shape.

So these writes require that the item has the current version (``_v``). The requirement costs
nothing while it holds. If it fails, an update is planned again, and writes its changes together
with the upcast item (``computed_update``). All other writes upgrade the item first: it is read,
upcast and written back by one conditional write. Then the original write is planned again. An
upgrade changes nothing that a reader can see, so a program may stop between the upgrade and the
original write, and the original write may be refused.

The upgrade is an UpdateItem that sets what the upcasts changed, on condition that every attribute
is as it was read. Attributes that another writer adds meanwhile stay.

If the item has a later version than the class, the write raises NewerVersion. An entity with
``on_newer="ignore_unknown"`` allows such writes: they require the later version, and keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE, version_of
from stator.errors import ConditionFailed, ItemMismatch, NewerVersion, TransactionFailed
from stator.model.values import Item, Value
from stator.tables.codegen.key_writer import is_the_field
from stator.tables.context import Context
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Call, Pause, Work
from stator.tables.writes.sender import send_all, send_one
from stator.tables.writes.statements import LostRace, Meaning, Statement, Terms
from stator.tables.writes.unique_guards import guards

_ATTEMPTS = 20
_Place = tuple[str, tuple[tuple[str, str], ...]]


class ShapeUpgrade:
    """Makes each write of a ``WritePlanner`` require that its item has the current shape version.

    A write fails if its item has another version. This object remembers such items. When the write
    is planned again, an older item is upgraded first. A newer item keeps its version, if
    ``on_newer`` allows the write.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._older: set[_Place] = set()
        self._newer: dict[_Place, int] = {}

    def shape(self, of: EntityMap, key: Item) -> Work[Value | None]:
        """Return the version that a write must require. None stands for version 1.

        If an earlier attempt found an older version, the item is upgraded first. If an earlier
        attempt found a newer version and ``on_newer`` allows it, that newer version is returned.
        """
        place = _place(of, key)
        if place in self._older:
            yield from self._upgraded(of, key)
            self._older.discard(place)
        return self.required_shape(of, key)

    def older_item(self, of: EntityMap, key: Item) -> Work[Item | None]:
        """Return the stored item if an earlier attempt found that its version is older, or None.

        An update writes such an item in the current shape, together with its own changes.
        """
        if _place(of, key) not in self._older:
            return None
        request = {"TableName": of.table.name, "Key": key, "ConsistentRead": True}
        stored: Item | None = (yield Call("GetItem", request, f"upgrade {of.name}")).get("Item")
        return stored if stored is not None and of.is_old(stored) else None

    def required_shape(self, of: EntityMap, key: Item) -> Value | None:
        """Return the version that a write must require, as far as it is known without a read."""
        found = self._newer.get(_place(of, key))
        return of.shape_version.value if found is None else {"N": str(found)}

    def required(self, of: EntityMap, key: Item, terms: Terms, otherwise: Meaning) -> Work[Meaning]:
        """Add the condition to ``terms`` that the item is absent or has the required version.

        Returns a function that turns a failed condition into an error. ``otherwise`` handles
        failures that the version does not explain.
        """
        shape = yield from self.shape(of, key)
        terms.shape(shape, may_be_absent=True)
        return self.meaning(of, key, otherwise)

    def not_newer(self, of: EntityMap, key: Item, terms: Terms, otherwise: Meaning) -> Meaning:
        """Add the condition to ``terms`` that the item's version is not newer than the class.

        Returns a function that turns a failed condition into an error, as ``required`` does.
        """
        found = self.newer(of, key)
        latest = of.shape_version.value if found is None else {"N": str(found)}
        if latest is None:
            terms.equal(VERSION_ATTRIBUTE, None)
        else:
            attribute = terms.expressions.name(VERSION_ATTRIBUTE)
            bound = terms.expressions.value(latest)
            terms.add(f"(attribute_not_exists({attribute}) OR {attribute} <= {bound})")
        return self.meaning(of, key, otherwise, older_is_fine=True)

    def newer(self, of: EntityMap, key: Item) -> int | None:
        """Return the later version that a failed write has found, or None."""
        return self._newer.get(_place(of, key))

    def meaning(
        self, of: EntityMap, key: Item, otherwise: Meaning, *, older_is_fine: bool = False
    ) -> Meaning:
        """Return a function that turns a failed condition into an error.

        The function returns LostRace if the item's version made the write fail, so that the write
        is planned again. It raises NewerVersion for a newer item with ``on_newer="raise"``.
        ``otherwise`` handles all other failures. ``older_is_fine`` accepts older versions.
        """
        place = _place(of, key)

        def means(item: Item | None) -> ConditionFailed:
            found = version_of(item) if item else of.shape_version.version
            if found < of.shape_version.version and not older_is_fine:
                self._older.add(place)
                return LostRace(item=item)
            if found > of.shape_version.version and self._newer.get(place) != found:
                if of.shape_version.on_newer == "raise":
                    raise NewerVersion(of.name, found, of.shape_version.version)
                self._newer[place] = found
                return LostRace(item=item)
            return otherwise(item)

        return means

    # -- the upgrade

    def _upgraded(self, of: EntityMap, key: Item) -> Work[None]:
        label = f"upgrade {of.name}"
        request = {"TableName": of.table.name, "Key": key, "ConsistentRead": True}
        for attempt in range(_ATTEMPTS):
            old = (yield Call("GetItem", request, label)).get("Item")
            if old is None or version_of(old) >= of.shape_version.version:
                return
            new = upgraded_item(of, old)
            statements = [
                _statement(of, key, old, new),
                *guards(self._context.schema.place, of, old, new, key, self._context.now()),
            ]
            try:
                if len(statements) == 1:
                    yield from send_one(statements[0], label, None)
                else:
                    yield from send_all(self._context, statements, label)
            except LostRace:
                yield Pause(self._context.backoff(attempt))
            except TransactionFailed as failed:
                error = failed.failures[0][2]
                if not isinstance(error, LostRace):
                    raise error from None
                yield Pause(self._context.backoff(attempt))
            else:
                return


def _place(of: EntityMap, key: Item) -> _Place:
    return of.table.name, tuple((name, str(value)) for name, value in key.items())


def upgraded_item(of: EntityMap, old: Item) -> Item:
    """Return an item in the current shape, with its index keys computed from the new fields."""
    new = dict(of.current(old))
    values = _KeyFields(of, new)
    for key in of.plan.keys:
        if is_the_field(key):
            continue
        value = of.key_value(key, values)
        if key.index is not None and value is None:
            new.pop(key.name, None)
        elif value is not None and of.is_same_value(key.name, value, old.get(key.name)):
            new[key.name] = old[key.name]
        elif value is not None:
            new[key.name] = value
    if of.stored_key(new) != of.stored_key(old):
        changed = next(name for name in of.key_names if new[name] != old[name])
        raise ItemMismatch(
            of.name,
            changed,
            "an upcast must not change the fields of the table's key",
            old[changed],
        )
    return new


class _KeyFields(Mapping[str, Any]):
    """The field values of an item, decoded when they are asked for."""

    def __init__(self, of: EntityMap, item: Item) -> None:
        self._of = of
        self._item = item

    def __getitem__(self, name: str) -> Any:
        if name in self._item:
            return self._of.codec.decode_field[name](self._item[name])
        default = self._of.info.default_maker(name)
        return None if default is None else default()

    def __iter__(self) -> Any:
        return iter(self._of.fields)

    def __len__(self) -> int:
        return len(self._of.fields)


def unchanged_since(of: EntityMap, old: Item) -> dict[str, Value | None]:
    """Return the attributes that show whether an item has changed since it was read as ``old``."""
    shape = {VERSION_ATTRIBUTE: old.get(VERSION_ATTRIBUTE)}
    if of.version is not None and of.version in old:
        return shape | {of.version: old[of.version]}
    return shape | {name: value for name, value in old.items() if name not in of.key_names}


def _statement(of: EntityMap, key: Item, old: Item, new: Item) -> Statement:
    terms = Terms(of)
    terms.stored(unchanged_since(of, old))
    written = terms.expressions
    sets = [
        f"{written.name(name)} = {written.value(value)}"
        for name, value in new.items()
        if old.get(name) != value
    ]
    removals = [written.name(name) for name in old if name not in new]
    update = f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removals)}" if removals else "")
    request = {"TableName": of.table.name, "Key": key, "UpdateExpression": update}
    return Statement(
        "Update", terms.into(request), f"upgrade {of.name}", lambda item: LostRace(item=item)
    )

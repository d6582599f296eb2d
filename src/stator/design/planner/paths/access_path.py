"""An access path: a way to key an entity, as a partition and a sort tuple of fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, EntityInfo, info
from stator.design.entities.shapes import Maybe
from stator.design.planner.keys.handwritten_keys import Handwritten
from stator.design.planner.needs.need import ValueSource, is_optional, key_encoding


@dataclass(frozen=True)
class AccessPath:
    """A way to key an entity.

    ``constants`` are values written into the partition key; only items that have them are in the
    index.
    """

    entity: type[Entity]
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    constants: tuple[tuple[str, ValueSource], ...] = ()
    shards: int = 1
    inverted: bool = False
    """The first field of ``sort`` is written inverted, so that the newest comes first."""
    turned: tuple[str, ...] = ()
    """Further fields of ``sort`` that are written inverted, for an order of mixed directions."""
    handwritten: Handwritten | None = None
    adaptive: bool = False
    """In an index, a hot partition value gets more shards at run time. ``shards`` is the least."""

    @cached_property
    def _hash(self) -> int:
        return hash(
            (
                self.entity,
                self.partition,
                self.sort,
                self.shards,
                self.inverted,
                self.turned,
                self.handwritten,
                self.adaptive,
            )
        )

    def __hash__(self) -> int:
        return self._hash  # the search needs it a million times

    @cached_property
    def fields(self) -> tuple[str, ...]:
        return (*(name for name, _ in self.constants), *self.partition, *self.sort)

    def turns(self, name: str) -> bool:
        """Whether a field of ``sort`` is written inverted."""
        return name in self.turned or (self.inverted and self.sort[0] == name)

    def turning(self, names: Iterable[str]) -> AccessPath:
        """Return the path with these fields of ``sort`` written inverted, and no others."""
        chosen = set(names)
        return replace(
            self,
            inverted=bool(self.sort) and self.sort[0] in chosen,
            turned=tuple(name for name in self.sort[1:] if name in chosen),
        )

    @cached_property
    def parts(self) -> frozenset[str]:
        """The names in the path that are derived parts."""
        return frozenset(name for name in self.fields if derived_part(name) is not None)

    @cached_property
    def sources(self) -> frozenset[str]:
        """The fields that decide the key: its fields, and the fields of its derived parts."""
        return frozenset(map(source_field, self.fields))

    @property
    def native_fields(self) -> frozenset[str]:
        """The fields that are key attributes themselves, if the path is handwritten."""
        return frozenset() if self.handwritten is None else self.handwritten.native_fields

    @property
    def sorts_natively(self) -> bool:
        """Whether the path is handwritten, and its sort key is a field itself."""
        return self.handwritten is not None and self.handwritten.native_sort

    @cached_property
    def rank(self) -> tuple[object, ...]:
        """A sort key that decides between equally cheap paths.

        Shorter paths come first. Then come paths with more fields in the partition, because a
        coarse partition may become hot, and then paths whose fields were declared earlier.
        """
        constants = tuple((name, source.same) for name, source in self.constants)
        known = info(self.entity)
        return (
            known.name,
            self.shards,
            len(self.fields),
            len(constants),
            -len(self.partition),
            tuple(place_of(known, name) for name in self.partition),
            constants,
            tuple(place_of(known, name) for name in self.sort),
            self.inverted,
            self.turned,
            self.handwritten.rank if self.handwritten else (),
            self.adaptive,
        )

    @property
    def unspread(self) -> AccessPath:
        """The same path with one shard for each partition value, whatever the traffic."""
        return replace(self, shards=1, adaptive=False)

    @property
    def has_shards(self) -> bool:
        """Whether the partition key ends with the number of a shard."""
        return self.shards > 1 or self.adaptive

    def __str__(self) -> str:
        shown = [f"{name}={source.same}" for name, source in self.constants] + list(self.partition)
        return f"{info(self.entity).name}({', '.join(shown)}; {', '.join(self.sort)})"


def place_of(known: EntityInfo, name: str) -> tuple[int, int, str]:
    """Return a sort key for names in the order of declaration, a field before its parts."""
    part = derived_part(name)
    at = list(known.fields).index(name if part is None else part.field)
    return (at, 0, "") if part is None else (at, part.length, part.part)


def may_be_base(
    path: AccessPath, mutable: frozenset[str], *, beyond_identity: bool = False
) -> bool:
    """Whether a path can be the table's key for an entity.

    The key must hold the whole identity, and otherwise only derived parts of it. Then get, update
    and delete by identity take one request each, and no two items have the same identity. All other
    fields can change.

    ``beyond_identity`` also allows further fields that never change. The planner sets it for a
    locked key, and to price a longer identity.
    """
    known = info(path.entity)
    if path.constants or not set(known.identity) <= set(path.fields):
        return False
    if not beyond_identity and not path.sources <= set(known.identity):
        return False
    # Each attempt has its own time of creation: with it in the key, a retry would create a second
    # item.
    stamped = {name for name, each in known.fields.items() if each.role == "created"}
    return not any(
        name in mutable or name in stamped or is_optional(known, name) for name in path.sources
    )


def can_be_native(path: AccessPath) -> bool:
    """Whether a native key is possible: up to four attributes each in partition and sort."""
    known, sort = info(path.entity), path.sort
    if path.constants or path.handwritten or path.has_shards or not path.partition:
        return False
    if path.inverted or path.turned:
        return False
    if any(
        _may_be_empty(known, name) or _may_be_null(known, name) for name in (*path.partition, *sort)
    ):
        return False
    encodings = [key_encoding(known, name) for name in (*path.partition, *sort)]
    return (
        len(path.partition) <= 4
        and len(sort) <= 4
        and all(each and each.native for each in encodings)
    )


def _may_be_null(known: EntityInfo, name: str) -> bool:
    """Whether None is stored as NULL, which DynamoDB refuses in a key."""
    shape = known.fields[name].shape if name in known.fields else None
    return isinstance(shape, Maybe) and shape.kept


def _may_be_empty(known: EntityInfo, name: str) -> bool:
    """Whether the field defaults to an empty value, which DynamoDB refuses in a key."""
    default = known.default_maker(name)
    return default is not None and default() in ("", b"")

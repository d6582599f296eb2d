"""The paths by which an entity could be keyed, suggested by its needs, groups and identity.

A base path contains the identity, so that no two items share a key. It may hold only required
fields that the caller provides and no write changes. In an index keys may repeat, because the end
of a page is also identified by the item's own key. Every path is therefore a candidate twice: as
short as its need allows, and with the rest of the identity appended. Other needs may compare the
appended fields.

A constant that a need compares with (status is open) can be written into the partition. Then only
the items for which it holds are in the index at all: the path is sparse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, combinations, permutations
from typing import Final

from stator.design.entities.derived_parts import derived_part, source_field
from stator.design.entities.entity import Entity, info
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.needs.need import Need, TogetherGroup, is_optional, key_encoding
from stator.design.planner.paths.access_path import AccessPath, place_of
from stator.design.planner.paths.served_need import required_fields

_ALL_SUBSETS_UP_TO: Final = 3


def paths_of(
    entity: type[Entity], needs: Iterable[Need], groups: Iterable[TogetherGroup], labels: KeyLabels
) -> tuple[AccessPath, ...]:
    """Return an entity's candidate paths, suggested by its needs, its groups and its identity."""
    known = list(needs)
    found = [path for need in known for path in _paths_for(need, known, labels)]
    found += _identity_paths(entity, labels)
    for group in groups:
        found += _group_paths(entity, group, labels)
    return tuple(sorted({*found, *map(unique_path, found)}, key=lambda path: path.rank))


def _paths_for(need: Need, others: list[Need], labels: KeyLabels) -> Iterable[AccessPath]:
    constants = sorted(
        (name for name, source in need.equal.items() if source.is_constant),
        key=lambda name: place_of(info(need.entity), name),
    )
    for equal, tails in _known_values(need, others):
        yield from _paths_of_values(need, equal, tails, constants, others, labels)
    if not need.keyed and not constants:
        yield from _sparse_lists(need)


def _known_values(
    need: Need, others: list[Need]
) -> Iterable[tuple[list[str], list[tuple[str, ...]]]]:
    """Yield ways to form paths for a need: pairs of known names and possible sort tuples.

    A need knows the values of the names that it compares. The first pair has all of these names.
    The other pairs concern derived parts, such as ``day_of(placed_at)``: the sort tuple can hold
    the field ``placed_at`` instead of its day. If one of the ``others`` compares a coarser part,
    such as the month, that part can join the known names.
    """
    keyed = need.keyed
    yield _in_order(need, keyed), _tails(need)
    wanted = sorted({name for other in others for name in other.equal if derived_part(name)})
    for name in sorted(keyed):
        part = derived_part(name)
        field = name if part is None else part.field
        coarser = [
            each
            for each in wanted
            if each not in keyed and source_field(each) == field and need.source(each) is not None
        ]
        if part is None:
            for each in coarser:
                yield _in_order(need, keyed | {each}), _tails(need)
            continue
        alone: tuple[str, ...] = (field,)
        tails = [need.sequence] if need.sequence[:1] == (field,) else []
        if not need.sequence or need.may_sort:
            tails = list(dict.fromkeys([*tails, alone]))
        for more in ((), *((each,) for each in coarser)):
            yield _in_order(need, (keyed - {name}).union(more)), tails


def _in_order(need: Need, names: Iterable[str]) -> list[str]:
    known = info(need.entity)
    return sorted(names, key=lambda name: place_of(known, name))


def _paths_of_values(
    need: Need,
    equal: list[str],
    tails: list[tuple[str, ...]],
    constants: list[str],
    others: list[Need],
    labels: KeyLabels,
) -> Iterable[AccessPath]:
    for partition, rest in _splits(equal, others, need):
        for order in _orders(rest):
            for tail in tails:
                path = AccessPath(
                    need.entity, by_label(need.entity, partition, labels), (*order, *tail)
                )
                yield from _directed(path, need, tail)
    if not constants:
        return
    sparse = tuple((name, need.equal[name]) for name in constants)
    variable = [name for name in equal if name not in constants]
    for partition, rest in [((), variable), *_splits(variable, others, need)]:
        for order in _orders(rest):
            for tail in tails:
                fields = by_label(need.entity, partition, labels)
                path = AccessPath(need.entity, fields, (*order, *tail), constants=sparse)
                yield from _directed(path, need, tail)


def _directed(path: AccessPath, need: Need, tail: tuple[str, ...]) -> Iterable[AccessPath]:
    """Yield the ways to write a path so that its key holds the need's order.

    ``tail`` has the fields at the end of the path's sort tuple. Usually the path itself is the only
    result. If some fields of the order ascend and others descend, either the descending or the
    ascending fields are inverted, as far as their types allow it.
    """
    if not need.is_mixed or tail != need.sequence:
        yield path
        return
    for names in turnable(need):
        yield path.turning(names)


def turnable(need: Need) -> list[tuple[str, ...]]:
    """Return the sets of fields that a key can invert to hold an order of mixed directions.

    One set has the descending fields, the other the ascending fields. With either set inverted, all
    fields run in one direction. A set is left out if one of its types cannot be inverted.
    """
    known, descends = info(need.entity), need.descends
    sides = [descends, tuple(name for name in need.sequence if name not in descends)]
    return [
        names
        for names in sides
        if all((found := key_encoding(known, name)) and found.turn for name in names)
    ]


def _sparse_lists(need: Need) -> Iterable[AccessPath]:
    """Yield the paths of a need that asks for all items with an optional field.

    Their partition is one fixed text. An index on such a path holds only the items with the field.
    """
    known = info(need.entity)
    for name in required_fields(need):
        if is_optional(known, name) and key_encoding(known, name) is not None:
            tail = need.sequence or (name,)
            rest = (name,) if name not in tail else ()
            yield AccessPath(need.entity, (), (*tail, *rest))


def _tails(need: Need) -> list[tuple[str, ...]]:
    if need.sequence and not need.may_sort:
        return [need.sequence]
    if not need.sequence:
        return _unordered_tails(need)
    # For a sort in memory, a key with an optional field leaves out the items without it.
    optional = [name for name in need.sequence if is_optional(info(need.entity), name)]
    sparse = chain.from_iterable(combinations(optional, size + 1) for size in range(len(optional)))
    return list(dict.fromkeys([need.sequence, *_unordered_tails(need), *sparse]))


def _unordered_tails(need: Need) -> list[tuple[str, ...]]:
    return [(span.field,) for span in need.spans] or [()]


def _splits(
    equal: list[str], others: list[Need], need: Need
) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return ways to divide the ``equal`` fields, which a need compares for equality.

    Each result has the fields of the partition, and the remaining fields. If there are many fields,
    only some partitions are tried: all fields, each field alone, and the fields that one of the
    needs in ``others`` compares as well.
    """
    if len(equal) <= _ALL_SUBSETS_UP_TO:
        chosen = chain.from_iterable(combinations(equal, size) for size in range(1, len(equal) + 1))
    else:
        common = (
            tuple(name for name in equal if name in other.equal)
            for other in others
            if other is not need
        )
        chosen = chain(
            [tuple(equal)], ((name,) for name in equal), (each for each in common if each)
        )
    return [
        (tuple(part), [name for name in equal if name not in part])
        for part in dict.fromkeys(chosen)
    ]


def _orders(rest: list[str]) -> list[tuple[str, ...]]:
    """Return the sequences of fields with which the sort tuple can begin.

    ``rest`` has the fields that are compared for equality and are not in the partition. The last
    result is the empty sequence, which leaves these fields to a filter.
    """
    orders = list(permutations(rest)) if len(rest) <= _ALL_SUBSETS_UP_TO else [tuple(rest)]
    return [*orders, ()] if rest else orders


def by_label(entity: type[Entity], fields: Iterable[str], labels: KeyLabels) -> tuple[str, ...]:
    """Return partition fields in the order of their labels, which all entities share."""
    return tuple(sorted(fields, key=lambda name: (labels.place(entity, name), name)))


def unique_path(path: AccessPath) -> AccessPath:
    """Return the path with the identity appended."""
    used = {*path.partition, *path.sort}
    missing = tuple(name for name in info(path.entity).identity if name not in used)
    return replace(path, sort=(*path.sort, *missing)) if missing else path


def _identity_paths(entity: type[Entity], labels: KeyLabels) -> list[AccessPath]:
    identity = info(entity).identity
    found = []
    for partition, rest in _splits(list(identity), [], Need("", entity, {})):
        fields = by_label(entity, partition, labels)
        found += [
            AccessPath(entity, fields, order) for order in _orders(rest) if len(order) == len(rest)
        ]
    return found


def _group_paths(
    entity: type[Entity], group: TogetherGroup, labels: KeyLabels
) -> Iterable[AccessPath]:
    member = next((each for each in group.members if each.entity is entity), None)
    if member is None:
        return
    inverted = is_ordered(member) and group_inverts(group, labels) is True
    for chosen in group_choices(group):
        partition = by_label(entity, group.partition_of(entity, chosen), labels)
        for tail in _tails(member):
            sort = tuple(name for name in tail if name not in partition)
            yield AccessPath(entity, partition, sort, inverted=inverted)


def is_ordered(member: Need) -> bool:
    return bool(member.sequence)


def group_inverts(group: TogetherGroup, labels: KeyLabels) -> bool | None:
    """Whether the children's order field must be written inverted, so that the parent comes first.

    A limited query over a parent and its children must reach the parent first. Sort keys begin with
    the entity's label, so the direction that puts the parent's label first may be the wrong one for
    the children. In that case, the children's field is written inverted. Returns None if the group
    needs no such choice, or if no choice helps.
    """
    ordered = [labels.entity(member.entity) for member in group.members if is_ordered(member)]
    others = [labels.entity(member.entity) for member in group.members if not is_ordered(member)]
    if not group.is_limited or not ordered or not others:
        return None
    encodings = [
        key_encoding(info(each.entity), str(each.order))
        for each in group.members
        if is_ordered(each)
    ]
    descending = group.members[0].descending
    if max(others) < min(ordered):
        return descending if all(each is not None and each.turn for each in encodings) else None
    if min(others) > max(ordered):
        return not descending if all(each is not None and each.turn for each in encodings) else None
    return None


def group_choices(group: TogetherGroup) -> list[tuple[int, ...]]:
    size = range(len(group.shared))
    return [chosen for count in range(1, len(size) + 1) for chosen in combinations(size, count)]

"""Planning with a lock file: locked choices stay, because stored items rely on them.

Items are stored under the keys of the last plan. The rules:

- *Labels* (the USER in ``USER#u1``) are those of the lock file. If a pattern now reads two columns
  together whose labels differ, one label must change; the label in a base key stays.
- *The base key* stays, with its number of shards. Another one would orphan the items, so it is
  chosen only on request (``rekey``), even if a fresh plan would choose another. If the traffic
  has become too much for the key, lint says so.
- *A new path in an index* must be written on the existing items. That costs one write for each
  item, plus ``BACKFILL_WORK_DOLLARS`` for the work, and must pay off within ``PAYBACK_MONTHS``. A
  new index on native keys costs only ``INDEX_WORK_DOLLARS``, because DynamoDB fills it by itself.
- *An index that is still used* keeps its name, its number and its attributes. New paths go into a
  shared index that has room, or into one with a number that the lock file lacks. A number that
  became free is not reused in the same step.
- A path that no pattern needs any more is dropped. A choice that is equally good stays.

A locked key is no longer available if its fields are gone or have another type, or if a write now
changes one of them. The key of an index is also given up if it has too few shards for the writes.
Then the plan changes the key, and ``compare`` in ``stator.design.plan.lock_file`` says what that
means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from stator.design.entities.entity import Entity, info
from stator.design.plan import key_text as keys
from stator.design.plan.plan import (
    EntityPlan,
    IndexPlan,
    Plan,
)
from stator.design.plan.templates import Part, PlannedKeyAttribute
from stator.design.planner.cost_model import CostModel, Placement, PlacementKind
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.keys.key_parts import partition_parts, sort_parts
from stator.design.planner.needs.need import ValueSource, key_encoding
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.weights import READ_UNIT_DOLLARS, WRITE_UNIT_DOLLARS
from stator.model.limits import READ_UNIT_BYTES

PAYBACK_MONTHS: Final = 12
BACKFILL_WORK_DOLLARS: Final = 60.0
"""The work of writing new attributes on every item."""
INDEX_WORK_DOLLARS: Final = 5.0
"""The work of adding an index that DynamoDB fills by itself. So an equally good index stays."""


@dataclass(frozen=True)
class LockedChoices:
    """The locked choices for an entity: its base key, and its paths in indexes by index name."""

    base: Placement | None
    indexes: tuple[tuple[str, Placement], ...]
    ordered: frozenset[str] = frozenset()
    """The patterns whose order a key holds. Programs may read them page by page."""

    @property
    def paths(self) -> set[AccessPath]:
        placements = [placement for _, placement in self.indexes] + (
            [self.base] if self.base is not None else []
        )
        return {each.path.unspread for each in placements}


def moving_dollars(placement: Placement, locked: LockedChoices | None, costs: CostModel) -> float:
    """Return the monthly price of putting existing items into an index on a new path.

    The one-time price is spread over ``PAYBACK_MONTHS``. It is 0 if there is no lock file, or if
    the lock file already has the placement.
    """
    if locked is None or placement.is_base or placement.path.handwritten is not None:
        return 0.0
    if any(placement == each for _, each in locked.indexes):
        return 0.0
    if placement.kind == "native":
        return INDEX_WORK_DOLLARS / PAYBACK_MONTHS
    entity = placement.path.entity
    items = costs.estimates.volume(entity) * costs.presence(placement.path)
    writes = items * costs.base_write_units(entity) * WRITE_UNIT_DOLLARS
    reads = items * costs.item_bytes(entity) / READ_UNIT_BYTES / 2 * READ_UNIT_DOLLARS
    return (reads + writes + BACKFILL_WORK_DOLLARS) / PAYBACK_MONTHS


def stored_keys(
    previous: Plan | None, layout: str, entities: Iterable[type[Entity]]
) -> dict[type[Entity], tuple[AccessPath, ...]]:
    """Return each index key that the plan in the lock file writes as text, as a path.

    Its partition has all fields of the key; the order of fields does not matter here.

    A lock file with another layout is ignored, because all items would move.
    """
    is_kept = previous is not None and previous.layout == layout
    locked = {each.name: each for each in previous.entities} if previous and is_kept else {}
    found = {}
    for entity in entities:
        plan = locked.get(info(entity).name)
        known = info(entity).fields
        keys_of: dict[str, set[str]] = {}
        constants: dict[str, dict[str, ValueSource]] = {}
        for key in () if plan is None else plan.keys:
            if key.index is not None and not key.template.native:
                keys_of.setdefault(key.index, set()).update(
                    part.name
                    for part in key.template.parts
                    if part.kind == "field" and part.value in known
                )
                constants.setdefault(key.index, {}).update(
                    (test.parts[0].name, constant_source(test.parts[0].encoding, wanted))
                    for test, wanted in key.when
                    if test.parts[0].value in known
                )
        if keys_of:
            found[entity] = tuple(
                AccessPath(
                    entity,
                    tuple(sorted(names - constants[index].keys())),
                    (),
                    tuple(sorted(constants[index].items(), key=lambda each: each[0])),
                )
                for index, names in keys_of.items()
            )
    return found


# --- labels -------------------------------------------------------------------------------------


def locked_labels(previous: Plan | None, entities: Iterable[type[Entity]]) -> KeyLabels:
    """Return the labels in the generated keys of the lock file. Handwritten keys are ignored."""
    found = KeyLabels({}, {})
    if previous is None:
        return found
    locked = {each.name: each for each in previous.entities}
    known = [(locked[info(each).name], each) for each in entities if info(each).name in locked]
    for of_base in (True, False):  # labels in base keys take precedence
        for plan, entity in known:
            for index in dict.fromkeys(key.index for key in plan.keys):
                own = [key for key in plan.keys if key.index == index]
                if (
                    (index is None) == of_base
                    and not _by_hand(entity, index)
                    and not own[0].template.native
                ):
                    _read_labels(plan.name, own, found)
    return found


def _by_hand(entity: type[Entity], index: str | None) -> bool:
    overrides = info(entity).overrides
    return overrides.key is not None if index is None else index in dict(overrides.indexes)


def _read_labels(entity: str, own: list[PlannedKeyAttribute], found: KeyLabels) -> None:
    [*partition, sort] = own
    first = sort.template.parts[0]
    if first.kind == "text":
        found.entities.setdefault(entity, first.value.split(keys.SEPARATOR)[0])
    for key in partition:
        labelled = list(_labelled(key))
        for field, label in labelled:
            found.columns.setdefault((entity, field), label)
        if len(labelled) > 1:
            found.order.extend(label for _, label in labelled if label not in found.order)


def _labelled(key: PlannedKeyAttribute) -> Iterator[tuple[str, str]]:
    """Yield the fields of a generated partition key, each with its label.

    Such a key alternates labels and values: ``USER#u1`` has the label USER. Other keys yield
    nothing.
    """
    pieces: list[Part] = []
    for part in key.template.parts:
        if part.kind == "text":
            pieces += [
                replace(part, value=word) for word in part.value.split(keys.SEPARATOR) if word
            ]
        elif part.kind == "field":
            pieces.append(part)
    constants = iter([test.parts[0].name for test, _ in key.when])
    if len(pieces) % 2 or any(label.kind != "text" for label in pieces[::2]):
        return
    for label, value in zip(pieces[::2], pieces[1::2]):
        field = value.name if value.kind == "field" else next(constants, None)
        if field is not None:
            yield field, label.value


# --- keys ---------------------------------------------------------------------------------------


def locked_choices_of(
    entity: type[Entity], previous: Plan, paths: Iterable[AccessPath], labels: KeyLabels
) -> LockedChoices | None:
    """Return the locked choices of an entity that are still possible.

    A choice is still possible if the current labels and types lead to the same keys. Returns None
    if the lock file does not have the entity.
    """
    plan = next((each for each in previous.entities if each.name == info(entity).name), None)
    if plan is None:
        return None
    reader = _Reader(entity, plan, {path.rank: path for path in paths}, labels)
    base = reader.base()
    indexes = [
        each for each in previous.table(plan.table).indexes if not _by_hand(entity, each.name)
    ]
    found = [
        (each.name, placement)
        for each in indexes
        if (placement := reader.index(each, base)) is not None
    ]
    ordered = frozenset(
        pattern.name
        for pattern in previous.patterns
        if any(step.order is not None and not step.in_memory for step in pattern.steps)
    )
    return LockedChoices(base, tuple(found), ordered)


@dataclass(frozen=True)
class _Reader:
    """Reconstructs paths from the key attributes in a lock file."""

    entity: type[Entity]
    plan: EntityPlan
    paths: dict[tuple[object, ...], AccessPath]
    labels: KeyLabels

    def base(self) -> Placement | None:
        own = self._own(None)
        if all(key.template.native for key in own):
            path = self._checked(
                AccessPath(self.entity, (own[0].name,), tuple(key.name for key in own[1:]))
            )
            return None if path is None else Placement(path, "native base")
        path = self._strings(own[0], own[-1])
        return None if path is None else Placement(path, "base")

    def index(self, index: IndexPlan, base: Placement | None) -> Placement | None:
        own = self._own(index.name)
        if not own:
            return None
        kind: PlacementKind = (
            "native" if index.native else "local" if index.kind == "LSI" else "concatenated"
        )
        if kind == "native":
            path = self._checked(AccessPath(self.entity, index.partition, index.sort))
        elif kind == "local":
            path = None if base is None else self._local(base.path, own[0])
        else:
            path = self._strings(own[0], own[-1])
        # An index of several entities has fields of others, too.
        fields = info(self.entity).fields
        included = tuple(name for name in index.included if name in fields)
        return None if path is None else Placement(path, kind, index.projection, included)

    def _own(self, index: str | None) -> list[PlannedKeyAttribute]:
        return [key for key in self.plan.keys if key.index == index]

    def _strings(
        self, partition: PlannedKeyAttribute, sort: PlannedKeyAttribute
    ) -> AccessPath | None:
        constants = tuple(
            (test.parts[0].name, constant_source(test.parts[0].encoding, wanted))
            for test, wanted in partition.when
        )
        shard = next(
            (part for part in partition.template.parts if part.kind == "shard"), Part("shard")
        )
        made = AccessPath(
            self.entity,
            _fields(partition),
            _fields(sort),
            constants,
            shard.shards,
            adaptive=shard.adaptive,
        ).turning(_inverted(sort))
        path = self._checked(made)
        if path is None or partition_parts(path, self.labels) != partition.template.parts:
            return None
        return path if sort_parts(path, self.labels) == sort.template.parts else None

    def _local(self, base: AccessPath, sort: PlannedKeyAttribute) -> AccessPath | None:
        path = self._checked(replace(base, sort=_fields(sort)).turning(_inverted(sort)))
        return (
            path
            if path is not None and sort_parts(path, self.labels) == sort.template.parts
            else None
        )

    def _checked(self, path: AccessPath) -> AccessPath | None:
        """Return the path, or None if one of its fields can no longer be in a key.

        If the same path is among the candidates in ``self.paths``, the candidate is returned, with
        the number of shards of ``path``.
        """
        known = info(self.entity)
        if not all(key_encoding(known, name) for name in path.fields):
            return None
        found = self.paths.get(path.unspread.rank, path)
        return replace(found, shards=path.shards, adaptive=path.adaptive)


def constant_source(encoding: str, wanted: str | None) -> ValueSource:
    """Return the value that a sparse index requires, given as it is written in a key.

    If ``wanted`` is None, items must lack the field.
    """
    if wanted is None:
        return ValueSource(is_absent=True)
    part = encoding.partition(".")[2]
    return ValueSource(constant=keys.decode(encoding, wanted), part=part)


def _fields(key: PlannedKeyAttribute) -> tuple[str, ...]:
    return tuple(part.name for part in key.template.parts if part.kind == "field")


def _inverted(sort: PlannedKeyAttribute) -> list[str]:
    return [part.name for part in sort.template.parts if part.inverted]

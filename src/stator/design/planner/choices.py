"""The choices of one entity, each with its price: base keys, and paths in indexes in every way they could be held.

A facility is a path together with how it is held. What it costs to have and what it costs each need to use it are worked out here, once;
``search`` then only adds numbers. Facilities that another one beats in everything are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from stator.design.entities.entity import Entity, info
from stator.design.planner.access_paths import Path, Service, can_be_native, may_be_base, serve
from stator.design.planner.cost_model import Costing, Facility, Projection
from stator.design.planner.handwritten_keys import Handwritten, fields_of, parse
from stator.design.planner.locked_choices import Kept, moving_dollars
from stator.design.planner.needs import Need, is_optional, key_encoding, mutable_fields
from stator.design.planner.weights import FILTERED_DOLLARS, INDEX_DOLLARS
from stator.errors import DesignError

LOCAL_COLLECTION_BYTES: Final = 5 * 1024**3
"""Half of the 10 GB that a collection with a local index may have: estimates are estimates."""


@dataclass
class Choices:
    """What can be chosen for one entity. ``use`` has, for each facility, the dollars a month of each need, None where it cannot serve."""

    entity: type[Entity]
    needs: tuple[Need, ...]
    bases: tuple[Facility, ...]
    secondary: tuple[Facility, ...]
    pinned: tuple[Facility, ...]
    costing: Costing
    scans: tuple[float | None, ...] = ()
    """What each need would cost as a Scan, for those that allow one."""
    kept: Kept | None = None
    """What the lock has of the entity."""
    held: dict[str, Facility] = field(default_factory=dict)
    """The paths that the lock has in indexes and that can stay there, by the name of the index."""
    use: dict[Facility, tuple[float | None, ...]] = field(default_factory=dict)
    have: dict[Facility, float] = field(default_factory=dict)
    """What each facility costs to have, with the way there from the lock."""
    keep: dict[Facility, float] = field(default_factory=dict)
    """The same without the way."""

    @property
    def name(self) -> str:
        return info(self.entity).name

    def price(self, facility: Facility) -> None:
        """Put a facility's numbers down."""
        if facility not in self.have:
            self.use[facility] = tuple(self._use(facility, need) for need in self.needs)
            own = not facility.is_base and not facility.shares_slot
            self.keep[facility] = self.costing.open_dollars(facility) + (
                INDEX_DOLLARS if own else 0.0
            )
            self.have[facility] = self.keep[facility] + moving_dollars(
                facility, self.kept, self.costing
            )

    def service(self, facility: Facility, need: Need) -> Service | None:
        found = serve(facility.path, need, self.costing.estimates)
        if found is None:
            return None
        exact = (
            _native_bounds(found)
            if facility.is_native
            else facility.is_base or _string_bounds(found)
        )
        return found if exact else None

    def _use(self, facility: Facility, need: Need) -> float | None:
        service = self.service(facility, need)
        if service is None or self.costing.read_shards(service, facility) > facility.path.shards:
            return None
        dollars = self.costing.read_dollars(service, facility)
        filtered = bool(service.left_equal or service.left_spans)
        return dollars + FILTERED_DOLLARS if dollars is not None and filtered else dollars


def _native_bounds(service: Service) -> bool:
    """BETWEEN takes its ends in: where one is out, there must be a value just beside it."""
    span = service.span
    if (
        span is None
        or span.low is None
        or span.high is None
        or (span.low_inclusive and span.high_inclusive)
    ):
        return True
    encoding = key_encoding(info(service.need.entity), span.field)
    return encoding is not None and encoding.step is not None


def _string_bounds(service: Service) -> bool:
    """Where the identity could follow the ranged field, and make its bounds exact, it has to."""
    path = service.path
    if not service.is_blunt or path.handwritten is not None:
        return True
    return set(info(path.entity).identity) <= set(path.fields)


def choices_of(
    entity: type[Entity],
    needs: tuple[Need, ...],
    paths: tuple[Path, ...],
    costing: Costing,
    *,
    neighbours: tuple[type[Entity], ...],
    own_table: bool,
    scans: tuple[float | None, ...],
    kept: Kept | None = None,
) -> Choices:
    """``neighbours`` are the other entities of the table; ``own_table`` allows the table's key to be the attributes themselves."""
    choices = Choices(entity, needs, (), (), _pinned(entity), costing, scans, kept)
    if kept is not None:
        paths = tuple(sorted({*paths, *kept.paths}, key=lambda path: path.rank))
        choices.held = {
            name: each for name, each in kept.indexes if _still_holds(each, neighbours, costing)
        }
    written = info(entity).overrides.key
    if written is not None:
        bases = [_handwritten_base(entity, parse(entity, written))]
    else:
        mutable = mutable_fields(entity, costing.rates[entity])
        bases = [_sharded(path, costing) for path in paths if may_be_base(path, mutable)]
        if kept is not None and kept.base is not None and kept.base.path.shards > 1:
            more = replace(
                kept.base.path,
                shards=max(kept.base.path.shards, costing.write_shards(kept.base.path)),
            )
            bases += [more] if may_be_base(more, mutable) else []
    holdings: list[Facility] = [Facility(path, "base") for path in bases]
    holdings += [variant for base in holdings for variant in _hotter(choices, base)]
    if own_table:
        holdings += [Facility(path, "native base") for path in bases if _natively_keyed(path)]
    choices.bases = tuple(sorted(dict.fromkeys(holdings), key=lambda each: each.rank))
    choices.secondary = tuple(_secondary(choices, paths, neighbours))
    for facility in (*choices.bases, *choices.pinned, *choices.secondary):
        choices.price(facility)
    choices.secondary = _undominated(choices)
    return choices


def drop_worse_bases(choices: Choices, ordered: bool) -> None:
    """Without base keys that another one with the same partition beats. ``ordered``: a group reads the entity in an order."""
    kept = []
    for base in choices.bases:
        rivals = [
            each
            for each in choices.bases
            if each is not base
            and (each.path.partition, each.path.shards) == (base.path.partition, base.path.shards)
            and each.holding == base.holding
            and (
                not ordered
                or (each.path.sort[:1], each.path.inverted)
                == (base.path.sort[:1], base.path.inverted)
            )
        ]
        if not any(_beats(choices, rival, base) for rival in rivals):
            kept.append(base)
    choices.bases = tuple(kept)


def add_shards(choices: Choices, path: Path, shards: int) -> None:
    """A base key with as many shards as those it is to share a partition with."""
    extra = Facility(replace(path, shards=shards), "base")
    if extra not in choices.bases:
        choices.price(extra)
        choices.bases = tuple(sorted((*choices.bases, extra), key=lambda each: each.rank))


def _sharded(path: Path, costing: Costing) -> Path:
    return replace(path, shards=costing.write_shards(path))


def _natively_keyed(path: Path) -> bool:
    if path.handwritten or path.shards > 1 or len(path.partition) != 1 or len(path.sort) > 1:
        return False
    return all(
        (found := key_encoding(info(path.entity), name)) is not None and found.native is not None
        for name in (*path.partition, *path.sort)
    )


def _hotter(choices: Choices, facility: Facility) -> Iterable[Facility]:
    """The facility with more shards, for needs that read one value of it too often."""
    for need in choices.needs:
        service = choices.service(facility, need)
        if service is not None:
            shards = choices.costing.read_shards(service, facility)
            if shards > facility.path.shards:
                yield replace(facility, path=replace(facility.path, shards=shards))


def _secondary(
    choices: Choices, paths: tuple[Path, ...], neighbours: tuple[type[Entity], ...]
) -> Iterable[Facility]:
    found: dict[Facility, None] = {}
    for plain in paths:
        path = _sharded(plain, choices.costing)
        services = [
            each
            for need in choices.needs
            if (each := choices.service(Facility(path, "concatenated"), need)) is not None
        ]
        if not services:
            continue
        for projection, included in _projections(services):
            facility = Facility(path, "concatenated", projection, included)
            found[facility] = None
            found |= dict.fromkeys(_hotter(choices, facility))
            if can_be_native(path) and not _clashes(path, neighbours):
                fields = tuple(
                    name for name in included if name not in (*path.partition, *path.sort)
                )
                found[
                    Facility(
                        path,
                        "native",
                        projection if fields or not included else "KEYS_ONLY",
                        fields,
                    )
                ] = None
            if any(service.need.consistent for service in services) and _local_fits(
                path, choices.costing
            ):
                found[Facility(path, "local", projection, included)] = None
    held = choices.held.values()
    return found | dict.fromkeys(
        each for each in held if any(choices.service(each, need) for need in choices.needs)
    )


def _still_holds(
    facility: Facility, neighbours: tuple[type[Entity], ...], costing: Costing
) -> bool:
    """Whether a path of the lock can stay in its index."""
    path = facility.path
    if path.shards < costing.write_shards(path):
        return False
    if facility.holding == "native":
        return can_be_native(path) and not _clashes(path, neighbours)
    return facility.holding != "local" or _local_fits(path, costing)


def _projections(services: list[Service]) -> list[tuple[Projection, tuple[str, ...]]]:
    fields = tuple(sorted({name for service in services for name in service.filter_fields}))
    middle: list[tuple[Projection, tuple[str, ...]]] = [("INCLUDE", fields)] if fields else []
    return [("KEYS_ONLY", ()), *middle, ("ALL", ())]


def _clashes(path: Path, neighbours: tuple[type[Entity], ...]) -> bool:
    """Whether items of another entity would get into the index, or be refused because of it."""
    own = info(path.entity)
    wanted = {name: key_encoding(own, name) for name in (*path.partition, *path.sort)}
    for neighbour in neighbours:
        fields = info(neighbour).fields
        if all(name in fields for name in wanted):
            return True
        for name, encoding in wanted.items():
            other = key_encoding(info(neighbour), name) if name in fields else encoding
            if other is None or encoding is None or other.native != encoding.native:
                return True
    return False


def _local_fits(path: Path, costing: Costing) -> bool:
    """A local index has the table's partition, so that must be able to be this one."""
    if path.constants or path.shards > 1 or path.handwritten or not path.partition:
        return False
    known, mutable = info(path.entity), mutable_fields(path.entity, costing.rates[path.entity])
    if any(name in mutable or is_optional(known, name) for name in path.partition):
        return False
    estimates = costing.estimates
    items = estimates.volume(path.entity) / estimates.distinct(path.entity, path.partition)
    return items * costing.item_bytes(path.entity) < LOCAL_COLLECTION_BYTES


def _undominated(choices: Choices) -> tuple[Facility, ...]:
    """Without facilities that another one of the same kind of slot beats, or equals and comes first."""
    kept: list[Facility] = []
    useful = [
        each for each in choices.secondary if any(cost is not None for cost in choices.use[each])
    ]
    for facility in sorted(useful, key=lambda each: each.rank):
        rivals = [
            each
            for each in useful
            if each is not facility and _slot_kind(each) == _slot_kind(facility)
        ]
        if not any(_beats(choices, rival, facility) for rival in rivals):
            kept.append(facility)
    return tuple(kept)


def _slot_kind(facility: Facility) -> tuple[object, ...]:
    if facility.holding == "local":
        return ("local", facility.path.partition)
    return ("shared", facility.projection) if facility.shares_slot else ("own",)


def _beats(choices: Choices, rival: Facility, facility: Facility) -> bool:
    prices = (
        (choices.have[rival], choices.keep[rival]),
        (choices.have[facility], choices.keep[facility]),
    )
    if any(its > mine for its, mine in zip(*prices)):
        return False
    for mine, theirs in zip(choices.use[facility], choices.use[rival]):
        if mine is not None and (theirs is None or theirs > mine):
            return False
    same = prices[0] == prices[1] and choices.use[rival] == choices.use[facility]
    return not same or rival.rank < facility.rank


# --- written by hand ----------------------------------------------------------------------------------------


def _handwritten_base(entity: type[Entity], written: Handwritten) -> Path:
    path = Path(entity, fields_of(written.partition), fields_of(written.sort), handwritten=written)
    missing = [name for name in info(entity).identity if name not in path.fields]
    if missing:
        raise DesignError(
            f"{info(entity).name}: the key written by hand leaves out {', '.join(missing)}, "
            f"so that two items could have the same key",
            hint=f"put {', '.join(f'{{{name}}}' for name in missing)} into it",
        )
    return path


def _pinned(entity: type[Entity]) -> tuple[Facility, ...]:
    found = []
    for name, written in info(entity).overrides.indexes:
        pieces = parse(entity, written, name)
        path = Path(entity, fields_of(pieces.partition), fields_of(pieces.sort), handwritten=pieces)
        found.append(Facility(path, "concatenated"))
    return tuple(found)

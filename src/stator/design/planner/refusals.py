"""What the planner will not plan, and what it says instead: the smallest change that would be accepted, and its price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.entity import info
from stator.design.patterns.pattern import Pattern
from stator.design.planner.access_paths import AccessPath, serve, unique_path
from stator.design.planner.assignment import UNCAPPED
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import Placement
from stator.design.planner.key_labels import KeyLabels
from stator.design.planner.needs import Need
from stator.design.planner.search import Component, TableLayout
from stator.design.planner.weights import INDEX_DOLLARS, READ_UNIT_DOLLARS
from stator.errors import DesignError, PatternRefused, ScanNeeded
from stator.model.limits import GLOBAL_INDEXES, LOCAL_INDEXES, READ_UNIT_BYTES
from stator.model.quantities import dollars as in_dollars

MANY_INDEXES = 5


def refuse_unserved(
    choices: EntityChoices, reads: Iterable[Pattern[..., Any]], labels: KeyLabels
) -> None:
    """Refuse the first need that no placement serves."""
    where = {pattern.name: pattern.where for pattern in reads}
    for at, need in enumerate(choices.needs):
        prices = [
            choices.use_dollars[each][at]
            for each in (*choices.bases, *choices.pinned, *choices.secondary)
        ]
        if all(price is None for price in (*prices, choices.scans[at])):
            raise _refusal(choices, need, where.get(need.name, ""), labels)


def _refusal(choices: EntityChoices, need: Need, where: str, labels: KeyLabels) -> PatternRefused:
    if need.consistent and need.equal:
        return _inconsistent(choices, need, where)
    known, costs = info(need.entity), choices.costs
    placement = _proposed(choices, need)
    served = serve(placement.path, replace(need, consistent=False), costs.estimates)
    reading = costs.read_dollars(served, placement) if served is not None else 0.0
    dollars = costs.open_dollars(placement) + (reading or 0.0) + INDEX_DOLLARS
    scan = _scan_dollars(choices, need)
    wanted = f" by {need.order or need.spans[0].field}" if need.order or need.spans else ""
    written = "#".join(f"{{{name}}}" for name in placement.path.sort)
    shards = placement.path.shards
    spread = (
        f"; one key would have to take all its writes, enough for {shards}, so prefer a field"
        if shards > 1
        else ""
    )
    return ScanNeeded(
        need.name,
        f"{where}: {need.name} compares no field of {known.name} that a key could be made of with ==, "
        f"so it would read the whole table",
        hint=f"compare a field with ==; or list every {known.name}{wanted} with "
        f'index={{"by_{placement.path.sort[0]}": ("{labels.entity(need.entity)}", "{written}")}} on {known.name}, about '
        f"{in_dollars(dollars)} a month{spread}; or allow_scan=True, about {in_dollars(scan)} a month",
        dollars=dollars,
        scan_dollars=scan,
    )


def _proposed(choices: EntityChoices, need: Need) -> Placement:
    tail = (need.order,) if need.order else tuple(span.field for span in need.spans[:1])
    path = unique_path(AccessPath(need.entity, (), tail))
    return Placement(replace(path, shards=choices.costs.write_shards(path)), "concatenated")


def _scan_dollars(choices: EntityChoices, need: Need) -> float:
    costs = choices.costs
    size = costs.estimates.volume(need.entity) * costs.item_bytes(need.entity)
    return size / READ_UNIT_BYTES / 2 * need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS


def _inconsistent(choices: EntityChoices, need: Need, where: str) -> PatternRefused:
    known = info(need.entity)
    return PatternRefused(
        need.name,
        f"{where}: {need.name} asks for consistent reads by {', '.join(need.equal)}, which only a global index could serve, "
        f"and a global index is never consistent",
        hint=f"drop consistent=True; or keep {', '.join(need.equal)} out of every updates(), so that it can be in the key "
        f"of {known.name}",
    )


def refuse_component(component: Component) -> None:
    """Each need alone could be served, but not all of them at once."""
    if component.solve(UNCAPPED) is not None:
        return
    consistent = sorted(
        {need.name for choices in component.choices for need in choices.needs if need.consistent}
        | {group.name for group in component.groups if group.members[0].consistent}
    )
    together = [group.name for group in component.groups]
    names = " and ".join(consistent or together)
    if consistent:
        raise PatternRefused(
            consistent[0],
            f"{names} cannot all read consistently: only the table's own key and its local indexes can, "
            f"and they have one partition for each entity",
            hint="drop consistent=True from one of them",
        )
    raise PatternRefused(
        together[0],
        f"{names}: these entities cannot be put into one partition, in the order asked for",
        hint="ask for them in two patterns, or remove key= from the entities concerned",
    )


def refuse_indexes(design: str, found: TableLayout) -> None:
    """DynamoDB has at most twenty global and five local indexes on a table."""
    opened = {
        each
        for one in found.components
        for entity in one.entities.values()
        for each in entity.opened
    }
    # One written by hand may hold several entities.
    own = {
        each.path.handwritten.index if each.path.handwritten else each
        for each in opened
        if not each.shares_slot and each.kind != "local"
    }
    local = [each for each in opened if each.kind == "local"]
    if sum(found.caps) + len(own) > GLOBAL_INDEXES or len(local) > LOCAL_INDEXES:
        raise DesignError(
            f"{design} needs {sum(found.caps) + len(own)} global and {len(local)} local indexes on one table; "
            f"DynamoDB has {GLOBAL_INDEXES} and {LOCAL_INDEXES}",
            hint='use layout="aggregate", or drop the patterns that need an index of their own',
        )

"""Refusals: errors for patterns and layouts that cannot be planned.

Each error proposes the smallest change that would be accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.conditions import Any_, Comparison
from stator.design.entities.entity import EntityInfo, info
from stator.design.entities.shapes import ListOf, MapOf, Maybe, Scalar, SetOf
from stator.design.patterns.pattern import Pattern
from stator.design.planner.assignment import UNCAPPED
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import Placement
from stator.design.planner.keys.key_labels import KeyLabels
from stator.design.planner.needs.need import Need, key_encoding
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.candidate_paths import turnable, unique_path
from stator.design.planner.paths.served_need import serve
from stator.design.planner.search import Component, TableLayout
from stator.design.planner.weights import INDEX_DOLLARS, READ_UNIT_DOLLARS
from stator.errors import DesignError, PatternRefused, ScanNeeded
from stator.model.limits import GLOBAL_INDEXES, LOCAL_INDEXES, READ_UNIT_BYTES
from stator.model.quantities import dollars as in_dollars

MANY_INDEXES = 5


def refuse_unserved(
    choices: EntityChoices, reads: Iterable[Pattern[..., Any]], labels: KeyLabels
) -> None:
    """Raise PatternRefused or ScanNeeded for the first need that no placement serves."""
    where = {pattern.name: pattern.where for pattern in reads}
    for at, need in enumerate(choices.needs):
        if need.leg_of is not None:
            continue  # one query may serve the whole pattern
        prices = [
            choices.use_dollars[each][at]
            for each in (*choices.bases, *choices.pinned, *choices.secondary)
        ]
        if all(price is None for price in (*prices, choices.keyless[at])):
            raise _refusal(choices, need, where.get(need.name, ""), labels)


def _refusal(choices: EntityChoices, need: Need, where: str, labels: KeyLabels) -> PatternRefused:
    if need.consistent and need.equal:
        return _inconsistent(choices, need, where)
    if need.is_mixed and not turnable(need):
        return _mixed(need, where)
    named = _unservable(need)
    if named is not None:
        problem, hint = named
        return ScanNeeded(
            need.name,
            f"{where}: {need.name} {problem}",
            hint=hint,
            scan_dollars=_scan_dollars(choices, need),
        )
    known, costs = info(need.entity), choices.costs
    placement = _proposed(choices, need)
    served = serve(placement.path, replace(need, consistent=False), costs.estimates)
    reading = costs.read_dollars(served, placement) if served is not None else 0.0
    dollars = costs.open_dollars(placement) + (reading or 0.0) + INDEX_DOLLARS
    scan = _scan_dollars(choices, need)
    by = need.sequence or tuple(span.field for span in need.spans[:1])
    wanted = f" by {', '.join(by)}" if by else ""
    written = "#".join(f"{{{name}}}" for name in placement.path.sort)
    shards = placement.path.shards
    spread = (
        f"; this puts all items under one key value, whose writes need {shards} shards, so "
        f"prefer to compare a field"
        if shards > 1
        else ""
    )
    ways = ["compare a field with =="]
    if need.is_count:
        ways = ["keep a counter (stator.patterns.counter) and read that", *ways]
    listing = (
        f"list every {known.name}{wanted} with "
        f'index={{"by_{placement.path.sort[0]}": ("{labels.entity(need.entity)}", "{written}")}} '
        f"on {known.name}, about {in_dollars(dollars)} a month{spread}"
    )
    # An index that costs more than reading the whole table is only worth its order.
    ways += [listing] if dollars < scan or need.sequence else []
    ways.append(f"allow_scan=True, about {in_dollars(scan)} a month")
    return ScanNeeded(
        need.name,
        f"{where}: {need.name} compares no field of {known.name} with == that a key could hold, "
        f"so it would read the whole table",
        hint=f"{'; or '.join(ways)}",
        dollars=dollars,
        scan_dollars=scan,
    )


def _mixed(need: Need, where: str) -> PatternRefused:
    known = info(need.entity)
    down = [name for name in need.sequence if name in need.descends]
    up = [name for name in need.sequence if name not in need.descends]
    one = next(name for name in (*down, *up) if key_encoding(known, name).turn is None)  # type: ignore[union-attr]
    return PatternRefused(
        need.name,
        f"{where}: {need.name} orders by {', '.join(down)} descending and {', '.join(up)} "
        f"ascending; a key holds mixed directions only if the fields of one direction can be "
        f"written inverted, and text such as {known.name}.{one} cannot",
        hint="order all fields in one direction; or, if a call returns 1,000 items at most, leave "
        "out the limit and declare returns=, so that the client sorts them",
    )


def _unservable(need: Need) -> tuple[str, str] | None:
    """Return why no key can ever serve a need, and what to do instead; None if a key could."""
    known = info(need.entity)
    for condition in need.filters:
        if isinstance(condition, Any_):
            return (
                "asks for one condition or another, and DynamoDB reads one range of one key",
                (
                    "declare one pattern for each side, run both, and merge the answers; for "
                    "several values of one field, write attr(field).is_in([...])"
                ),
            )
        if isinstance(condition, Comparison) and condition.operator == "contains":
            return _searches(condition, known)
    numbers = [span.field for span in need.spans if _is_number(known, span.field)]
    if len(numbers) > 1 and not need.equal:
        both = " and ".join(numbers)
        return (
            f"asks for ranges of {both} at once, and a key has one range",
            (
                f"if {both} are a place, store its cell (a geohash or H3 index) in a field, and "
                "ask for the cells of the area with attr(field).is_in(cells); otherwise compare "
                "one of them, and filter by the other"
            ),
        )
    return None


def _searches(condition: Comparison, known: EntityInfo) -> tuple[str, str]:
    field = condition.field
    shape = known.fields[field.name].shape
    inner = shape.inner if isinstance(shape, Maybe) else shape
    if isinstance(inner, (ListOf, SetOf, MapOf)):
        return (
            f"looks for a member of {field!r}, and a key cannot hold several members",
            (
                f"store an item for each member (an entity with the member and the identity of "
                f"{known.name}), and query it by the member"
            ),
        )
    return (
        f"searches inside {field!r}, and DynamoDB has no full-text search",
        (
            "send changes from the stream to a search engine such as OpenSearch, and read the "
            "found items by their identity; for the start of a text, write "
            "attr(field).begins_with(...)"
        ),
    )


def _is_number(known: EntityInfo, name: str) -> bool:
    shape = known.fields[name].shape
    inner = shape.inner if isinstance(shape, Maybe) else shape
    return isinstance(inner, Scalar) and inner.python in (int, float, Decimal)


def _proposed(choices: EntityChoices, need: Need) -> Placement:
    tail = need.sequence or tuple(span.field for span in need.spans[:1])
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
        f"{where}: {need.name} asks for consistent reads by {', '.join(need.equal)}, which only a "
        f"global index could serve, and a global index is never consistent",
        hint=f"remove consistent=True, or never change {', '.join(need.equal)} in updates(): only "
        f"unchanging fields can be part of {known.name}'s key",
    )


def refuse_component(component: Component) -> None:
    """Raise PatternRefused if needs can be served one by one, but not by one layout together."""
    if component.solve(UNCAPPED) is not None:
        return
    consistent = sorted(
        {need.name for choices in component.choices for need in choices.needs if need.consistent}
        | {group.name for group in component.groups if group.members[0].consistent}
    )
    together = [group.name for group in component.groups]
    names = " and ".join(consistent or together)
    if len(consistent) == 1:
        raise PatternRefused(
            consistent[0],
            f"{consistent[0]} reads consistently by fields that are not in the table's key: only "
            "that key and local indexes can be read consistently",
            hint="make the fields part of the identity, or remove consistent=True; a lookup by one "
            "field may also be unique()",
        )
    if consistent:
        raise PatternRefused(
            consistent[0],
            f"{names} cannot all read consistently: only the table's own key and local indexes "
            f"can, and an entity has the same partition key in all of these",
            hint="remove consistent=True from one of them",
        )
    raise PatternRefused(
        together[0],
        f"{names}: these entities cannot share a partition in the requested order",
        hint="read them in two patterns, or remove key= from the entities",
    )


def refuse_indexes(design: str, found: TableLayout) -> None:
    """Raise an error if a table has more than twenty global or five local indexes."""
    opened = {
        each
        for one in found.components
        for entity in one.entities.values()
        for each in entity.opened
    }
    # A handwritten index may hold several entities.
    own = {
        each.path.handwritten.index if each.path.handwritten else each
        for each in opened
        if not each.shares_slot and each.kind != "local"
    }
    local = [each for each in opened if each.kind == "local"]
    if sum(found.caps) + len(own) > GLOBAL_INDEXES or len(local) > LOCAL_INDEXES:
        raise DesignError(
            f"{design} needs {sum(found.caps) + len(own)} global and {len(local)} local indexes on "
            f"one table; DynamoDB allows {GLOBAL_INDEXES} and {LOCAL_INDEXES}",
            hint='use layout="aggregate", or drop the patterns that need an index of their own',
        )

"""Reasons and warnings: why a key or an index was chosen, and what a pattern costs.

A reason also says what the next best choice would cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from stator.design.capacity_units import MONTH_SECONDS
from stator.design.entities.derived_parts import source_field
from stator.design.entities.entity import Entity, info
from stator.design.plan.plan import Step
from stator.design.planner.assignment import EntityLayout
from stator.design.planner.choices import EntityChoices
from stator.design.planner.cost_model import READ_LIMIT, WRITE_LIMIT, CostModel, Placement
from stator.design.planner.paths.access_path import AccessPath
from stator.design.planner.paths.candidate_paths import is_ordered, unique_path
from stator.design.planner.paths.served_need import ServedNeed
from stator.design.planner.search import GroupLayout
from stator.design.planner.selectivity import contradiction
from stator.design.planner.weights import INDEX_DOLLARS, READ_UNIT_DOLLARS
from stator.model.limits import PAGE_BYTES, READ_UNIT_BYTES
from stator.model.quantities import amount
from stator.model.quantities import dollars as in_dollars

REQUEST_MS: Final = 5
"""Planning figure for a small request: AWS promises single-digit milliseconds."""
PAGE_MS: Final = 30
"""Planning figure for a full page of 1 MB: tens of milliseconds."""
QUICK: Final = "single-digit milliseconds"
TWO_TRIPS: Final = "two round trips, about ten milliseconds"
MANY_PAGES: Final = "tens of milliseconds for each page"
SLOW: Final = "seconds to minutes, growing with the table"


def described(placement: Placement) -> str:
    path = placement.path
    shown = [f"{name} = {source.same}" for name, source in path.constants] + list(path.partition)
    sort = [f"{name} (inverted)" if path.turns(name) else name for name in path.sort]
    tail = f" then {', '.join(sort)}" if sort else ""
    held = {
        "base": "the table's key",
        "native base": "the table's key",
        "concatenated": f"an index ({placement.projection})",
        "native": f"an index on the attributes themselves ({placement.projection})",
        "local": f"a local index ({placement.projection})",
    }[placement.kind]
    return f"{held} by {', '.join(shown) or 'one fixed value'}{tail}"


# --- entities and indexes -------------------------------------------------------------------------


def base_reasons(
    choices: EntityChoices, layout: EntityLayout, users: list[str], partition: str
) -> list[str]:
    if layout.base.path.handwritten:
        return ["the key is handwritten"]
    reasons = [
        f"{partition} serves {', '.join(users)}" if users else f"{partition} identifies the item"
    ]
    return [*reasons, *shard_reasons(choices, layout.base)]


def shard_reasons(choices: EntityChoices, placement: Placement) -> list[str]:
    """Return why a key value is divided into shards: its writes, or the reads of a pattern."""
    shards, costs = placement.path.shards, choices.unlocked.costs
    if shards == 1 or placement.path.handwritten is not None:
        return []
    writes = costs.write_heat(placement.path)
    causes = [(writes / WRITE_LIMIT, f"{amount(writes)} write units", f"{WRITE_LIMIT:,.0f}")]
    for need in choices.needs:
        served = choices.serve(placement, need)
        if served is not None:
            reads = costs.read_heat(served, placement)
            units = f"{amount(reads)} read units from {need.name}"
            causes.append((reads / READ_LIMIT, units, f"{READ_LIMIT:,.0f}"))
    share, units, limit = max(causes, key=lambda each: each[0])
    if share <= 1:
        return [f"{shards} shards, as the other keys of the partition or the lock have"]
    busiest = f"the busiest key value gets {units} a second, and a partition serves {limit}"
    return [f"{shards} shards: {busiest}"]


def entity_warnings(
    choices: EntityChoices, layout: EntityLayout, lookup: str | None, costs: CostModel
) -> Iterable[str]:
    if lookup is not None:
        yield (
            f"updates and deletes by {', '.join(info(choices.entity).identity)} alone first "
            f"look up the key in {lookup}; an update or delete that gets the item does not"
        )
    identity = info(choices.entity).identity
    more = [name for name in sorted(layout.base.path.sources) if name not in identity]
    if more:
        yield (
            f"the key holds {', '.join(more)} in addition to the identity, so a guard keeps "
            f"{', '.join(identity)} unique: creates and deletes are transactions of item and guard"
        )
    if any(each.kind == "local" for each in layout.opened):
        yield "a local index limits each item collection to 10 GB, all entities together"


def index_reason(
    placements: list[Placement],
    shards: list[str],
    patterns: tuple[str, ...],
    elsewhere: frozenset[str],
    long_reads: Mapping[str, str],
    groups: frozenset[str],
    costs: CostModel,
) -> str:
    """Return why an index exists, and what would happen without it.

    ``elsewhere`` has the patterns that another key or index could serve. ``long_reads`` has the
    patterns that a filter or a sort could serve, but only by reading too much. Each has a text on
    what a call would read. ``groups`` are the patterns over several entities.
    """
    parts = []
    for placement in placements:
        present = costs.presence(placement.path)
        sparse = f", sparse: {_share(present)} of the items" if present < 1 else ""
        parts.append(f"{info(placement.path.entity).name}: {described(placement)}{sparse}")
    longer = [name for name in patterns if name in long_reads and name not in elsewhere]
    lost = [name for name in patterns if name not in {*elsewhere, *long_reads, *groups}]
    divided = [name for name in patterns if name in groups and name not in elsewhere]
    dearer = [name for name in patterns if name in elsewhere]
    reads = [name for name in lost if not name.startswith(_WRITES)]
    writes = [name for name in lost if name.startswith(_WRITES)]
    effects = [f"{_listed(reads)} would scan"] if reads else []
    effects += [f"{_listed(writes)} could not find their items"] if writes else []
    effects += [f"{name} would {long_reads[name]}" for name in longer]
    effects += [f"{_listed(divided)} would no longer be one query"] if divided else []
    effects += [f"{_listed(dearer)} would cost more"] if dearer else []
    if any(each.kind == "local" for each in placements):
        shards = [*shards, "a local index is fixed when its table is created"]
    without = f"; without it {', and '.join(effects)}" if effects else ""
    parts += shards
    return "; ".join(parts) + (without if patterns else "; handwritten, and no pattern uses it")


_WRITES = "writes to "
"""The start of the name of a need to find the items that updates and deletes change."""


def _listed(names: list[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _share(present: float) -> str:
    return "less than 1%" if present < 0.005 else f"{present:.0%}"


# --- patterns -------------------------------------------------------------------------------------


def latency_of(steps: tuple[Step, ...]) -> str:
    if any(step.operation == "Scan" for step in steps):
        return SLOW
    if any(_pages(step) > 1 for step in steps):
        return MANY_PAGES
    return TWO_TRIPS if any(step.fetch for step in steps) else QUICK


def _pages(step: Step) -> int:
    """Return the number of 1 MB pages that one query of a step reads, one after the other."""
    size = step.units * READ_UNIT_BYTES * (1 if step.consistent else 2)
    return max(1, math.ceil(size / (PAGE_BYTES * step.shards * len(step.conditions))))


def latency_warnings(within_ms: float | None, steps: tuple[Step, ...]) -> list[str]:
    """Return a warning if a pattern is expected to take longer than its ``within``, else nothing.

    Queries of several shards, values or tables run in parallel. Pages of one query, and the fetch
    after a KEYS_ONLY index, run one after the other.
    """
    if within_ms is None:
        return []
    slowest = max(steps, key=_milliseconds)
    expected = _milliseconds(slowest)
    if expected <= within_ms:
        return []
    pages = _pages(slowest)
    if slowest.operation == "Scan":
        why, remedy = f"a Scan of {pages:,} pages in sequence", "compare a field with == in where()"
    elif pages > 1:
        why = f"{pages:,} pages of 1 MB in sequence"
        remedy = "add a limit(), or compare another field so that the key finds less"
    elif slowest.fetch:
        why = f"a query of {slowest.index}, then a fetch of the items"
        remedy = "write the index by hand with index=, which stores whole items"
    else:
        why, remedy = "one request", "keep the answer in a cache"
    problem = f"within={within_ms:g} is too short: expect about {expected:,} ms ({why})"
    return [f"{problem}; {remedy}, or raise within="]


def _milliseconds(step: Step) -> int:
    pages = _pages(step)
    return (pages * PAGE_MS if pages > 1 else REQUEST_MS) + (REQUEST_MS if step.fetch else 0)


def read_reasons(
    served: ServedNeed, placement: Placement, step: Step, costs: CostModel
) -> list[str]:
    reasons = []
    if step.operation == "GetItem":
        reasons.append("the arguments are the whole key: one GetItem")
    else:
        reasons.append(f"served by {described(placement)}")
    if step.in_memory:
        wanted = amount(_rounded(served.need.wanted))
        need = served.need
        order = ", ".join(
            f"{name} descending" if name in need.descends else name for name in need.sequence
        )
        reasons.append(
            f"sorted in memory by {order}: a call returns about {wanted} "
            f"{'item' if wanted == '1' else 'items'}, all at once"
        )
    if step.alternatives:
        reasons.append(
            f"one query for each of {len(step.conditions)} values, answers merged by the reader"
        )
    if step.is_adaptive:
        reasons.append(
            f"one query for each shard that the value has had, at least {step.shards}, answers "
            "merged by the reader; one strongly consistent read tells their number"
        )
    elif step.shards > 1:
        reasons.append(f"one query for each of {step.shards} shards, answers merged by the reader")
    if step.fetched_filter is not None:
        fetched = amount(_rounded(costs.items_fetched(served, placement)))
        reasons.append(
            f"the index does not show what the filter compares, which is cheaper to write: about "
            f"{fetched} items are fetched, and the reader drops what does not match"
        )
    elif step.fetch:
        held = "keys"
        if placement.projection == "INCLUDE" and placement.included:
            held = f"keys and {', '.join(placement.included)}"
        reasons.append(
            f"the index holds only {held}, which is cheaper to write; the items are fetched "
            f"afterwards"
        )
    if placement.path.constants:
        reasons.append("sparse: the index holds only the items that match the constants")
    if step.is_filtered:
        read = costs.items_read(served, placement)
        shown = " and ".join(map(str, step.filters))
        reasons.append(
            f"filter on {shown}: reads about {amount(_rounded(read))} items to return "
            f"{amount(_rounded(served.need.wanted))}"
        )
    largest = costs.units_of_largest(served, placement)
    if largest is not None and step.operation == "Query":
        entity, names = served.need.entity, (*served.path.partition, *served.prefix)
        present = costs.estimates.design.facts.all_present(entity, map(source_field, names))
        part = costs.estimates.hottest(entity, names) * present
        mean, most = (
            units * served.need.rps * MONTH_SECONDS * READ_UNIT_DOLLARS
            for units in (costs.read_units(served, placement) or 0.0, largest)
        )
        reasons.append(
            f"for the largest value, with {part:.3g} of the items, a call takes "
            f"{amount(largest)} RCU: {in_dollars(most)} a month if every call asked for it, "
            f"{in_dollars(mean)} for the mean"
        )
    return reasons


def long_read(served: ServedNeed, placement: Placement, costs: CostModel) -> str:
    """Return, as text, what a call would read and cost if a filter replaced the index."""
    pages = costs.pages_read(served, placement)
    dollars = costs.read_dollars(served, placement) or 0.0
    largest = " for the largest value" if costs.skew(served) > 1 else ""
    then = "sort" if served.in_memory else "filter"
    return (
        f"read {amount(max(1.0, round(pages)))} pages of 1 MB a call{largest} and {then} them, "
        f"for {in_dollars(dollars)} a month"
    )


def _rounded(number: float) -> float:
    return float(round(number)) if number >= 1 else number


def read_warnings(
    served: ServedNeed,
    placement: Placement,
    step: Step,
    costs: CostModel,
    strangers: list[type[Entity]],
) -> list[str]:
    warnings = []
    if strangers and step.operation == "Query":
        also = ", ".join(info(each).name for each in strangers)
        limited = (
            "; DynamoDB's Limit would count them, so each call reads more than its limit"
            if served.need.limit is not None
            else ""
        )
        warnings.append(
            f"because of handwritten keys, it also reads items of {also} and filters them "
            f"out{limited}"
        )
    matched, wanted = costs.matched(served), served.need.wanted
    read = costs.items_read(served, placement)
    if read > 3 * wanted > 0 and step.operation == "Query" and step.is_filtered:
        warnings.append(f"reads {amount(_rounded(read / wanted))} items for each one it returns")
    wrong = contradiction(served.need, costs.guessed_presence(served.need))
    if wrong is not None and step.operation == "Query":
        warnings.append(f"{wrong.text(served.need)}: correct returns= or volumes=")
    if served.need.is_count and matched > 10_000:
        warnings.append(
            f"a count reads all it counts, about {matched:,.0f} entries: use a counter instead"
        )
    if step.shards > 1 and served.need.limit is not None:
        warnings.append("each shard reads up to the limit")
    if step.alternatives and served.need.limit is not None:
        warnings.append("the query for each value reads up to the limit")
    return warnings


def group_reasons(
    placed: GroupLayout, step: Step, strangers: list[type[Entity]]
) -> tuple[list[str], list[str]]:
    where = "the table itself" if placed.in_base else f"index {step.index}"
    names = " and ".join(step.entities)
    reasons = [f"{names} share a partition of {where}: one Query reads them all"]
    warnings = []
    if strangers:
        also = ", ".join(info(each).name for each in strangers)
        warnings.append(
            f"items of {also} lie between them in the same partition, and are read and filtered out"
        )
    members = placed.group.members
    inverted = any(each.path.inverted for each in placed.placements)
    if inverted:
        reasons.append(
            "times are written inverted, so that the parent comes first and the newest follow"
        )
    elif step.limit and not (len(members) == 2 and sum(is_ordered(each) for each in members) == 1):
        warnings.append("the limit counts items of all entities, in the order of their sort keys")
    return reasons, warnings


def _form(path: AccessPath) -> AccessPath:
    """Return the path without shards and with the identity appended, to compare keys.

    Two paths with the same form have keys that serve the same needs.
    """
    return unique_path(path.unspread)


def runner_up(choices: EntityChoices, layout: EntityLayout, at: int) -> str:
    """Return a text about the next best placement for one need, with everything else unchanged.

    ``at`` is the position of the need. The text is empty if there is no other placement. Placements
    that need a sort in memory are ignored: a lock file can rule them out, and the text must be the
    same with and without a lock file.
    """
    chosen = layout.assigned[at]
    priced = choices.unlocked
    ranked: list[tuple[tuple[object, ...], float, Placement]] = []
    # Those that the search dropped count, too: which ones it drops depends on the lock.
    for placement in dict.fromkeys((layout.base, *layout.opened, *choices.considered)):
        priced.price(placement)
        use = priced.use_dollars[placement][at]
        if placement == chosen or use is None or placement.kind == "local":
            continue
        if choices.sorts(placement, at):
            continue
        extra = (
            0.0 if placement in (layout.base, *layout.opened) else priced.steady_dollars[placement]
        )
        extra += INDEX_DOLLARS if placement.shares_slot and extra else 0.0
        # Another projection, number of shards or suffix says less than another key.
        is_same = (
            chosen is not None
            and _form(placement.path) == _form(chosen.path)
            and placement.kind == chosen.kind
        )
        dollars = round(use + extra, 6)
        ranked.append(((is_same, dollars, placement.rank), dollars, placement))
    if not ranked:
        return ""
    _, dollars, placement = min(ranked, key=lambda each: each[0])
    return f"{described(placement)}, {in_dollars(dollars)} a month"

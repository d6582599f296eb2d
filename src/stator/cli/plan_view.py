"""Shows a plan as text and as JSON: its cost, tables, keys, and every pattern with its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.output import print_parts
from stator.cli.tables.name_cell import NameCell
from stator.design.cost.report import DEFAULT_REGION, Basis, settings_options
from stator.design.design import Design
from stator.design.plan.plan import EntityPlan, IndexPlan, PatternPlan, Plan, Step, TablePlan
from stator.model.quantities import about_dollars, amount, cents, plural, size

_SHORT = {
    "single-digit milliseconds": "<10 ms",
    "two round trips, about ten milliseconds": "10 ms",
    "tens of milliseconds": "20 ms",
    "tens of milliseconds for each page": "pages",
    "seconds to minutes, growing with the table": "minutes",
}
"""Short forms of the planner's latencies, for the table of patterns."""


def show(
    plan: Plan,
    design: Design,
    console: Console,
    *,
    as_table: bool,
    region: str = DEFAULT_REGION,
) -> None:
    """Print a plan, with one row for each pattern if ``as_table``.

    ``region`` is the region of the plan's dollars.
    """
    parts = (
        _heading(plan),
        *_tables(plan),
        *_entities(plan),
        *_patterns(plan, design, as_table),
        *_closing(plan, design, region),
    )
    print_parts(console, *parts)


def _heading(plan: Plan) -> Text:
    reads = sum(pattern.kind == "read" for pattern in plan.patterns)
    writes = len(plan.patterns) - reads
    counts = ", ".join(
        [plural(len(plan.entities), "entity"), plural(reads, "read"), plural(writes, "write")]
    )
    return Text.assemble(
        (plan.name, "bold"),
        f"  {plan.layout}: {counts}, about ",
        (f"{about_dollars(plan.dollars_per_month)} a month", "bold green"),
    )


def _section(title: str) -> Text:
    return Text.assemble("\n", (title, "bold cyan"))


def _grid(rows: Iterable[tuple[str | Text, ...]], *, indent: int = 2) -> RenderableType:
    """Return a borderless table. The last column takes the remaining width and wraps."""
    table = Table.grid(padding=(0, 2, 0, 0))
    found = list(rows)
    for column in range(max((len(row) for row in found), default=0)):
        last = column == len(found[0]) - 1
        table.add_column(no_wrap=not last, overflow="fold", ratio=1 if last else None)
    for row in found:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, indent))


# --- tables and keys ------------------------------------------------------------------------------


def _tables(plan: Plan) -> Iterator[RenderableType]:
    for table in plan.tables:
        yield _section(f"Table {table.name}")
        kinds = dict(table.attributes)
        key = [
            f"{name} ({kinds[name]})" for name in (table.partition, table.sort) if name is not None
        ]
        rows: list[tuple[str | Text, ...]] = [(Text("key", "dim"), ", ".join(key))]
        rows += [row for index in table.indexes for row in _index(index, table)]
        yield _grid(rows)


def _index(index: IndexPlan, table: TablePlan) -> Iterator[tuple[str | Text, ...]]:
    kinds = dict(table.attributes)
    parts = [
        ", ".join(f"{name} ({kinds[name]})" for name in names)
        for names in (index.partition, index.sort)
    ]
    held = index.projection + (f" {', '.join(index.included)}" if index.included else "")
    local = "local, " if index.kind == "LSI" else ""
    yield (
        Text(index.name, "bold"),
        Text.assemble(
            " / ".join(part for part in parts if part),
            (f"  {local}{held}  ", "dim"),
            (f"{about_dollars(index.dollars_per_month)} a month", "green"),
        ),
    )
    for reason in index.reason.split("; "):
        yield "", Text(reason, "dim")


def _entities(plan: Plan) -> Iterator[RenderableType]:
    yield _section("Keys")
    several = len(plan.tables) > 1
    for entity in plan.entities:
        where = f" in {entity.table}" if several else ""
        yield Text.assemble(
            "  ",
            (entity.name, "bold"),
            (f"  {amount(entity.items)} items of {size(entity.item_bytes)}{where}", "dim"),
        )
        yield _grid(_keys(entity), indent=4)
        for reason in entity.reasons if entity.shards > 1 else ():
            yield Padding(Text(f"why: {reason}", "dim"), (0, 0, 0, 4))
        for warning in entity.warnings:
            yield Padding(Text(f"warning: {warning}", "yellow"), (0, 0, 0, 4))


def _keys(entity: EntityPlan) -> Iterator[tuple[str | Text, ...]]:
    for key in entity.keys:
        when = key.condition
        index = key.index or ""
        yield (
            Text(key.name, "yellow"),
            Text(index, "dim"),
            Text.assemble(str(key.template), (f"  only if {when}" if when else "", "dim")),
        )


# --- patterns -------------------------------------------------------------------------------------


def _patterns(plan: Plan, design: Design, as_table: bool) -> Iterator[RenderableType]:
    order = [each.name for each in design.reads] + [each.name for each in design.write_patterns]
    patterns = sorted(plan.patterns, key=lambda each: (each.kind, order.index(each.name)))
    if not patterns:
        return
    if as_table:
        yield _section("Patterns")
        yield _pattern_table(patterns)
        return
    for kind, title in (("read", "Reads"), ("write", "Writes")):
        chosen = [pattern for pattern in patterns if pattern.kind == kind]
        if chosen:
            yield _section(title)
        for pattern in chosen:
            yield _pattern_heading(pattern)
            yield _grid(_pattern_rows(pattern), indent=4)


def _pattern_heading(pattern: PatternPlan) -> RenderableType:
    line = Table.grid(padding=(0, 2, 0, 0), expand=True)
    line.add_column(ratio=1, overflow="fold")
    line.add_column(justify="right", no_wrap=True)
    name = Text.assemble(
        "  ", (pattern.name, "bold"), (f"({', '.join(pattern.parameters)})", "dim")
    )
    rate = f"{amount(pattern.requests_per_second)}/s  "
    line.add_row(
        name,
        Text.assemble(
            (rate, "dim"), (f"{about_dollars(pattern.dollars_per_month)} a month", "green")
        ),
    )
    return line


def _pattern_rows(pattern: PatternPlan) -> Iterator[tuple[str | Text, ...]]:
    yield Text("request", "dim"), Text.assemble((operations(pattern), "magenta"), _manner(pattern))
    if pattern.example:
        for example in pattern.example.split("; "):
            yield Text("keys", "dim"), Text(example, "yellow")
    for step in pattern.steps:
        if step.filter is not None:
            yield Text("filter", "dim"), Text(str(step.filter))
        if step.fetched_filter is not None:
            yield Text("filter", "dim"), Text(f"{step.fetched_filter}, after the fetch")
    yield (
        Text("cost", "dim"),
        f"{amount(pattern.units_per_call)} {units(pattern)} a call, {pattern.latency}",
    )
    for at, reason in enumerate(pattern.reasons):
        yield Text("why" if at == 0 else "", "dim"), reason
    if pattern.runner_up:
        yield Text("next best", "dim"), Text(pattern.runner_up, "dim")
    for warning in pattern.warnings:
        yield Text("warning", "yellow"), Text(warning, "yellow")


def operations(pattern: PatternPlan) -> str:
    if pattern.kind == "write":
        steps = [f"{step.operation} {', '.join(step.entities)}" for step in pattern.steps]
        return ("TransactWriteItems: " if pattern.transaction else "") + ", ".join(steps)
    return ", ".join(dict.fromkeys(_operation(step) for step in pattern.steps))


def _operation(step: Step) -> str:
    times = f" x {step.shards} shards" if step.shards > 1 else ""
    fetch = ", then BatchGetItem" if step.fetch else ""
    return f"{step.operation} {step.source}{times}{fetch}"


def _manner(pattern: PatternPlan) -> str:
    step = pattern.steps[0]
    if pattern.kind == "write":
        return ""
    words = [] if step.forward else ["descending"]
    if step.limit is not None or step.limit_param:
        words.append(f"limit {step.limit_param or step.limit}")
    words += ["consistent"] if step.consistent else []
    words += ["count"] if step.is_count else []
    return f", {', '.join(words)}" if words else ""


def units(pattern: PatternPlan) -> str:
    return "RCU" if pattern.kind == "read" else "WCU"


def _pattern_table(patterns: list[PatternPlan]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("pattern", max_width=24)
    table.add_column("request", overflow="fold", ratio=1)
    table.add_column("a call", justify="right", no_wrap=True)
    table.add_column("latency", overflow="fold")
    table.add_column("$/month", justify="right", no_wrap=True, style="green")
    for each in patterns:
        request = Text.assemble((operations(each), "magenta"), _manner(each))
        for example in filter(None, each.example.split("; ")):
            request.append(f"\n{example}", "yellow")
        table.add_row(
            NameCell(each.name, "bold"),
            request,
            f"{amount(each.units_per_call)} {units(each)}",
            _SHORT.get(each.latency, each.latency),
            cents(each.dollars_per_month),
        )
    return table


def _closing(plan: Plan, design: Design, region: str) -> Iterator[RenderableType]:
    basis = replace(Basis(**settings_options(design)), region=region)
    yield Text("")
    storage = sum(table.storage_dollars_per_month for table in plan.tables)
    other = sum(table.other_dollars_per_month for table in plan.tables)
    also = [f"{about_dollars(storage)} for storage"]
    if other:
        parts = ", ".join(
            name
            for name, is_paid in (
                ("writes= and looking up keys before updates", _has_other_writes(plan)),
                ("point-in-time recovery", basis.pitr),
                ("idle capacity", basis.mode != "on-demand"),
            )
            if is_paid
        )
        also.append(f"{about_dollars(other)} for {parts}")
    yield Text(f"In addition, each month: {', '.join(also)}.", "dim")
    yield from _guesses(plan)
    if not plan.proven:
        yield Text("The search stopped at its limit: a cheaper layout may exist.", "yellow")
    shown = str(basis).replace("on-demand", "on demand", 1)
    yield Text(f"Prices: {region}, {shown}. Rates and volumes as declared, spread evenly.", "dim")
    if replace(basis, pitr=False) != Basis():  # recovery costs the same with any keys
        yield Text(
            "Layouts, next-best choices and findings use on-demand prices of "
            f"{DEFAULT_REGION}, Standard class.",
            "dim",
        )


def _has_other_writes(plan: Plan) -> bool:
    return any(each.pattern.startswith(("writes of ", "lookups of ")) for each in plan.uses)


def _guesses(plan: Plan) -> Iterator[RenderableType]:
    if plan.guesses:
        yield Text("Guesses: declare what you know, and the numbers above follow.", "yellow")
        yield _grid((("", Text(each, "dim")) for each in plan.guesses), indent=2)


# --- for scripts ----------------------------------------------------------------------------------


def to_data(plan: Plan) -> dict[str, Any]:
    return {
        "design": plan.name,
        "layout": plan.layout,
        "dollars_per_month": plan.dollars_per_month,
        "proven": plan.proven,
        "tables": [
            {
                "name": table.name,
                "partition": table.partition,
                "sort": table.sort,
                "attributes": dict(table.attributes),
                "entities": list(table.entities),
                "indexes": [_index_data(index) for index in table.indexes],
            }
            for table in plan.tables
        ],
        "entities": [_entity_data(entity) for entity in plan.entities],
        "patterns": [_pattern_data(pattern) for pattern in plan.patterns],
        "warnings": list(plan.warnings),
        "guesses": list(plan.guesses),
    }


def _index_data(index: IndexPlan) -> dict[str, Any]:
    return {
        "name": index.name,
        "kind": index.kind,
        "partition": list(index.partition),
        "sort": list(index.sort),
        "projection": index.projection,
        "included": list(index.included),
        "entities": list(index.entities),
        "patterns": list(index.patterns),
        "dollars_per_month": index.dollars_per_month,
        "reason": index.reason,
    }


def _entity_data(entity: EntityPlan) -> dict[str, Any]:
    return {
        "name": entity.name,
        "table": entity.table,
        "items": entity.items,
        "item_bytes": entity.item_bytes,
        "keys": [
            {
                "attribute": key.name,
                "index": key.index,
                "template": str(key.template),
                "when": {str(test): value for test, value in key.when},
            }
            for key in entity.keys
        ],
        "reasons": list(entity.reasons),
        "warnings": list(entity.warnings),
    }


def _pattern_data(pattern: PatternPlan) -> dict[str, Any]:
    return {
        "name": pattern.name,
        "kind": pattern.kind,
        "operation": pattern.operation,
        "table": pattern.table,
        "index": pattern.index,
        "key_condition": pattern.key_condition,
        "example": pattern.example,
        "filter": [str(each) for step in pattern.steps for each in step.filters],
        "consistent": pattern.consistent,
        "requests_per_second": pattern.requests_per_second,
        "units_per_call": pattern.units_per_call,
        "unit": units(pattern),
        "latency": pattern.latency,
        "dollars_per_month": pattern.dollars_per_month,
        "reasons": list(pattern.reasons),
        "runner_up": pattern.runner_up,
        "warnings": list(pattern.warnings),
        "guesses": list(pattern.guesses),
    }

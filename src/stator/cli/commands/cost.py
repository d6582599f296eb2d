"""``stator cost``: what a design costs a month, and how a change affects that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stator.cli.design_file import DesignFile, load_design_file, plan_of
from stator.cli.git_lock import plan_at
from stator.cli.options import DesignArgument, PriceRegionOption, PricesOption
from stator.cli.output import print_parts, rich_console
from stator.cli.tables.name_cell import NameCell
from stator.design.cost.charges import TableClass
from stator.design.cost.difference import CostDiff, compare_costs
from stator.design.cost.growth import growth_notes
from stator.design.cost.prices import PriceFile, price_file
from stator.design.cost.report import (
    DEFAULT_REGION,
    Basis,
    CostOptions,
    CostReport,
    cost,
    report,
    settings_options,
)
from stator.design.cost.windows import window_notes
from stator.design.cost.workload import Workload, workload_of
from stator.design.plan.plan import Plan
from stator.errors import DesignError
from stator.model.quantities import dollars, signed_dollars

_BAR = 20
_CLASSES: Final[dict[str, TableClass]] = {
    "standard": "standard",
    "infrequent-access": "infrequent_access",
}


class StorageClass(StrEnum):
    standard = "standard"
    infrequent_access = "infrequent-access"


class BillingMode(StrEnum):
    on_demand = "on-demand"
    provisioned = "provisioned"
    reserved = "reserved"


def command(
    target: DesignArgument = None,
    region: PriceRegionOption = DEFAULT_REGION,
    mode: Annotated[
        BillingMode | None,
        typer.Option(
            help="Price each request, provisioned units or reserved units. By default as in "
            "TableSettings, otherwise on-demand.",
            show_default=False,
        ),
    ] = None,
    utilisation: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.01,
            max=1.0,
            help="The used share of provisioned or reserved capacity. By default the target in "
            "TableSettings, otherwise 0.7.",
            show_default=False,
        ),
    ] = None,
    table_class: Annotated[
        StorageClass | None,
        typer.Option(
            help="The table class. By default as in TableSettings, otherwise standard.",
            show_default=False,
        ),
    ] = None,
    years: Annotated[
        int,
        typer.Option(
            min=1, max=3, metavar="N", help="The term of reserved capacity: 1 or 3 years."
        ),
    ] = 1,
    pitr: Annotated[
        bool | None,
        typer.Option(
            "--pitr/--no-pitr",
            help="Include point-in-time recovery. By default as in TableSettings.",
            show_default=False,
        ),
    ] = None,
    backups: Annotated[
        float, typer.Option(min=0.0, metavar="N", help="Number of full backups to keep.")
    ] = 0.0,
    streams: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Number of consumers that poll the stream. Lambda reads free of charge.",
        ),
    ] = 0,
    scale: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="N", help="Multiply all rates. The units of each call stay."
        ),
    ] = 1.0,
    scale_volumes: Annotated[
        float, typer.Option(min=0.001, metavar="N", help="Multiply all stored data.")
    ] = 1.0,
    prices: PricesOption = None,
    diff: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Compare with the lock file of another git revision."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Show what a design costs a month, by pattern, entity and index.

    Example: stator cost shop.py --region eu-west-1 --mode provisioned --utilisation 0.6

    Example: stator cost --diff main
    """
    if years == 2:
        raise typer.BadParameter("--years 2 is not offered by AWS; use 1 or 3")
    if diff is not None and (scale, scale_volumes) != (1.0, 1.0):
        raise typer.BadParameter("--diff compares declared workloads; leave out --scale")
    file = load_design_file(target)
    design = file.design
    options = settings_options(design)
    options |= {
        "region": region,
        "years": 1 if years == 1 else 3,
        "backups": backups,
        "stream_consumers": streams,
    }
    if mode is not None:
        options["mode"] = mode.value
    if utilisation is not None:
        options["utilisation"] = utilisation
    if table_class is not None:
        options["table_class"] = _CLASSES[table_class]
    if pitr is not None:
        options["pitr"] = pitr
    plan = plan_of(design)
    workload = workload_of(plan).scaled(scale, scale_volumes)
    basis = Basis(**options)
    known = price_file(prices)
    found = report(design.name, workload, basis, known.region(region))
    change = None if diff is None else _change(file, plan, found, diff, known, options)
    notes = [*window_notes(design, workload), *growth_notes(design)]
    if json_output:
        typer.echo(
            json.dumps(
                found.to_data()
                | {"notes": notes}
                | ({} if change is None else {"diff": change.to_data()}),
                indent=2,
            )
        )
        return
    print_parts(
        rich_console(),
        change_view(change)
        if change is not None
        else report_view(
            found,
            known,
            _others(workload, known, found),
            (*_scale_note(scale, scale_volumes), *notes),
        ),
    )


def _scale_note(rates: float, volumes: float) -> list[str]:
    parts = [
        f"{what} times {factor:g}"
        for what, factor in (("rates", rates), ("stored data", volumes))
        if factor != 1.0
    ]
    return [f"{' and '.join(parts)}; each call uses the declared units"] if parts else []


def _change(
    file: DesignFile,
    plan: Plan,
    now: CostReport,
    revision: str,
    known: PriceFile,
    options: CostOptions,
) -> CostDiff:
    """Return how the cost ``now`` differs from the cost of the lock file in a git revision.

    Each of the two plans is priced with its own workload. A lock file that stores no workload is
    priced with the workload of the current design.
    """
    before = plan_at(revision, file.lock)
    return compare_costs(
        cost(before, facts=file.design, known=known, **options), now, (before, plan)
    )


def _others(workload: Workload, known: PriceFile, found: CostReport) -> dict[str, Decimal]:
    """Return the monthly total under each billing mode for which the region has prices.

    ``found`` is the report under the chosen mode. The other modes are priced with the same region,
    utilisation and so on.
    """
    basis = found.basis
    totals: dict[str, Decimal] = {}
    for mode in BillingMode:
        other = Basis(
            basis.region,
            mode.value,
            basis.utilisation,
            basis.years,
            basis.table_class if mode is not BillingMode.reserved else "standard",
            basis.pitr,
            basis.backups,
            basis.stream_consumers,
        )
        try:
            priced = (
                found
                if other == basis
                else report(found.design, workload, other, known.region(basis.region))
            )
        except DesignError:
            continue
        totals[str(other)] = priced.total
    return totals


# --- views ----------------------------------------------------------------------------------------


def report_view(
    found: CostReport, known: PriceFile, modes: dict[str, Decimal], notes: Iterable[str] = ()
) -> RenderableType:
    headline = Text.assemble(
        (f"{found.design}  ", "bold"), (dollars(found.total), "bold green"), " a month"
    )
    region = known.region(found.basis.region)
    basis = Text(
        f"{found.basis}, {found.basis.region} ({region.name}), prices of {found.prices_as_of}",
        style="dim",
    )
    kinds = {line.pattern: line.kind for line in found.lines if line.pattern}
    parts: list[RenderableType] = [
        headline,
        basis,
        _section(
            "pattern",
            found.by_pattern(),
            found.total,
            {str(name): kind for name, kind in kinds.items()},
        ),
        _section("entity", found.by_entity(), found.total, {}),
        _section("table, index", found.by_place(), found.total, {}),
        _section("purpose", found.by_kind(), found.total, {}),
        _modes_view(found, modes),
    ]
    if found.doubtful:
        parts.append(
            Text(f"\nnote: no AWS source confirms {', '.join(found.doubtful)}", style="yellow")
        )
    every = [f"note: {note}" for note in (*found.not_included, *notes)]
    parts += [Text("\n" + "\n".join(every), style="yellow")] if every else []
    return Group(*parts)


def _section(
    title: str, rows: dict[str, Decimal], whole: Decimal, notes: dict[str, str]
) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="cyan", padding=(0, 2, 0, 0))
    table.add_column(title, min_width=24)
    table.add_column("", style="dim", min_width=6)
    table.add_column("a month", justify="right", min_width=12)
    table.add_column("share", justify="right", min_width=5)
    table.add_column("")
    for name, part in rows.items():
        share = float(part / whole) if whole else 0.0
        bar = Text(_bar(share), style="green")
        table.add_row(NameCell(name), notes.get(name, ""), dollars(part), _percent(share), bar)
    return Padding(table, (1, 0, 0, 0))


def _percent(share: float) -> str:
    return "< 1%" if 0 < share < 0.005 else f"{share:.0%}"


def _bar(share: float) -> str:
    """Return a bar of block characters. Its length is a multiple of an eighth of a character."""
    eighths = round(share * _BAR * 8)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def _modes_view(found: CostReport, modes: dict[str, Decimal]) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(min_width=32)
    table.add_column(justify="right", min_width=12)
    for mode, total in modes.items():
        mine = mode == str(found.basis)
        table.add_row(Text(mode, style="bold" if mine else ""), dollars(total), "<" if mine else "")
    return Group(Text("\nbilling modes", style="cyan"), table)


def change_view(change: CostDiff) -> RenderableType:
    sentence = Text(change.sentence, style="bold red" if change.dollars > 0 else "bold green")
    if not change.changes:
        return sentence
    borrowed = "The older lock file has no workload, so both sides use today's."
    origin = Text(borrowed if change.origin is None else change.origin.sentence)
    table = Table(box=None, pad_edge=False, header_style="cyan", padding=(0, 2, 0, 0))
    table.add_column("cause", min_width=28)
    for title in ("before", "after", "change"):
        table.add_column(title, justify="right", min_width=12)
    for each in change.changes:
        style = "red" if each.dollars > 0 else "green"
        table.add_row(
            NameCell(each.cause),
            _sum_or_dash(each.before),
            _sum_or_dash(each.after),
            Text(signed_dollars(each.dollars), style=style),
        )
    table.add_row()
    style = "bold red" if change.dollars > 0 else "bold green"
    table.add_row(
        Text("total", style="bold"), dollars(change.before.total), dollars(change.after.total),
        Text(signed_dollars(change.dollars), style=style),
    )  # fmt: skip
    return Group(sentence, origin, Padding(table, (1, 0, 0, 0)))


def _sum_or_dash(sum_dollars: Decimal | None) -> str:
    return "-" if sum_dollars is None else dollars(sum_dollars)

"""``stator plan``: the keys, indexes and requests of a design, their cost and the reasons."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from stator.cli.design_file import DesignFile, load_design_file, plan_of
from stator.cli.layouts_view import layouts_data, show_layouts
from stator.cli.options import DesignArgument, PriceRegionOption
from stator.cli.output import RISK_COLOURS, rich_console, say, styled
from stator.cli.plan_markdown import plan_markdown
from stator.cli.plan_view import show, to_data
from stator.cli.progress_bar import ProgressBar
from stator.cli.stop_signal import INTERRUPTED
from stator.design.cost.billed_plan import billed_plan
from stator.design.cost.report import DEFAULT_REGION
from stator.design.design import Design
from stator.design.plan.lock_file import compare, other_keys, write_lock
from stator.design.plan.plan import Plan
from stator.design.planner.layout_options import layout_options
from stator.design.planner.longer_identity import longer_identities
from stator.errors import ConfigurationError
from stator.model.quantities import dollars

MIN_SAVED_DOLLARS = 1.0
"""A base key that saves less than this a month is not mentioned."""


class PlanFormat(StrEnum):
    text = "text"
    markdown = "markdown"


def command(
    target: DesignArgument = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Write the plan to the lock file <name>.design.json."),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Ignore the lock file and plan the cheapest layout for an empty table.",
        ),
    ] = False,
    rekey: Annotated[
        list[str] | None,
        typer.Option(
            "--rekey",
            metavar="ENTITY",
            help="Let this entity have another base key than the locked one. May be repeated.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="With --write: accept changes that orphan stored items.",
        ),
    ] = False,
    table: Annotated[
        bool, typer.Option("--table", help="Print one row for each pattern, without the reasons.")
    ] = False,
    layouts: Annotated[
        bool,
        typer.Option(
            "--layouts",
            help="Price single-table, aggregate and table-per-entity side by side.",
        ),
    ] = False,
    region: PriceRegionOption = DEFAULT_REGION,
    form: Annotated[
        PlanFormat,
        typer.Option("--format", help="text, or markdown for a comment on a pull request."),
    ] = PlanFormat.text,
    json_output: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
    verified: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Measure every estimate on the embedded engine, with generated data. "
            "Exit code 1 if one is off by more than a quarter.",
        ),
    ] = False,
    most_items: Annotated[
        int | None,
        typer.Option(
            "--most-items",
            metavar="N",
            help="With --verify: generate at most N items. By default 200,000.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show a design's keys, indexes and requests, with their cost and the reasons.

    If the lock file <name>.design.json is next to the design, its base keys are kept. If
    another base key would be cheaper, the command shows the saving; --rekey plans with that key.

    Example: stator plan shop.py --write
    """
    if verified and (write or table or layouts):
        raise typer.BadParameter(
            "--verify prints measurements; leave out --write, --table and --layouts"
        )
    if most_items is not None and not verified:
        raise typer.BadParameter("--most-items needs --verify")
    if force and not write:
        raise typer.BadParameter("--force needs --write")
    if rekey and fresh:
        raise typer.BadParameter("--rekey starts from the lock file; leave out --fresh")
    if layouts and (write or rekey):
        raise typer.BadParameter("--layouts only compares; leave out --write and --rekey")
    if region != DEFAULT_REGION and (write or verified):
        raise typer.BadParameter("--region prices what is shown; leave out --write and --verify")
    file = load_design_file(target, fresh=fresh)
    if layouts:
        options = tuple(
            each
            if each.plan is None
            else replace(each, plan=billed_plan(each.plan, file.design, region))
            for each in layout_options(file.design)
        )
        if json_output:
            typer.echo(json.dumps(layouts_data(options), indent=2, ensure_ascii=False))
        else:
            show_layouts(options, rich_console())
        return
    plan = plan_of(file.design, rekey or ())
    if verified:
        _verify(file.design, plan, most_items, as_json=json_output)
    shown = plan if region == DEFAULT_REGION else billed_plan(plan, file.design, region)
    try:
        if json_output:
            typer.echo(json.dumps(to_data(shown), indent=2, ensure_ascii=False))
        elif form is PlanFormat.markdown:
            changes = None if file.frozen is None else compare(file.frozen, plan)
            typer.echo(plan_markdown(shown, changes), nl=False)
        else:
            show(shown, file.design, rich_console(), as_table=table, region=region)
        sys.stdout.flush()
    except BrokenPipeError:
        if write:  # whoever reads only the first line wants the file all the same
            _freeze(file, plan, force=force)
        raise
    if write:
        _freeze(file, plan, force=force)
    elif not json_output and form is PlanFormat.text:
        _compare(file, plan)
        if not fresh and not rekey:
            _advise(file, plan)


def _verify(design: Design, plan: Plan, most_items: int | None, *, as_json: bool) -> NoReturn:
    """Measure the plan, print the report, and exit."""
    # Imported late: a plan needs neither the engine nor the data layer.
    from stator.cli.verification_view import show_report
    from stator.verification import verify
    from stator.verification.verifier import MOST_ITEMS

    try:
        with ProgressBar("measuring", after_seconds=1.0) as bar:
            most = MOST_ITEMS if most_items is None else most_items
            report = verify(design, plan, most_items=most, progress=bar.show)
    except KeyboardInterrupt:
        say("Stopped. Nothing was stored.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        typer.echo(report.to_json())
    else:
        show_report(report, rich_console())
    raise typer.Exit(0 if report.ok else 1)


def _freeze(file: DesignFile, plan: Plan, *, force: bool) -> None:
    """Write the lock file, and print on stderr what its changes mean for stored data.

    Raises ConfigurationError instead if stored items could not be found or read, unless ``force``
    is set.
    """
    path = file.lock
    changes = compare(file.frozen, plan) if file.frozen is not None else []
    for change in changes:
        risk = styled(change.risk, RISK_COLOURS[change.risk])
        say(f"{risk}: {change.subject}: {change.what}; {change.do}", err=True, indent=4)
    if any(change.is_blocking for change in changes) and not force:
        raise ConfigurationError(
            f"{_shown(path)} was not written: the new plan would not find or read stored items",
            hint="do what is described above first, or use --force if there is no data yet",
        )
    written = write_lock(path, plan)
    note = f"wrote {_shown(path)}; commit it" if written else f"{_shown(path)} is up to date"
    say(note, err=True)


def _compare(file: DesignFile, plan: Plan) -> None:
    """Print on stderr whether the plan differs from the lock file."""
    path, old = file.lock, file.frozen
    if old is None:
        note = f"there is no {path.name} yet; stator plan --write creates it for you to commit"
    elif compare(old, plan):
        note = f"{_shown(path)} differs; stator check says what that means"
    else:
        note = f"{_shown(path)} agrees"
    _note(note)


def _advise(file: DesignFile, plan: Plan) -> None:
    """Print on stderr how much money other base keys would save.

    The command prices two alternatives: base keys with a longer identity, and the base keys that
    the planner would choose if there were no lock file.
    """
    for advice in longer_identities(file.design):
        say(f"{styled('advice:', 'cyan')} {advice}", err=True, indent=len("advice: "))
    if file.frozen is None:
        return
    freed = plan_of(file.design, [each.name for each in plan.entities])
    for entity in other_keys(plan, freed):
        saved = plan.dollars_per_month - plan_of(file.design, [entity]).dollars_per_month
        if saved >= MIN_SAVED_DOLLARS:
            _note(
                f"another base key of {entity} would save {dollars(saved)} a month, and every item "
                f"would have to be moved; stator plan --rekey {entity} shows it"
            )


def _note(text: str) -> None:
    say(f"{styled('lock:', 'cyan')} {text}", err=True, indent=len("lock: "))


def _shown(path: Path) -> str:
    full = path.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(path)

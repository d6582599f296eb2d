"""``stator export-design``: writes a design for other tools."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.options import DesignArgument, OutOption
from stator.cli.output import say, write_text
from stator.design.design import Design
from stator.design.export import export
from stator.design.export.iam import policy
from stator.design.export.index_steps import plan_steps
from stator.design.plan.lock_file import read_lock
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError


class ExportTarget(StrEnum):
    cloudformation = "cloudformation"
    terraform = "terraform"
    cdk = "cdk"
    nosql_workbench = "nosql-workbench"
    boto3 = "boto3"
    iam = "iam"


def command(
    tool: Annotated[
        ExportTarget,
        typer.Argument(
            metavar="TOOL", help=f"One of {', '.join(ExportTarget)}.", show_default=False
        ),
    ],
    target: DesignArgument = None,
    out: OutOption = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="With iam: only this pattern. May be repeated."),
    ] = None,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="With iam: the region to put in the ARNs.")
    ] = "*",
    account: Annotated[
        str, typer.Option(metavar="ID", help="With iam: the account ID to put in the ARNs.")
    ] = "*",
    with_patterns: Annotated[
        bool,
        typer.Option(
            "--with-patterns",
            help="Include the table NAME-stator even if no field is unique(). Pattern objects, "
            "transaction tokens, workers and views store their items there.",
        ),
    ] = False,
    with_guarded_writes: Annotated[
        bool,
        typer.Option(
            "--with-guarded-writes",
            help="With iam: allow loads with a condition and table sinks on every table.",
        ),
    ] = False,
    since: Annotated[
        Path | None,
        typer.Option(
            metavar="LOCK",
            help="With cloudformation or cdk: the lock file of what is deployed. Writes one file "
            "for each update, because an update creates or deletes one index of a table at most.",
        ),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the file and the notes as JSON. Needs --out.")
    ] = False,
) -> None:
    """Write a design for another tool: Terraform, CDK, NoSQL Workbench, IAM and more.

    Notes on stderr say what the tool's format cannot express.

    Example: stator export-design terraform shop.py --out shop.tf
    """
    if json_output and out is None:
        raise typer.BadParameter(
            "--json needs --out FILE, because the export itself goes to stdout"
        )
    if tool is not ExportTarget.iam and (
        pattern or region != "*" or account != "*" or with_guarded_writes
    ):
        raise typer.BadParameter(
            "--pattern, --region, --account and --with-guarded-writes apply to iam only, not to"
            f" {tool.value}"
        )
    if since is not None and (
        tool not in (ExportTarget.cloudformation, ExportTarget.cdk) or out is None
    ):
        raise typer.BadParameter("--since applies to cloudformation and cdk, and needs --out FILE")
    design = load_design(target)
    plan = plan_of(design)
    if since is not None and out is not None:
        _write_steps(design, plan, since, tool, out, with_patterns=with_patterns)
        return
    if tool is ExportTarget.iam:
        exported = policy(
            plan,
            pattern or None,
            design=design,
            with_patterns=with_patterns,
            with_guarded_writes=with_guarded_writes,
            region=region,
            account=account,
        )
    else:
        exported = export(design, tool.value, plan, with_patterns=with_patterns)
    if out is None:
        typer.echo(exported.text, nl=False)
    else:
        write_text(out, exported.text)
    if json_output:
        typer.echo(
            json.dumps({"file": str(out), "tool": tool.value, "notes": list(exported.notes)})
        )
        return
    if out is not None:
        say(f"wrote {out}", err=True)
    for note in exported.notes:
        say(f"note: {note}", err=True, indent=len("note: "))


def _write_steps(
    design: Design, plan: Plan, since: Path, tool: ExportTarget, out: Path, *, with_patterns: bool
) -> None:
    """Write a numbered file for each update that leads from the lock file to the new plan."""
    before = read_lock(since)
    if before is None:
        raise ConfigurationError(
            f"there is no lock file {since}", hint="name the lock file of what is deployed"
        )
    steps = plan_steps(before, plan)
    for at, step in enumerate(steps, 1):
        file = out if len(steps) == 1 else out.with_name(f"{out.stem}.{at}{out.suffix}")
        write_text(file, export(design, tool.value, step, with_patterns=with_patterns).text)
        say(f"wrote {file}", err=True)
    if len(steps) > 1:
        say(f"note: deploy the {len(steps)} files one after the other", err=True)

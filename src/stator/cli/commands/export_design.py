"""``stator export-design``: writes a design for other tools."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.options import DesignArgument, OutOption
from stator.cli.output import write_text
from stator.design.export import export
from stator.design.export.iam import policy


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
    design = load_design(target)
    plan = plan_of(design)
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
        typer.echo(f"wrote {out}", err=True)
    for note in exported.notes:
        typer.echo(f"note: {note}", err=True)

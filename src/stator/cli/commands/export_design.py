"""``stator export-design``: the design for other tools."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
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
        typer.Argument(metavar="TOOL", help="|".join(ExportTarget), show_default=False),
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[TARGET]", help="shop.py, shop.py:shop or module:shop.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write to this file instead of stdout.", dir_okay=False),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="iam: only this pattern; may be repeated."),
    ] = None,
    region: Annotated[str, typer.Option(help="iam: the region in the ARNs.")] = "*",
    account: Annotated[str, typer.Option(help="iam: the account in the ARNs.")] = "*",
    with_patterns: Annotated[
        bool,
        typer.Option(
            "--with-patterns",
            help="With the table NAME-stator even if no field is unique(): pattern objects, transaction tokens, workers and views "
            "keep their items there.",
        ),
    ] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the file and the notes as JSON; needs --out.")
    ] = False,
) -> None:
    """Write the design for another tool: templates, a data model, a script, policies.

    Example: stator export-design terraform shop.py --out shop.tf
    """
    if json_output and out is None:
        raise typer.BadParameter("--json needs --out: the export itself goes to stdout otherwise")
    if tool is not ExportTarget.iam and (pattern or region != "*" or account != "*"):
        raise typer.BadParameter("--pattern, --region and --account are for iam")
    design = load_design(target)
    plan = plan_of(design)
    if tool is ExportTarget.iam:
        exported = policy(
            plan,
            pattern or None,
            design=design,
            with_patterns=with_patterns,
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

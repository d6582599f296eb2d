"""``stator docs``: a design as a document, in Markdown or as an HTML page."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.options import DesignArgument, OutOption, PriceRegionOption
from stator.cli.output import say, write_text
from stator.design.cost.report import DEFAULT_REGION
from stator.design.documents import document_of, html, markdown


class DocumentFormat(StrEnum):
    markdown = "markdown"
    html = "html"


def command(
    target: DesignArgument = None,
    form: Annotated[
        DocumentFormat | None,
        typer.Option(
            "--format",
            help="The format: Markdown, or one self-contained HTML page.",
            show_default="from the name in --out, else markdown",
        ),
    ] = None,
    out: OutOption = None,
    region: PriceRegionOption = DEFAULT_REGION,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the file and its format as JSON. Needs --out.")
    ] = False,
) -> None:
    """Write a design as a document: patterns, entity diagram, example items.

    Example: stator docs shop.py --out shop.html
    """
    if json_output and out is None:
        raise typer.BadParameter(
            "--json needs --out FILE, because the document itself goes to stdout"
        )
    chosen = form or (
        DocumentFormat.html
        if out is not None and out.suffix in (".html", ".htm")
        else DocumentFormat.markdown
    )
    design = load_design(target)
    document = document_of(design, plan_of(design), region=region)
    text = html(document) if chosen is DocumentFormat.html else markdown(document)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_text(out, text)
    if json_output:
        typer.echo(
            json.dumps({"file": str(out), "format": chosen.value, "bytes": len(text.encode())})
        )
    else:
        say(f"wrote {out}", err=True)

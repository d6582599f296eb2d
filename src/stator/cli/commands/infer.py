"""``stator infer``: a design file from the items of an existing table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from stator.cli.live_tables import LiveTables
from stator.design.infer import Inference, design_file, infer
from stator.errors import ConfigurationError

_HOW = "stator infer http://localhost:8000 TABLE, stator infer aws://eu-west-1 TABLE, or stator infer export.json.gz"


def command(
    source: Annotated[
        str,
        typer.Argument(
            help="http://localhost:8000, aws://eu-west-1, or a file or folder of an export."
        ),
    ],
    table: Annotated[
        str | None, typer.Argument(help="The table; for a file, the name of the design.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="How many items to look at.")] = 1000,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="PARTITION[,SORT]", help="The table's key, where the source does not say."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the design to this file.", dir_okay=False)
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over a file that is there.")
    ] = False,
    region: Annotated[str | None, typer.Option(help="Region, for an http address.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile of ~/.aws/config.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Propose a design for an existing table.

    What is not sure is listed. Nothing is written to the table.

    Example: stator infer aws://eu-west-1 orders --out design.py
    """
    if "://" in source:
        found = _from_table(LiveTables(source, region=region, profile=profile), table, sample)
    else:
        found = _from_files(Path(source), table, sample, key)
    if out is not None and out.exists() and not force:
        raise ConfigurationError(
            f"{out} is there already", hint="choose another name, or --force to write over it"
        )
    text = design_file(found)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(asdict(found)))
    elif out is None:
        typer.echo(text, nl=False)
    else:
        _report(found, out)


def _report(found: Inference, out: Path) -> None:
    typer.echo(
        f"{out}: {len(found.entities)} entities, {len(found.patterns)} patterns of {found.table}"
    )
    for doubt in found.doubts:
        typer.echo(typer.style("  not sure: ", fg="yellow") + doubt)
    typer.echo(f"next: read it, then `stator plan {out}`")


def _from_table(tables: LiveTables, table: str | None, sample: int) -> Inference:
    if table is None:
        names = ", ".join(tables.names()) or "none"
        raise ConfigurationError("which table?", hint=f"name one of those there: {names}")
    description = tables.describe(table)
    if description is None:
        names = ", ".join(tables.names()) or "none"
        raise ConfigurationError(
            f"there is no table {table} at {tables.address}", hint=f"tables there: {names}"
        )
    items = [_on_the_wire(item) for item in tables.sample(table, sample)]
    return infer(items, table=table, description=description)


def _on_the_wire(item: Any) -> Any:
    """botocore hands binary values out as bytes; which bytes does not matter here."""
    return {name: _value(value) for name, value in item.items()}


def _value(value: Any) -> Any:
    [(kind, content)] = value.items()
    if kind == "M":
        return {"M": _on_the_wire(content)}
    return {"L": [_value(each) for each in content]} if kind == "L" else {kind: content}


def _from_files(path: Path, name: str | None, sample: int, key: str | None) -> Inference:
    if not path.exists():
        raise ConfigurationError(f"there is no {path}", hint=_HOW)
    files = (
        sorted(file for file in path.rglob("*.json*") if "manifest" not in file.name)
        if path.is_dir()
        else [path]
    )
    items = list(islice((item for file in files for item in _lines(file)), sample))
    description = None
    if key is not None:
        parts = zip(key.split(","), ("HASH", "RANGE"))
        description = {
            "KeySchema": [{"AttributeName": part.strip(), "KeyType": kind} for part, kind in parts]
        }
        missing = [
            part["AttributeName"]
            for part in description["KeySchema"]
            if part["AttributeName"] not in items[0]
        ]
        if missing:
            raise ConfigurationError(
                f"the items have no attribute {missing[0]}", hint="look at one line of the file"
            )
    return infer(items, table=name or path.name.split(".")[0], description=description)


def _lines(file: Path) -> Iterator[Any]:
    """Items of DynamoDB JSON, one a line, as an export to S3 or ``aws dynamodb scan`` has them."""
    try:
        with (
            gzip.open(file, "rt", encoding="utf-8")
            if file.suffix == ".gz"
            else file.open(encoding="utf-8") as opened
        ):
            text = opened.read()
        if text.lstrip().startswith("{") and '"Items"' in text[:10_000]:
            yield from json.loads(text)["Items"]
            return
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield _item(json.loads(line), file, number)
    except (json.JSONDecodeError, UnicodeDecodeError, gzip.BadGzipFile, KeyError) as error:
        raise ConfigurationError(
            f"{file} is not an export: {error}",
            hint='one {"Item": {...}} in DynamoDB JSON a line, gzipped or not',
        ) from None


def _item(line: Any, file: Path, number: int) -> Any:
    item = line.get("Item", line) if isinstance(line, dict) else None
    typed = isinstance(item, dict) and all(
        isinstance(value, dict) and len(value) == 1 for value in item.values()
    )
    if not typed:
        raise ConfigurationError(
            f"{file}:{number}: not an item in DynamoDB JSON",
            hint='as in {"Item": {"PK": {"S": "USER#1"}}}',
        )
    return item

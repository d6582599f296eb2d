"""``stator infer``: a design file proposed from the items of an existing table."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from stator.cli.live_tables import LiveTables
from stator.cli.options import OutOption, ProfileOption, RegionOption
from stator.cli.output import say, styled, write_text
from stator.design.infer import Inference, TableSample, design_file, infer, infer_tables
from stator.errors import ConfigurationError, DataDamaged
from stator.formats.compression import by_extension, open_decompressed
from stator.model.quantities import plural

_FORMS = (
    "run stator infer http://localhost:8000 TABLE, stator infer aws://eu-west-1 TABLE "
    "or stator infer export.json.gz"
)


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The items: http://host:port, aws://region, or an exported file or folder.",
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TABLE]...",
            help="The tables. By default, all tables that have items. For a file, the name of the "
            "design.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of items to read from each table.")
    ] = 1000,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="PARTITION[,SORT]",
            help="The key of the table, for an export whose key attributes cannot be guessed.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the design. By default, that of the table."),
    ] = None,
    out: OutOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    region: RegionOption = None,
    profile: ProfileOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the inferred entities and patterns as JSON.")
    ] = False,
) -> None:
    """Propose a design for existing tables.

    The file lists every guess. The tables are not changed.

    Example: stator infer aws://eu-west-1 orders --out design.py
    """
    names = list(dict.fromkeys(tables or ()))
    if "://" in source:
        found = _from_tables(
            LiveTables(source, region=region, profile=profile), names, sample, name
        )
    else:
        found = _from_files(Path(source), name or next(iter(names), None), sample, key)
    if out is not None and out.exists() and not force:
        raise ConfigurationError(
            f"{out} already exists", hint="choose another file, or overwrite it with --force"
        )
    text = design_file(found)
    if out is not None:
        write_text(out, text)
    if as_json:
        typer.echo(json.dumps(asdict(found)))
    elif out is None:
        typer.echo(text, nl=False)
    else:
        _report(found, out)


def _report(found: Inference, out: Path) -> None:
    say(
        f"wrote {out}: {plural(len(found.entities), 'entity')} and "
        f"{plural(len(found.patterns), 'pattern')} of "
        f"{', '.join(each.name for each in found.tables)}"
    )
    for doubt in found.doubts:
        say(styled("  guessed: ", "yellow") + doubt, indent=11)
    say(f"next: review the file, then run stator plan {out}")


def _from_tables(tables: LiveTables, names: list[str], sample: int, name: str | None) -> Inference:
    """Infer a design for the named tables, or for all tables that have items."""
    samples = [_sample(tables, each, sample) for each in names or _all_names(tables)]
    if not names:
        samples = [each for each in samples if each.items]
        if not samples:
            raise ConfigurationError(
                f"no table at {tables.address} has items",
                hint="a design is inferred from items; write some first",
            )
    only = samples[0].name if len(samples) == 1 else None
    return infer_tables(samples, name=name or only or _common_name(samples))


def _all_names(tables: LiveTables) -> list[str]:
    """Return the names of all tables but those that Stator adds (``<design>-stator``)."""
    found = tables.names()
    return [
        each
        for each in found
        if not (each.endswith("-stator") and each.removesuffix("-stator") in found)
    ]


def _sample(tables: LiveTables, table: str, count: int) -> TableSample:
    description = tables.describe_fully(table)
    if description is None:
        raise ConfigurationError(
            f"there is no table {table} at {tables.address}", hint=_table_hint(tables)
        )
    items = [_on_the_wire(item) for item in tables.sample(table, count)]
    return TableSample(table, items, description)


def _common_name(samples: list[TableSample]) -> str:
    """Return the words that all table names start with: "prod-shop" for prod-shop-orders and so on.

    Returns "tables" if they share no word.
    """
    several = [re.split(r"[-_.]", each.name) for each in samples]
    same = takewhile(lambda words: len(set(words)) == 1, zip(*several))
    common = "-".join(words[0] for words in same)
    return common if len(common) > 2 else "tables"


def _table_hint(tables: LiveTables) -> str:
    names = tables.names()
    if not names:
        return f"{tables.address} has no tables; check the address and the region"
    return f"name one of {', '.join(names)}"


def _on_the_wire(item: Any) -> Any:
    """Return a copy of an item in DynamoDB JSON, made of plain dicts, lists and texts.

    botocore returns binary values as bytes; here they are Base64 text, as on the wire.
    """
    return {name: _value(value) for name, value in item.items()}


def _value(value: Any) -> Any:
    [(kind, content)] = value.items()
    if kind == "M":
        return {"M": _on_the_wire(content)}
    if kind in ("B", "BS"):
        several = [
            b64encode(bytes(each)).decode() for each in (content if kind == "BS" else [content])
        ]
        return {kind: several if kind == "BS" else several[0]}
    return {"L": [_value(each) for each in content]} if kind == "L" else {kind: content}


def _from_files(path: Path, name: str | None, sample: int, key: str | None) -> Inference:
    if not path.exists():
        raise ConfigurationError(f"there is no file or folder {path}", hint=_FORMS)
    files = (
        sorted(file for file in path.rglob("*.json*") if "manifest" not in file.name)
        if path.is_dir()
        else [path]
    )
    items = list(islice((item for file in files for item in _lines(file)), sample))
    if not items:
        raise ConfigurationError(
            f"{path} holds no items", hint=f"a design is inferred from items; {_FORMS}"
        )
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
                f"the items have no attribute {missing[0]}",
                hint=f"their attributes are {', '.join(sorted(items[0]))}",
            )
    return infer(items, table=name or path.name.split(".")[0], description=description)


def _lines(file: Path) -> Iterator[Any]:
    """Yield the items in an exported file, in DynamoDB JSON.

    An export to S3 has one item on each line. The output of ``aws dynamodb scan`` has a list.
    """
    try:
        with open_decompressed(file.open("rb"), by_extension(file.suffix)) as stream:
            text = stream.read().decode()
        if text.lstrip().startswith("{") and '"Items"' in text[:10_000]:
            yield from json.loads(text)["Items"]
            return
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield _item(json.loads(line), file, number)
    except (json.JSONDecodeError, UnicodeDecodeError, DataDamaged, KeyError) as error:
        raise ConfigurationError(
            f"{file} is not an export: {error}",
            hint='an export has one {"Item": {...}} in DynamoDB JSON a line, gzipped or not',
        ) from None


def _item(line: Any, file: Path, number: int) -> Any:
    item = line.get("Item", line) if isinstance(line, dict) else None
    typed = isinstance(item, dict) and all(
        isinstance(value, dict) and len(value) == 1 for value in item.values()
    )
    if not typed:
        raise ConfigurationError(
            f"{file}:{number}: the line is not an item in DynamoDB JSON",
            hint='an item looks like {"Item": {"PK": {"S": "USER#1"}}}',
        )
    return item

"""``stator new``: a starter project that runs."""

from __future__ import annotations

import json
import keyword
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from stator.errors import ConfigurationError


class Starter(StrEnum):
    shop = "shop"
    routers = "routers"
    blank = "blank"


def command(
    name: Annotated[
        str, typer.Argument(help="Of the project, of its folder, and of the design in it.")
    ],
    example: Annotated[Starter, typer.Option(help="What to start from.")] = Starter.shop,
    folder: Annotated[
        Path | None, typer.Option(help="Where to make it, if not in a folder of its name.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the files made as JSON.")] = False,
) -> None:
    """Make a starter project that runs: a design, a test, a README.

    Example: stator new shop && cd shop && stator plan
    """
    identifier = name.replace("-", "_")
    fits = identifier.isidentifier() and identifier.isascii() and not keyword.iskeyword(identifier)
    if not fits or len(identifier) < 3:  # DynamoDB has no shorter names of tables
        raise ConfigurationError(
            f"{name} cannot be the name of a design",
            hint="three or more letters, digits, - and _, as in my-shop",
        )
    place = folder or Path(name)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ConfigurationError(
            f"{place} is there already, and not empty", hint="choose another name, or --folder"
        )
    try:
        made = _write(place, identifier, example)
    except OSError as error:
        raise ConfigurationError(
            f"{place} cannot be made: {error.strerror}", hint="choose another --folder"
        ) from None
    if as_json:
        typer.echo(json.dumps({"folder": str(place), "files": made}))
        return
    typer.echo(f"made {place}/ with {', '.join(made)}")
    typer.echo(f"next: cd {place} && stator plan")


def _write(place: Path, identifier: str, example: Starter) -> list[str]:
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for source in sorted(
        resources.files("stator.cli").joinpath("starters", example.value).iterdir(), key=str
    ):
        # The files end in .txt so that no tool takes them for code of this package.
        file = place / source.name.removesuffix(".txt")
        file.write_text(
            source.read_text(encoding="utf-8").replace("NAME", identifier), encoding="utf-8"
        )
        made.append(file.name)
    return made

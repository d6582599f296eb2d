"""``stator new``: a starter project."""

from __future__ import annotations

import json
import keyword
from enum import StrEnum
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.output import say
from stator.errors import ConfigurationError


class Starter(StrEnum):
    shop = "shop"
    routers = "routers"
    blank = "blank"


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of the project, its folder and its design."),
    ],
    example: Annotated[Starter, typer.Option(help="The example to start from.")] = Starter.shop,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder to create. By default, the name of the project.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the created files as JSON.")
    ] = False,
) -> None:
    """Create a starter project that runs: a design, a test and a README.

    Example: stator new shop && cd shop && stator plan
    """
    identifier = name.replace("-", "_")
    fits = identifier.isidentifier() and identifier.isascii() and not keyword.iskeyword(identifier)
    if not fits or len(identifier) < 3:  # DynamoDB requires three characters in table names
        raise ConfigurationError(
            f"{name} is not a valid name for a design",
            hint="use at least three characters: letters, digits, - and _, the first a letter, for "
            "example my-shop; Python keywords are not allowed",
        )
    place = folder or Path(name)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ConfigurationError(
            f"{place} already exists and is not empty",
            hint="choose another name, or another folder with --folder",
        )
    try:
        created = _write(place, identifier, example)
    except OSError as error:
        raise ConfigurationError(
            f"cannot create {place}: {error.strerror}", hint="choose another folder with --folder"
        ) from None
    if as_json:
        typer.echo(json.dumps({"folder": str(place), "files": created}))
        return
    say(f"created {place}/ with {', '.join(created)}")
    say(f"next: cd {place} && stator plan")
    if find_spec("pytest") is None:
        say("the tests of the project need pytest, which is not installed: pip install pytest")


def _write(place: Path, identifier: str, example: Starter) -> list[str]:
    """Write the files of a starter project, with the project's name filled in.

    Returns the names of the files.
    """
    place.mkdir(parents=True, exist_ok=True)
    starters = resources.files("stator.cli").joinpath("starters")
    created = []
    for source in (
        starters.joinpath("README.md.txt"),
        *sorted(starters.joinpath(example.value).iterdir(), key=str),
    ):
        # The files end in .txt so that tools do not take them for code of this package.
        file = place / source.name.removesuffix(".txt")
        file.write_text(
            source.read_text(encoding="utf-8").replace("NAME", identifier), encoding="utf-8"
        )
        created.append(file.name)
    return created

"""Output of commands: lines, tables and errors for people, and generated text in files.

Two rules hold for everything that a command prints for people:

- Colours and bold text appear only on a terminal, and not if NO_COLOR is set. FORCE_COLOR turns
  them on for a pipe, for CI systems that show them.
- Lines wrap between words at the width of the terminal. Output to a pipe or a file is not wrapped,
  so a sentence stays on one line that ``grep`` finds, unless COLUMNS asks for a width.

JSON and generated files are printed by ``typer.echo``, and commands to copy are not wrapped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import typer

from stator.errors import ConfigurationError, StatorError

if TYPE_CHECKING:  # see rich_console
    from rich.console import Console, RenderableType

RISK_COLOURS: Final[dict[str, str]] = {
    "orphans": "red",
    "upcast": "red",
    "default": "red",
    "backfill": "yellow",
    "safe": "green",
}
_UNLIMITED: Final = 10_000
"""The width that rich gets for output that is not wrapped."""
_USUAL: Final = 80
"""Parts that fill the width of a terminal are at least this wide in a pipe."""
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")
_PADDING: Final = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$")


# --- colours and widths ---------------------------------------------------------------------------


def is_coloured(stream: TextIO) -> bool:
    """Whether colours are printed to this stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns_of(stream: TextIO) -> int | None:
    """Return the width at which output to this stream wraps, or None if it does not wrap."""
    if os.environ.get("COLUMNS", "").isdigit():
        return max(1, int(os.environ["COLUMNS"]))
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL
    except OSError:
        return shutil.get_terminal_size().columns


# --- lines ----------------------------------------------------------------------------------------


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Return text with a colour, for ``say``, which removes the colour where none is printed."""
    return typer.style(text, fg=colour, bold=bold or None)


def say(text: str, *, err: bool = False, indent: int = 0, whole: bool = False) -> None:
    """Print text on stdout or stderr, wrapped between words at the width of a terminal.

    Lines after a wrap start with ``indent`` blanks. A word that is longer than the width, such as a
    path, stays whole. With ``whole``, nothing is wrapped: for commands that people copy.
    """
    stream = sys.stderr if err else sys.stdout
    shown = text if whole else wrapped(text, stream, indent=indent)
    typer.echo(shown, err=err, color=is_coloured(stream))


def wrapped(text: str, stream: TextIO, *, indent: int = 0) -> str:
    """Return text with the line ends that ``say`` would print to this stream."""
    columns = columns_of(stream)
    return text if columns is None else "\n".join(_lines(text, columns, indent))


def _lines(text: str, columns: int, indent: int) -> Iterator[str]:
    for line in text.split("\n"):
        row = ""
        for word in re.findall(r" *[^ ]+", line):
            if row.strip() and len(_ESCAPES.sub("", row + word)) > columns:
                yield row
                row = " " * indent + word.lstrip(" ")
            else:
                row += word
        yield row


# --- tables ---------------------------------------------------------------------------------------


def rich_console(*, err: bool = False, markup: bool = False) -> Console:
    """Return a rich console that follows the rules of this module.

    Without ``markup``, ``[x]`` and ``:end:`` are printed as they are.
    """
    from rich.console import Console  # heavy, and most commands do without

    stream = sys.stderr if err else sys.stdout
    return Console(
        stderr=err,
        width=_UNLIMITED if columns_of(stream) is None else None,
        color_system="auto" if is_coloured(stream) else None,
        highlight=False,
        markup=markup,
        emoji=False,
    )


def print_parts(on: Console, *parts: RenderableType) -> None:
    """Print parts one below the other.

    rich pads lines with blanks to their width, and fills the whole width with some tables. A
    terminal does not show that. Elsewhere, lines end without blanks, and where output is not
    wrapped, a part is as wide as its longest line needs.
    """
    if on.is_terminal and on.width != _UNLIMITED:
        on.print(*parts, sep="\n")
        return
    from rich.measure import Measurement

    with on.capture() as captured:
        for part in parts:
            width = None
            if on.width == _UNLIMITED:
                width = max(_USUAL, Measurement.get(on, on.options, part).maximum)
            on.print(part, width=width)
    for line in captured.get().splitlines():
        on.file.write(_PADDING.sub(r"\1", line) + "\n")
    on.file.flush()


# --- errors and files -----------------------------------------------------------------------------


def show_error(error: StatorError, *, as_json: bool) -> None:
    """Print an error and its hint on stderr."""
    if as_json:
        typer.echo(json.dumps({"error": error_facts(error)}), err=True)
        return
    say(styled("error: ", "red", bold=True) + error.message, err=True, indent=len("error: "))
    if error.hint:
        say(styled("hint: ", "cyan", bold=True) + error.hint, err=True, indent=len("hint: "))


def error_facts(error: StatorError) -> dict[str, str]:
    """Return the JSON form of an error, which is the same for every command."""
    facts = {"type": type(error).__name__, "message": error.message}
    return facts | {"hint": error.hint} if error.hint else facts


def write_text(path: Path, text: str) -> None:
    """Write a file. Raises ConfigurationError with the reason if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        hint = (
            "choose another file with --out"
            if path.parent.is_dir()
            else f"create the folder {path.parent} first"
        )
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or error}", hint=hint
        ) from None

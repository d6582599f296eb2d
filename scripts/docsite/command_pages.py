"""The pages of the command-line reference: each command's help, options, examples, exit codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import click
import typer

from docsite.public_api import says_something
from stator.cli.main import build_app
from stator.cli.register import COMMANDS

# Exit codes that every command has.
_EXIT_CODES: Final = (
    ("0", "Success."),
    ("1", "An error, or the finding that the command's page names."),
    ("2", "Wrong usage: an unknown option, a missing argument, options that exclude each other."),
    ("130", "Ctrl-C."),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or option of a command."""

    usage: str
    help: str
    default: str
    is_argument: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command or subcommand, as its help shows it."""

    name: str
    summary: str
    paragraphs: tuple[str, ...]
    examples: tuple[str, ...]
    usage: str
    parameters: tuple[Parameter, ...]
    subcommands: tuple[Command, ...]


def commands() -> list[Command]:
    """Every command of ``stator``, in the order of its help."""
    return [_command(entry.name) for entry in COMMANDS]


def undocumented() -> Iterator[str]:
    """The commands and options whose help is missing or only repeats the name."""
    for top in commands():
        for command in (top, *top.subcommands):
            text = " ".join(command.paragraphs)
            if not says_something(command.name, text):
                yield command.name
            if not command.examples and not command.subcommands:
                yield f"{command.name}: an example"
            for parameter in command.parameters:
                if not says_something(parameter.usage, parameter.help):
                    yield f"{command.name} {parameter.usage}"


def pages() -> dict[str, str]:
    """The Markdown of every page of the command-line reference, by path."""
    made = {"reference/commands/index.md": _index()}
    made |= {f"reference/commands/{each.name}.md": _page(each) for each in commands()}
    return made


def _command(name: str) -> Command:
    app: Any = typer.main.get_command(build_app([name]))
    return _described(app.commands[name], f"stator {name}", None)


def _described(found: Any, path: str, parent: Any) -> Command:
    context = click.Context(found, info_name=path, parent=parent)
    # The help of a command shows its examples at the end; its docstring has both.
    text = inspect.getdoc(found.callback) or found.help or ""
    paragraphs, examples = [], []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        one_line = " ".join(paragraph.replace("\b", "").split())
        if one_line.startswith("Example:"):
            examples.append(one_line.removeprefix("Example:").strip())
        elif one_line:
            paragraphs.append(one_line)
    inner = getattr(found, "commands", {})
    usage = " ".join(found.collect_usage_pieces(context))
    return Command(
        path.removeprefix("stator "),
        paragraphs[0] if paragraphs else "",
        tuple(paragraphs),
        tuple(examples),
        f"{path} {usage}",
        tuple(_parameter(each, context) for each in found.params if not _is_hidden(each)),
        tuple(_described(each, f"{path} {name}", None) for name, each in inner.items()),
    )


def _is_hidden(parameter: Any) -> bool:
    return getattr(parameter, "hidden", False) or parameter.name == "help"


def _parameter(found: Any, context: Any) -> Parameter:
    is_argument = found.param_type_name == "argument"
    if is_argument:
        usage = found.make_metavar(context)
        text = getattr(found, "help", None) or ""
    else:
        shown = found.get_help_record(context)
        usage, text = shown or (found.opts[0], "")
    text, notes = _notes(" ".join(text.split()))
    return Parameter(usage, text, notes, is_argument)


def _notes(text: str) -> tuple[str, str]:
    """A help text, and what stands in brackets at its end: default, range, "required"."""
    match = re.search(r"\s*\[((?:default: |required|\S*x[<>])[^\]]*)\]$", text)
    if match is None:
        return text, ""
    return text[: match.start()], match[1]


def _index() -> str:
    lines = [
        "# Command line",
        "",
        "Each command prints its own help with `--help`. Data goes to stdout, everything else to",
        "stderr, with `error:` and `hint:` lines. With `--json`, an error is one line of JSON.",
        "",
        "On a terminal, lines wrap between words at its width. In a pipe or a file nothing is",
        "wrapped, unless `COLUMNS` is set. Colours appear on a terminal only; `NO_COLOR=1` turns",
        "them off, and `FORCE_COLOR=1` turns them on for CI systems that show them.",
        "",
        "| Command | What it does |",
        "|---|---|",
    ]
    lines += [f"| [`stator {each.name}`]({each.name}.md) | {each.summary} |" for each in COMMANDS]
    lines += ["", "## Exit codes", "", "| Code | Meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in _EXIT_CODES]
    return "\n".join(lines) + "\n"


def _page(command: Command) -> str:
    parts = [f"# `stator {command.name}`", *_body(command)]
    for inner in command.subcommands:
        parts += [f"## `stator {inner.name}`", *_body(inner)]
    parts += ["## Exit codes", _exit_codes(command)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _body(command: Command) -> list[str]:
    parts = [*(_prose(each) for each in command.paragraphs), f"```text\n{command.usage}\n```"]
    if command.examples:
        parts.append("```console\n" + "\n".join(f"$ {each}" for each in command.examples) + "\n```")
    arguments = [each for each in command.parameters if each.is_argument]
    options = [each for each in command.parameters if not each.is_argument]
    if arguments:
        parts.append(_table("Argument", arguments))
    if options:
        parts.append(_table("Option", options))
    return parts


def _table(kind: str, parameters: list[Parameter]) -> str:
    has_notes = any(each.default for each in parameters)
    rows = [f"| {kind} | Meaning |", "|---|---|"]
    if has_notes:
        rows = [f"| {kind} | Meaning | Default |", "|---|---|---|"]
    for each in parameters:
        cells = [f"`{each.usage}`".replace("|", "\\|"), _prose(each.help)]
        if has_notes:
            cells.append(_note(each.default))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _note(text: str) -> str:
    """A default or range as code; "required" as a word."""
    if not text or text.startswith("required"):
        return text
    return f"`{text.removeprefix('default: ')}`"


def _exit_codes(command: Command) -> str:
    """The exit codes, with a pointer to what the command's help says about them."""
    is_special = any("Exit code" in text for text in command.paragraphs)
    rows = ["| Code | Meaning |", "|---|---|"]
    for code, meaning in _EXIT_CODES:
        shown = meaning
        if code == "1":
            shown = "An error, or what the text above says." if is_special else "An error."
        rows.append(f"| {code} | {shown} |")
    return "\n".join(rows)


def _prose(text: str) -> str:
    """Help text as Markdown: options and placeholders as code, angle brackets escaped."""
    text = re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return re.sub(r"([*_|])", r"\\\1", text.replace("<", "&lt;"))

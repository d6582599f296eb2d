"""The list of commands. A command's module is imported only when it is called.

Each module has a function ``command``, whose parameters are the command's options.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEntry:
    name: str
    module: str
    summary: str


COMMANDS = (
    CommandEntry(
        "serve",
        "stator.cli.commands.serve",
        "Serve DynamoDB's API on this machine, in memory or from a folder.",
    ),
    CommandEntry(
        "plan",
        "stator.cli.commands.plan",
        "Show the keys, indexes and requests of a design, with what they cost and why.",
    ),
    CommandEntry(
        "check",
        "stator.cli.commands.check",
        "Check a design for what will go wrong, and against its lock file.",
    ),
    CommandEntry(
        "cost",
        "stator.cli.commands.cost",
        "Say what the design costs a month, by pattern, entity and index.",
    ),
    CommandEntry(
        "docs",
        "stator.cli.commands.docs",
        "Write the design as a document: patterns, entity diagram, example items.",
    ),
    CommandEntry(
        "export-design",
        "stator.cli.commands.export_design",
        "Write the design for another tool: templates, a data model, a script, policies.",
    ),
    CommandEntry(
        "diff", "stator.cli.commands.diff", "The difference between the design and real tables."
    ),
    CommandEntry("infer", "stator.cli.commands.infer", "Propose a design for an existing table."),
    CommandEntry(
        "work", "stator.cli.commands.work", "Call handlers for every change of a design's tables."
    ),
    CommandEntry(
        "top",
        "stator.cli.commands.top",
        "The workers of an app: who reads what, how far behind, and what will be lost.",
    ),
    CommandEntry(
        "parked",
        "stator.cli.commands.parked",
        "Items whose changes could not be handled: show, retry or drop them.",
    ),
    CommandEntry(
        "load",
        "stator.cli.commands.load",
        "Load files into a table: CSV, JSON lines, Parquet, Arrow, from here or S3.",
    ),
    CommandEntry(
        "export",
        "stator.cli.commands.export",
        "Write a table, or an export of AWS's, to files: JSON lines, CSV, Parquet.",
    ),
    CommandEntry(
        "copy", "stator.cli.commands.copy", "Copy a table into another, here or anywhere else."
    ),
    CommandEntry(
        "demo",
        "stator.cli.commands.demo",
        "A fleet of routers, from a design to a recount, with a million tests.",
    ),
    CommandEntry(
        "views",
        "stator.cli.commands.views",
        "The views of an app: list them, or build them anew while they are in use.",
    ),
    CommandEntry(
        "new",
        "stator.cli.commands.new",
        "Make a starter project that runs: a design, a test, a README.",
    ),
)

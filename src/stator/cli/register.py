"""The list of commands in the order ``stator --help`` shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command: its name, the module that holds its ``command`` function, and a one-line summary.

    The module is imported only when the command is called.
    """

    name: str
    module: str
    summary: str


COMMANDS = (
    CommandEntry(
        "new",
        "stator.cli.commands.new",
        "Create a starter project: a design, a test, a README.",
    ),
    CommandEntry(
        "serve",
        "stator.cli.commands.serve",
        "Serve the DynamoDB API, in memory or from a folder.",
    ),
    CommandEntry(
        "verify",
        "stator.cli.commands.verify",
        "Read a data folder and check its parts against each other.",
    ),
    CommandEntry(
        "demo",
        "stator.cli.commands.demo",
        "Simulate a router fleet end to end, with a million tests.",
    ),
    CommandEntry(
        "plan",
        "stator.cli.commands.plan",
        "Show a design's keys, indexes, requests and cost.",
    ),
    CommandEntry(
        "check",
        "stator.cli.commands.check",
        "Check a design, and compare it with its lock file.",
    ),
    CommandEntry(
        "cost",
        "stator.cli.commands.cost",
        "Show what a design costs a month.",
    ),
    CommandEntry(
        "docs",
        "stator.cli.commands.docs",
        "Write a design as a document, in Markdown or HTML.",
    ),
    CommandEntry(
        "export-design",
        "stator.cli.commands.export_design",
        "Write a design for Terraform, CDK, IAM and other tools.",
    ),
    CommandEntry(
        "diff",
        "stator.cli.commands.diff",
        "Compare a design with live tables.",
    ),
    CommandEntry(
        "infer",
        "stator.cli.commands.infer",
        "Propose a design for an existing table.",
    ),
    CommandEntry(
        "load",
        "stator.cli.commands.load",
        "Load files into a table, from disk or S3.",
    ),
    CommandEntry(
        "export",
        "stator.cli.commands.export",
        "Write a table to files, on disk or S3.",
    ),
    CommandEntry(
        "copy",
        "stator.cli.commands.copy",
        "Copy a table into another table, on any DynamoDB endpoint.",
    ),
    CommandEntry(
        "work",
        "stator.cli.commands.work",
        "Run an app's handlers for every change in its tables.",
    ),
    CommandEntry(
        "top",
        "stator.cli.commands.top",
        "Show an app's workers and how far behind they are.",
    ),
    CommandEntry(
        "parked",
        "stator.cli.commands.parked",
        "List, retry or drop items that could not be handled.",
    ),
    CommandEntry(
        "views",
        "stator.cli.commands.views",
        "List an app's views, or rebuild them while they are in use.",
    ),
)

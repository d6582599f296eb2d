"""The commands, in the groups and the order in which ``stator --help`` shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command: its name, its guide, and a one-line summary.

    ``module`` holds the command's function ``command``. It is imported only when the command is
    called. ``guide`` is a page of docs/guides.
    """

    name: str
    module: str
    guide: str
    summary: str


GROUPS: Final[dict[str, tuple[CommandEntry, ...]]] = {
    "Start": (
        CommandEntry(
            "new",
            "stator.cli.commands.new",
            "design",
            "Create a starter project: a design, a test, a README.",
        ),
        CommandEntry(
            "serve",
            "stator.cli.commands.serve",
            "serving",
            "Serve the DynamoDB API, in memory or from a folder.",
        ),
        CommandEntry(
            "demo",
            "stator.cli.commands.demo",
            "streams",
            "Simulate a router fleet end to end, with a million tests.",
        ),
        CommandEntry(
            "doctor",
            "stator.cli.commands.doctor",
            "serving",
            "Check the installation and say what to do.",
        ),
    ),
    "Design": (
        CommandEntry(
            "plan",
            "stator.cli.commands.plan",
            "design",
            "Show a design's keys, indexes, requests and cost.",
        ),
        CommandEntry(
            "check",
            "stator.cli.commands.check",
            "design",
            "Check a design, and compare it with its lock file.",
        ),
        CommandEntry(
            "cost",
            "stator.cli.commands.cost",
            "cost",
            "Show what a design costs a month.",
        ),
        CommandEntry(
            "simulate",
            "stator.cli.commands.simulate",
            "simulate",
            "Show where a design's traffic is throttled, and the cure.",
        ),
        CommandEntry(
            "docs",
            "stator.cli.commands.docs",
            "export",
            "Write a design as a document, in Markdown or HTML.",
        ),
        CommandEntry(
            "export-design",
            "stator.cli.commands.export_design",
            "export",
            "Write a design for Terraform, CDK, IAM and other tools.",
        ),
        CommandEntry(
            "diff",
            "stator.cli.commands.diff",
            "existing-tables",
            "Compare a design with live tables.",
        ),
        CommandEntry(
            "infer",
            "stator.cli.commands.infer",
            "existing-tables",
            "Propose a design for an existing table.",
        ),
    ),
    "Data": (
        CommandEntry(
            "load",
            "stator.cli.commands.load",
            "bulk",
            "Load files into a table, from disk or S3.",
        ),
        CommandEntry(
            "export",
            "stator.cli.commands.export",
            "bulk",
            "Write a table to files, on disk or S3.",
        ),
        CommandEntry(
            "copy",
            "stator.cli.commands.copy",
            "bulk",
            "Copy a table into another table, on any DynamoDB endpoint.",
        ),
    ),
    "Motion": (
        CommandEntry(
            "work",
            "stator.cli.commands.work",
            "streams",
            "Run an app's handlers for every change in its tables.",
        ),
        CommandEntry(
            "ingest",
            "stator.cli.commands.motion.ingest",
            "ingest",
            "Write the records of Kafka topics into tables, each once.",
        ),
        CommandEntry(
            "lambda",
            "stator.cli.commands.motion.lambda_run",
            "streams",
            "Run a Lambda function on the stream of a table.",
        ),
        CommandEntry(
            "views",
            "stator.cli.commands.views",
            "views",
            "List an app's views, or rebuild them while they are in use.",
        ),
    ),
    "Operate": (
        CommandEntry(
            "dashboards",
            "stator.cli.commands.operate.dashboards",
            "observability",
            "Write a design's dashboard for Grafana or CloudWatch.",
        ),
        CommandEntry(
            "alarms",
            "stator.cli.commands.operate.alarms",
            "observability",
            "Write a design's alarms for Prometheus or CloudWatch.",
        ),
        CommandEntry(
            "top",
            "stator.cli.commands.top",
            "streams",
            "Show an app's workers and how far behind they are.",
        ),
        CommandEntry(
            "advise",
            "stator.cli.commands.operate.advise",
            "capacity",
            "Say what capacity to buy for tables, from their history.",
        ),
        CommandEntry(
            "scale",
            "stator.cli.commands.operate.scale",
            "capacity",
            "Show or change the auto scaling of provisioned tables.",
        ),
        CommandEntry(
            "report",
            "stator.cli.commands.operate.report",
            "capacity",
            "Report a month: what was used, what it cost, what to change.",
        ),
        CommandEntry(
            "parked",
            "stator.cli.commands.parked",
            "streams",
            "List, retry or drop items that could not be handled.",
        ),
        CommandEntry(
            "verify",
            "stator.cli.commands.verify",
            "serving",
            "Read a data folder and check its parts against each other.",
        ),
    ),
}
COMMANDS: Final = tuple(entry for entries in GROUPS.values() for entry in entries)

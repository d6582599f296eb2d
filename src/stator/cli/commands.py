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
    CommandEntry("serve", "stator.cli.serve", "Serve DynamoDB's API on this machine, in memory or from a folder."),
)

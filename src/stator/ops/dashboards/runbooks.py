"""The addresses of runbooks: the pages that say what to do about an alarm."""

from __future__ import annotations

from typing import Final

RUNBOOKS: Final = "docs/runbooks"
"""Where the runbooks are in Stator's sources; ``--runbooks`` names a copy on the web."""


def runbook_address(runbook: str, folder: str) -> str:
    """Return the address of a page in ``folder``: a Markdown file, or a page of a site."""
    ending = "" if folder.startswith(("http://", "https://")) else ".md"
    return f"{folder.rstrip('/')}/{runbook}{ending}"

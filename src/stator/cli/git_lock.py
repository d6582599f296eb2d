"""A design's lock file as it stands in another revision of its git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError, DesignError


def plan_at(revision: str, path: Path) -> Plan:
    """Return the plan in the lock file ``path`` as of a git revision.

    Raises ConfigurationError if there is no git repository, no such revision, or no lock file in
    that revision.
    """
    folder, name = path.parent.resolve(), path.name
    if _git(folder, "rev-parse", "--show-toplevel") is None:
        raise ConfigurationError(
            f"{folder} is not in a git repository",
            hint="--diff compares with a committed lock file; run git init and commit one",
        )
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        raise ConfigurationError(
            f"git does not know the revision {revision}",
            hint="name a branch, a tag or a commit, for example --diff main",
        )
    text = _git(folder, "show", f"{commit.strip()}:./{name}")
    if text is None:
        raise ConfigurationError(
            f"revision {revision} has no {name}",
            hint="name a revision that has a committed lock file; `stator plan --write` writes it",
        )
    return _parse(text, f"{name} in {revision}")


def _parse(text: str, where: str) -> Plan:
    try:
        return Plan.from_json(text)
    except DesignError as error:
        raise ConfigurationError(f"{where}: {error.message}", hint=error.hint) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"{where} is not a valid plan: {error}",
            hint="compare with a revision whose lock file is valid",
        ) from None


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if the command fails."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and a revision cannot be an option
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is found on PATH
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError:
        raise ConfigurationError(
            "git is not installed", hint="install git; --diff reads the older lock file from it"
        ) from None
    return done.stdout if done.returncode == 0 else None

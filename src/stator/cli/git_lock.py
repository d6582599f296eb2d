"""The lock file of a design as it stands in another revision of its git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError, DesignError


def plan_at(revision: str, path: Path) -> Plan:
    """The plan frozen in the file ``path`` at a revision. Every reason why there may be none has an error of its own."""
    folder, name = path.parent.resolve(), path.name
    if _git(folder, "rev-parse", "--show-toplevel") is None:
        raise ConfigurationError(
            f"{folder} is not in a git repository",
            hint="--diff compares with a lock file that was committed",
        )
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        raise ConfigurationError(
            f"git knows no revision {revision}",
            hint="give a branch, a tag or a commit, as in --diff main",
        )
    text = _git(folder, "show", f"{commit.strip()}:./{name}")
    if text is None:
        raise ConfigurationError(
            f"there is no {name} in {revision}",
            hint="write it with `stator plan --write`, and commit it",
        )
    return _parse(text, f"{name} in {revision}")


def _parse(text: str, where: str) -> Plan:
    try:
        return Plan.from_json(text)
    except DesignError as error:
        raise ConfigurationError(f"{where}: {error.message}", hint=error.hint) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigurationError(
            f"{where} is not a plan: {error}",
            hint="compare with a revision whose lock file is whole",
        ) from None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, None where it refuses."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and a revision cannot be an option
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git is where PATH says
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except FileNotFoundError:
        raise ConfigurationError(
            "git is not installed", hint="--diff reads the lock file from git"
        ) from None
    return done.stdout if done.returncode == 0 else None

"""``stator check``: lint a design and compare it with its lock file, for people and for CI.

Exit codes: 0 nothing to do; 1 errors, warnings or a lock file that differs; 2 no design to check.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stator.cli.check_markdown import check_markdown
from stator.cli.design_file import DesignFile, load_design_file
from stator.cli.git_lock import plan_at
from stator.cli.options import DesignArgument
from stator.cli.output import RISK_COLOURS, say, show_error, styled
from stator.design.cost.difference import CostDiff, compare_costs
from stator.design.cost.report import cost
from stator.design.lint.check import AT_LEAST_DOLLARS
from stator.design.lint.finding import Finding, Report
from stator.design.lint.location import Location
from stator.design.plan.lock_file import LockChange, read_lock
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError, DesignFileWrong, StatorError
from stator.model.quantities import plural

_COLOURS: dict[str, str] = {"error": "red", "warning": "yellow", "note": "cyan", **RISK_COLOURS}
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


class CheckFormat(StrEnum):
    text = "text"
    markdown = "markdown"


def command(
    target: DesignArgument = None,
    lock: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The lock file. By default, <name>.design.json next to the design.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        CheckFormat,
        typer.Option("--format", help="text, or markdown for one comment on a pull request."),
    ] = CheckFormat.text,
    diff: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="Add what the design costs compared with the lock file of a git revision.",
            show_default=False,
        ),
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print annotations for GitHub Actions.")
    ] = False,
    fixes: Annotated[
        bool | None,
        typer.Option(
            "--fixes/--no-fixes",
            help="Print a suggested fix under each finding. By default, only on a terminal.",
            show_default=False,
        ),
    ] = None,
    at_least: Annotated[
        float,
        typer.Option(
            metavar="DOLLARS",
            min=0,
            help="Leave out findings about money that cost less than this a month.",
        ),
    ] = AT_LEAST_DOLLARS,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON.")
    ] = False,
) -> None:
    """Check a design for future problems and against its lock file.

    Prints one line for each finding, `file:line: CODE message`. The page of each code is
    docs/lint/CODE.md.

    Exit codes: 0 nothing to do; 1 errors, warnings or a lock file that differs; 2 no design to
    check.

    Example: stator check shop.py --github

    Example: stator check --format markdown --diff main
    """
    if github + json_output + (form is CheckFormat.markdown) > 1:
        raise typer.BadParameter("use only one of --github, --json and --format markdown")
    try:
        file = load_design_file(target)
        frozen = _frozen(file, lock)
    except StatorError as error:
        _show_unchecked(error, github=github, as_json=json_output)
        raise typer.Exit(2) from None
    path = lock or file.lock
    report = file.design.check(frozen, at_least=at_least)
    change = None if diff is None or report.plan is None else _cost_change(file, report.plan, diff)
    if json_output:
        found = {
            "design": file.design.name,
            "lock": str(path) if frozen else None,
            **report.to_data(),
            **({} if change is None else {"cost": change.to_data()}),
        }
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif form is CheckFormat.markdown:
        name, is_locked = file.design.name, frozen is not None
        typer.echo(check_markdown(name, report, is_locked=is_locked, change=change), nl=False)
    elif github:
        _annotate(report, path)
    else:
        _print(report, path, with_fixes=sys.stdout.isatty() if fixes is None else fixes)
    if not json_output:
        if change is not None:
            say(change.sentence, err=True)
        _summarize(file, report, path, is_locked=frozen is not None, at_least=at_least)
    if not report.ok:
        raise typer.Exit(1)


def _cost_change(file: DesignFile, plan: Plan, revision: str) -> CostDiff:
    before = plan_at(revision, file.lock)
    return compare_costs(
        cost(before, facts=file.design), cost(plan, facts=file.design), (before, plan)
    )


def _frozen(file: DesignFile, lock: Path | None) -> Plan | None:
    if lock is None:
        return file.frozen
    found = read_lock(lock)
    if found is None:
        raise ConfigurationError(
            f"there is no lock file {lock}",
            hint="`stator plan --write` writes one next to the design",
        )
    return found


# --- for people -----------------------------------------------------------------------------------


def _print(report: Report, path: Path, *, with_fixes: bool) -> None:
    for finding in report.findings:
        where = f"{finding.location}: " if finding.location else ""
        code = styled(finding.code, _COLOURS[finding.severity], bold=True)
        say(f"{where}{code} {finding.message}", indent=4)
        if with_fixes:
            say(f"    {styled('fix:', 'cyan')} {finding.fix}", indent=9)
    for change in report.changes:
        risk = styled(change.risk, _COLOURS[change.risk], bold=True)
        ending = "" if with_fixes else f"; {change.do}"
        lock = f"{_shown(path)}:1: LOCK {risk}"
        say(f"{lock}: {change.subject}: {change.what}{ending}", indent=4)
        if with_fixes:
            say(f"    {styled('do:', 'cyan')} {change.do}", indent=8)


def _summarize(
    file: DesignFile, report: Report, path: Path, *, is_locked: bool, at_least: float
) -> None:
    """Print the result on stderr: stdout holds the findings and nothing else."""
    counts = [_count(report, severity) for severity in ("error", "warning", "note")]
    findings = ", ".join(count for count in counts if count) or "no findings"
    ignored = f" ({len(report.ignored)} ignored)" if report.ignored else ""
    if report.cheap:
        ignored += f" ({len(report.cheap)} below ${at_least:g} a month)"
    ending = styled("ok", "green") if report.ok else styled("failed", "red")
    say(
        f"{ending}: {file.design.name}: {findings}{ignored}; "
        f"{_lock_summary(report, path, is_locked)}",
        err=True,
    )


def _count(report: Report, severity: str) -> str:
    number = sum(finding.severity == severity for finding in report.findings)
    return plural(number, severity) if number else ""


def _lock_summary(report: Report, path: Path, is_locked: bool) -> str:
    if not is_locked:
        return f"there is no {path.name} yet; stator plan --write creates it"
    if report.plan is None:
        return f"not compared with {path.name}, because the design has no complete plan"
    if not report.changes:
        return f"{path.name} agrees"
    risks = [change.risk for change in report.changes]
    counts = ", ".join(f"{risks.count(risk)} {risk}" for risk in dict.fromkeys(risks))
    ending = (
        "accept the changes with stator plan --write"
        if set(risks) == {"safe"}
        else "do that first, then run stator plan --write"
    )
    return f"{path.name} differs ({counts}): {ending}"


def _shown(path: Path) -> str:
    return Location(str(path.resolve()), 1).shown_path


# --- for GitHub -----------------------------------------------------------------------------------


def _annotate(report: Report, path: Path) -> None:
    for finding in report.findings:
        typer.echo(_finding_annotation(finding))
    for change in report.changes:
        typer.echo(_change_annotation(change, path))


def _finding_annotation(finding: Finding) -> str:
    place = (
        f"file={_property(finding.location.shown_path)},line={finding.location.line},"
        if finding.location
        else ""
    )
    title = _property(f"{finding.code} {finding.subject}")
    text = _data(f"{finding.message}. Fix: {finding.fix}")
    return f"::{_GITHUB[finding.severity]} {place}title={title}::{text}"


def _change_annotation(change: LockChange, path: Path) -> str:
    title = _property(f"{change.risk}: {change.subject}")
    text = _data(f"{change.what}; {change.do}")
    return f"::error file={_property(_shown(path))},line=1,title={title}::{text}"


def _show_unchecked(error: StatorError, *, github: bool, as_json: bool) -> None:
    if github:
        place = (
            f"file={_property(error.path)},line={error.line},"
            if isinstance(error, DesignFileWrong)
            else ""
        )
        problem = error.problem if isinstance(error, DesignFileWrong) else error.message
        hint = f". Hint: {error.hint}" if error.hint else ""
        typer.echo(f"::error {place}title=No design to check::{_data(problem + hint)}")
    show_error(error, as_json=as_json)


def _data(text: str) -> str:
    """Escape text for a GitHub Actions workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

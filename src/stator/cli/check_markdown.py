"""The result of a check as Markdown: one comment on a pull request, with what the change costs."""

from __future__ import annotations

from stator.cli.plan_markdown import lock_changes
from stator.design.cost.difference import CostDiff
from stator.design.documents.markdown_parts import code, grid, plain
from stator.design.lint.finding import Finding, Report
from stator.model.quantities import dollars, plural, signed_dollars


def check_markdown(name: str, report: Report, *, is_locked: bool, change: CostDiff | None) -> str:
    """Return the comment. ``change`` is the difference in cost, or None without ``--diff``."""
    counts = [
        plural(number, severity)
        for severity in ("error", "warning", "note")
        if (number := sum(each.severity == severity for each in report.findings))
    ]
    verdict = "passes" if report.ok else "needs work"
    parts = [f"### {plain(name)} {verdict}: {', '.join(counts) or 'no findings'}"]
    if change is not None:
        parts += _cost(change)
    if report.findings:
        header = ("Finding", "Where", "What", "Fix")
        parts.append(grid(header, map(_finding, report.findings)))
    if report.cheap:
        parts.append(f"{plural(len(report.cheap), 'finding')} about less money left out.")
    if report.plan is not None:
        parts.append(lock_changes(report.changes if is_locked else None))
    return "\n\n".join(parts) + "\n"


def _finding(finding: Finding) -> tuple[str, str, str, str]:
    where = code(str(finding.location)) if finding.location else plain(finding.subject)
    return (
        f"**{finding.code}** {finding.severity}",
        where,
        plain(finding.message),
        plain(finding.fix),
    )


def _cost(change: CostDiff) -> list[str]:
    parts = [plain(change.sentence)]
    if change.changes:
        rows = [
            (
                plain(each.cause),
                "" if each.before is None else dollars(each.before),
                "" if each.after is None else dollars(each.after),
                signed_dollars(each.dollars),
            )
            for each in change.changes
        ]
        whole = (dollars(change.before.total), dollars(change.after.total))
        rows.append(("**total**", *whole, f"**{signed_dollars(change.dollars)}**"))
        parts.append(grid(("Cost a month", "Before", "After", "Change"), rows))
    return parts

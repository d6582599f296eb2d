"""Checks a design.

The check plans the design, runs every rule on the plan, drops ignored findings, and compares the
plan with the lock file.
"""

from __future__ import annotations

from typing import Final

from stator.design.cost.billed_plan import billed_plan
from stator.design.declaration import Declaration
from stator.design.lint.catalogue import CATALOGUE, CODES
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding, Report
from stator.design.lint.refused_patterns import plan_without_refused
from stator.design.plan.lock_file import compare
from stator.design.plan.plan import Plan
from stator.errors import ConfigurationError

AT_LEAST_DOLLARS: Final = 5.0
_SEVERITIES = ("error", "warning", "note")


def check(
    design: Declaration, lock: Plan | None = None, *, at_least: float = AT_LEAST_DOLLARS
) -> Report:
    """Check a design.

    ``lock`` is the plan in a lock file. If it is passed, planning starts from it, and the report
    also says how the new plan differs from it. Findings about money that cost less than
    ``at_least`` dollars a month are only listed in ``Report.cheap``.
    """
    if not at_least >= 0:
        raise ConfigurationError(
            f"at_least={at_least} is not a sum of dollars", hint="use 0 to see every finding"
        )
    planned, plan, found = plan_without_refused(design, lock)
    refused = bool(found)
    if plan is not None:
        facts = Facts(planned, plan)
        for entry in CATALOGUE:
            if entry.rule is not None:
                found += entry.rule(facts)
    shown = [
        finding for finding in found if not any(_silences(each, finding) for each in design.ignore)
    ]
    ignored = [finding for finding in found if finding not in shown]
    cheap = [each for each in shown if _is_cheap(each, at_least)]
    shown = [each for each in shown if each not in cheap]
    shown += _without_effect(design, found)
    complete = None if refused or plan is None else billed_plan(plan, planned)
    changes = () if lock is None or complete is None else tuple(compare(lock, complete))
    return Report(
        tuple(sorted(shown, key=_rank)),
        changes,
        tuple(sorted(ignored, key=_rank)),
        complete,
        tuple(sorted(cheap, key=_rank)),
    )


def _is_cheap(finding: Finding, at_least: float) -> bool:
    return (
        finding.severity != "error" and finding.dollars is not None and finding.dollars < at_least
    )


def _silences(entry: str, finding: Finding) -> bool:
    """Whether an ignore entry silences a finding.

    ``ST304`` silences every finding with the code; ``ST304:Post.likes`` only the one about that
    field.
    """
    code, _, subject = entry.partition(":")
    return code == finding.code and subject in ("", finding.subject)


def _without_effect(design: Declaration, found: list[Finding]) -> list[Finding]:
    findings = []
    for entry in design.ignore:
        if any(_silences(entry, finding) for finding in found):
            continue
        code = entry.partition(":")[0]
        known = code in CODES
        findings.append(
            Finding(
                "ST004",
                "note" if known else "warning",
                "design",
                design.name,
                f"ignore= has {entry!r}, "
                + ("but no finding matches it" if known else "which is not the code of a rule"),
                "remove the entry"
                if known
                else "write a code such as ST104, or ST104:Order for one finding",
            )
        )
    return findings


def _rank(finding: Finding) -> tuple[object, ...]:
    where = (str(finding.location.path), finding.location.line) if finding.location else ("", 0)
    return (
        _SEVERITIES.index(finding.severity),
        *where,
        finding.code,
        finding.subject,
        finding.message,
    )

"""Checking a design: plan it, run every rule, drop what is ignored, compare with the lock."""

from __future__ import annotations

from stator.design.declaration import Declaration
from stator.design.lint.catalogue import CATALOGUE, CODES
from stator.design.lint.facts import Facts
from stator.design.lint.finding import Finding, Report
from stator.design.lint.refusals import plan_what_can_be
from stator.design.plan.lock import compare
from stator.design.plan.plan import Plan

_SEVERITIES = ("error", "warning", "note")


def check(design: Declaration, lock: Plan | None = None) -> Report:
    """Everything there is to say about a design. With ``lock``, also how it differs from the plan frozen there."""
    planned, plan, found = plan_what_can_be(design, lock)
    refused = bool(found)
    if plan is not None:
        facts = Facts(planned, plan)
        for entry in CATALOGUE:
            if entry.rule is not None:
                found += entry.rule(facts)
    kept = [
        finding for finding in found if not any(_silences(each, finding) for each in design.ignore)
    ]
    ignored = [finding for finding in found if finding not in kept]
    kept += _idle(design, found)
    changes = () if lock is None or plan is None or refused else tuple(compare(lock, plan))
    whole = None if refused else plan
    return Report(tuple(sorted(kept, key=_rank)), changes, tuple(sorted(ignored, key=_rank)), whole)


def _silences(entry: str, finding: Finding) -> bool:
    """``ST304`` silences the code; ``ST304:Post.likes`` only what it says of that."""
    code, _, subject = entry.partition(":")
    return code == finding.code and subject in ("", finding.subject)


def _idle(design: Declaration, found: list[Finding]) -> list[Finding]:
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
                f"ignore has {entry!r}, "
                + ("and there is nothing to ignore" if known else "which is no code of a rule"),
                "remove it"
                if known
                else "codes look like ST104, or ST104:Order to ignore one finding",
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

"""A finding of lint, and the report of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from stator.design.lint.location import Location
from stator.design.plan.lock_file import LockChange
from stator.design.plan.plan import Plan

Severity = Literal["error", "warning", "note"]
"""Errors and warnings fail a check. A note only says what something costs."""
SubjectKind = Literal["design", "table", "index", "entity", "field", "pattern"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a design.

    ``subject`` names the object: ``Order``, ``Order.status``, ``orders_of_user``, ``GSI1``.
    """

    code: str
    severity: Severity
    kind: SubjectKind
    subject: str
    message: str
    fix: str
    location: Location | None = None
    dollars: float | None = None
    """What the problem costs a month, if the finding is about money and nothing else."""

    def __str__(self) -> str:
        where = "" if self.location is None else f"{self.location}: "
        return f"{where}{self.code} {self.message}"

    @property
    def fails(self) -> bool:
        return self.severity != "note"

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity,
            self.kind: self.subject,
            "message": self.message,
            "fix": self.fix,
        }
        if self.dollars is not None:
            data["dollars_per_month"] = round(self.dollars, 2)
        if self.location is not None:
            data |= {"file": self.location.shown_path, "line": self.location.line}
        return data


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check.

    ``changes`` are the differences from the lock file. ``cheap`` are the findings that cost less
    than the check was asked to report. ``plan`` is None if the planner refused any
    part of the design.
    """

    findings: tuple[Finding, ...]
    changes: tuple[LockChange, ...] = ()
    ignored: tuple[Finding, ...] = ()
    plan: Plan | None = field(default=None, repr=False)
    cheap: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.changes and not any(finding.fails for finding in self.findings)

    def codes(self) -> set[str]:
        return {finding.code for finding in self.findings}

    def to_data(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "findings": [finding.to_data() for finding in self.findings],
            "changes": [
                {"risk": each.risk, "subject": each.subject, "what": each.what, "do": each.do}
                for each in self.changes
            ],
            "ignored": [{"code": each.code, each.kind: each.subject} for each in self.ignored],
            "cheap": [{"code": each.code, each.kind: each.subject} for each in self.cheap],
        }

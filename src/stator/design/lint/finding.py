"""A finding of lint, and the report of a check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from stator.design.lint.location import Location
from stator.design.plan.html_table import html_table
from stator.design.plan.lock_file import LockChange
from stator.design.plan.plan import Plan
from stator.model.quantities import plural

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
        """Whether the finding makes ``stator check`` fail: errors and warnings do."""
        return self.severity != "note"

    def to_data(self) -> dict[str, Any]:
        """Return the finding as JSON data."""
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

    ``changes`` are the differences from the lock file. ``cheap`` are the findings that the check
    left out because they cost less than ``at_least`` dollars. ``plan`` is None if the planner
    refused any part of the design.
    """

    findings: tuple[Finding, ...]
    changes: tuple[LockChange, ...] = ()
    ignored: tuple[Finding, ...] = ()
    plan: Plan | None = field(default=None, repr=False)
    cheap: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        """Return the findings for a notebook, and the differences from the lock file."""
        shown = [
            *((each.risk, "lock", each.subject, each.what, each.do) for each in self.changes),
            *(
                (each.severity, each.code, each.subject, each.message, each.fix)
                for each in self.findings
            ),
        ]
        return html_table(
            f"{'ok' if self.ok else 'not ok'}: {plural(len(self.findings), 'finding')}, "
            f"{plural(len(self.changes), 'change')} of the lock file, {len(self.ignored)} ignored",
            ("severity", "code", "subject", "message", "what to do"),
            shown,
            longest=None,
        )

    @property
    def ok(self) -> bool:
        """Whether nothing fails: no error, no warning, no difference from the lock file."""
        return not self.changes and not any(finding.fails for finding in self.findings)

    def codes(self) -> set[str]:
        """Return the codes of all findings that were not ignored."""
        return {finding.code for finding in self.findings}

    def to_data(self) -> dict[str, Any]:
        """Return the findings and the lock file's changes as JSON data."""
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

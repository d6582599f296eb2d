"""The planner's refusals as findings: all of them at once, not only the first."""

from __future__ import annotations

import re
from typing import Any

from stator.design.declaration import Declaration
from stator.design.entities.entity import info
from stator.design.lint.finding import Finding
from stator.design.lint.location import Location, class_location, function_location
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.write_pattern import WritePattern
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan
from stator.errors import DesignError, PatternRefused, ScanNeeded

_TOO_MANY = re.compile(r" needs \d+ global and \d+ local indexes on one table")


def plan_without_refused(
    design: Declaration, lock: Plan | None
) -> tuple[Declaration, Plan | None, list[Finding]]:
    """Plan a design without the read patterns that the planner refuses.

    Planning starts from ``lock``, the plan in the lock file. Returns the design without the refused
    patterns, its plan, and a finding for each refusal. The plan is None if the planner refuses
    anything but a read pattern.
    """
    findings: list[Finding] = []
    while True:
        try:
            return design, plan(design, lock), findings
        except DesignError as error:
            findings.append(_refusal(error, design))
            smaller = design.without(findings[-1].subject)
            if len(smaller.reads) == len(design.reads):
                return design, None, findings
            design = smaller


def _refusal(error: DesignError, design: Declaration) -> Finding:
    where, problem = locate(error, design)
    fix = error.hint or "change the entity or pattern that the message names"
    pattern = _pattern_of(error, design)
    if pattern is None:
        code = "ST301" if _TOO_MANY.search(problem) else "ST001"
        return Finding(code, "error", "design", design.name, problem, fix, where)
    if isinstance(error, ScanNeeded):
        code = "ST002"
    else:
        code = "ST402" if isinstance(pattern, Pattern) and pattern.traffic.consistent else "ST003"
    return Finding(code, "error", "pattern", pattern.name, problem, fix, where)


def locate(error: DesignError, design: Declaration) -> tuple[Location | None, str]:
    """Return the location of a planner error in the user's file, and its message.

    The location is removed from the message. The location is None if it cannot be found.
    """
    pattern = _pattern_of(error, design)
    if pattern is not None:
        return function_location(pattern.function), error.message.removeprefix(f"{pattern.where}: ")
    return _entity_location(error.message, design), error.message


def _pattern_of(error: DesignError, design: Declaration) -> Pattern[..., Any] | WritePattern | None:
    """Return the pattern that an error is about, or None if it is about no pattern.

    The error names the pattern, or its message starts with the pattern's file and line.
    """
    named = error.pattern if isinstance(error, PatternRefused) else None
    patterns: list[Pattern[..., Any] | WritePattern] = [*design.reads, *design.write_patterns]
    return next(
        (
            each
            for each in patterns
            if each.name == named or error.message.startswith(f"{each.where}: ")
        ),
        None,
    )


def _entity_location(problem: str, design: Declaration) -> Location | None:
    """Return the location of the entity or field that the message starts with.

    Returns None if the message starts with another word, or if the source cannot be found.
    """
    for entity in design.entities:
        begun = re.match(rf"{re.escape(info(entity).name)}\b(?:\.(\w+))?", problem)
        if begun:
            return class_location(entity, begun[1])
    return None

"""A plan as Markdown, for a comment on a pull request: what it costs, and what changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stator.cli.plan_view import operations
from stator.design.documents.markdown_parts import code, grid, plain
from stator.design.plan.lock_file import LockChange
from stator.design.plan.plan import PatternPlan, Plan
from stator.model.quantities import about_dollars, amount


def plan_markdown(plan: Plan, changes: Sequence[LockChange] | None) -> str:
    """Return a plan as Markdown.

    ``changes`` are the differences from the lock file; None means that there is no lock file.
    """
    parts = [
        f"### Plan of {plan.name}: about {about_dollars(plan.dollars_per_month)} a month",
        lock_changes(changes),
        grid(
            ("Pattern", "Request", "Key", "A second", "Units", "A month", "Next best"),
            (_pattern(each) for each in plan.patterns),
        ),
        grid(
            ("Entity", "Attribute", "Index", "Key"),
            (
                (entity.name, code(key.name), key.index or "", _key(key.template, key.condition))
                for entity in plan.entities
                for key in entity.keys
            ),
        ),
    ]
    for title, lines in (("Warnings", plan.warnings), ("Guesses", plan.guesses)):
        if lines:
            parts.append(f"**{title}**\n\n" + "\n".join(f"- {plain(str(each))}" for each in lines))
    return "\n\n".join(parts) + "\n"


def _pattern(pattern: PatternPlan) -> Iterable[str]:
    return (
        f"**{pattern.name}**",
        plain(operations(pattern)),
        code(pattern.key_condition) if pattern.kind == "read" else "",
        amount(pattern.requests_per_second),
        amount(pattern.units_per_call),
        about_dollars(pattern.dollars_per_month),
        plain(pattern.runner_up),
    )


def _key(template: object, condition: str) -> str:
    return code(str(template)) + (f" if {plain(condition)}" if condition else "")


def lock_changes(changes: Sequence[LockChange] | None) -> str:
    """Return the differences from the lock file. None means that there is no lock file."""
    if changes is None:
        return "There is no lock file yet."
    if not changes:
        return "No changes since the lock file."
    rows = ((each.risk, each.subject, each.what, each.do) for each in changes)
    return grid(("Change", "Of", "What", "What to do"), (map(plain, row) for row in rows))

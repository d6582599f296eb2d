"""IAM: for each pattern a statement with the actions it takes, on the tables and indexes it takes them on, and nothing else.

A Query of an index is authorised on the index's ARN alone; reading the items behind an index that holds only keys is a BatchGetItem of
the table. There is no action for a transaction: each write in it is authorised as what it is.

Where the partition key begins with a constant, ``dynamodb:LeadingKeys`` keeps the statement to it: ``USER#*``. ``ForAllValues`` is true
of a request that has no such key, so a ``Null`` test goes with it where the key is certain to be there, which is in requests for a table by
key. In transactions and queries of an index the Developer Guide does not promise the key; there the test stands alone, and whoever
has no leading key is not refused for it. A key that is a number, or made of several attributes, gets no test. Entities that share a
prefix are not kept apart by it: IAM sees partition keys, not sort keys.

A write that changes a unique field reads the item first and is a transaction with the field's guard, which lies in the table beside those of the
plan (``own_table``): its statements are here where the design is, for plans do not tell which fields are unique. What pattern objects, tokens,
workers and views do in that table is of the program, and one statement allows all of it, where it is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from stator.design.declaration import Declaration
from stator.design.export.source import Exported, ExportSource, camel
from stator.design.plan.own_table import GuardWrites, guard_prefix, guard_writes, own_table
from stator.design.plan.plan import EntityPlan, KeyConditionPart, PatternPlan, Plan, Step
from stator.design.plan.templates import Template
from stator.errors import DesignError

_MANAGED_POLICY: Final = 6144
"""Characters, white space not counted, that a managed policy may have."""

Statement = dict[str, Any]
Guards = dict[int, GuardWrites]
"""By the place of the change in its pattern."""


_PATTERN_OBJECTS: Final = (
    "GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem",
)  # fmt: skip


def export(source: ExportSource) -> Exported:
    return policy(source.plan, design=source.design, with_patterns=source.with_patterns)


def policy(
    plan: Plan,
    patterns: Iterable[str] | None = None,
    *,
    design: Declaration | None = None,
    with_patterns: bool = False,
    region: str = "*",
    account: str = "*",
    partition: str = "aws",
) -> Exported:
    """One policy for these patterns; for all of them, unless they are named. ``design`` tells which fields are unique, and so what else
    writes need; ``with_patterns`` allows all that is done with items in the table beside those of the plan."""
    wanted = [each.name for each in plan.patterns] if patterns is None else list(patterns)
    unknown = [name for name in wanted if name not in {each.name for each in plan.patterns}]
    if unknown:
        known = ", ".join(each.name for each in plan.patterns)
        raise DesignError(
            f"{plan.name} has no pattern {', '.join(unknown)}", hint=f"it has {known}"
        )
    arns = f"arn:{partition}:dynamodb:{region}:{account}:table/"
    guards = {} if design is None else _guards(design)
    statements = [
        each
        for name in wanted
        for each in _statements(plan.pattern(name), plan, arns, guards.get(name, {}))
    ]
    if with_patterns:
        actions = [f"dynamodb:{action}" for action in _PATTERN_OBJECTS]
        resource = f"{arns}{own_table(plan.name).name}"
        statements.append(
            {"Sid": "StatorPatterns", "Effect": "Allow", "Action": actions, "Resource": resource}
        )
    document = {"Version": "2012-10-17", "Statement": statements}
    text = json.dumps(document, indent=2) + "\n"
    size = len("".join(text.split()))
    long = f"{size:,} characters are more than a managed policy may have ({_MANAGED_POLICY:,}): export some patterns at a time"
    return Exported(text, (long,) if size > _MANAGED_POLICY else ())


def _guards(design: Declaration) -> dict[str, Guards]:
    return {
        pattern.name: {
            at: found
            for at, change in enumerate(pattern.trace())
            if (found := guard_writes(change.entity, change.kind, change.fields)) is not None
        }
        for pattern in design.write_patterns
    }


def _statements(pattern: PatternPlan, plan: Plan, arns: str, guards: Guards) -> list[Statement]:
    """Statements that differ only in their action become one."""
    merged: dict[str, Statement] = {}
    for at, step in enumerate(pattern.steps):
        guard = guards.get(at)
        needs = [
            *_needs(step, plan, pattern.transaction or guard is not None),
            *_guard_needs(step, plan, guard),
        ]
        for action, resource, condition in needs:
            key = json.dumps([resource, condition])
            each = merged.setdefault(
                key, {"Effect": "Allow", "Action": [], "Resource": f"{arns}{resource}"}
            )
            if f"dynamodb:{action}" not in each["Action"]:
                each["Action"].append(f"dynamodb:{action}")
            if condition:
                each["Condition"] = condition
    name = camel(pattern.name)
    sids = [name if at == 1 else f"{name}{at}" for at in range(1, len(merged) + 1)]
    return [{"Sid": sid, **each} for sid, each in zip(sids, merged.values())]


def _needs(step: Step, plan: Plan, transaction: bool) -> Iterable[tuple[str, str, dict[str, Any]]]:
    """Action, resource and condition of each request that a step makes."""
    table = step.table
    if step.operation in ("PutItem", "UpdateItem", "DeleteItem"):
        entity = plan.entity(step.entities[0])
        yield step.operation, table, _leading(_own_partition(entity, plan), certain=not transaction)
        if step.operation != "PutItem":
            for index in plan.table(table).indexes:
                if f"writes to {entity.name}" in index.patterns:  # its key is looked up there first
                    yield "Query", f"{table}/index/{index.name}", {}
        return
    where = table if step.index is None else f"{table}/index/{step.index}"
    for tests in step.conditions:
        yield (
            step.operation,
            where,
            _leading(_asked_partition(step, tests, plan), certain=step.index is None),
        )
    if step.fetch:
        found = [_own_partition(plan.entity(name), plan) for name in step.entities]
        yield "BatchGetItem", table, _leading(found[0] if len(found) == 1 else None, certain=True)


def _guard_needs(
    step: Step, plan: Plan, guard: GuardWrites | None
) -> Iterable[tuple[str, str, dict[str, Any]]]:
    if guard is None:
        return
    entity = plan.entity(step.entities[0])
    yield "GetItem", step.table, _leading(_own_partition(entity, plan), certain=True)
    leading = [f"{guard_prefix(_literal(entity.name), _literal(field))}*" for field in guard.fields]
    for operation in guard.operations:
        yield (
            operation,
            own_table(plan.name).name,
            {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": leading}},
        )


def _own_partition(entity: EntityPlan, plan: Plan) -> Template | None:
    partition = plan.table(entity.table).partition
    return next(
        (key.template for key in entity.keys if key.index is None and key.name == partition), None
    )


def _asked_partition(
    step: Step, asked: tuple[KeyConditionPart, ...], plan: Plan
) -> Template | None:
    """The one string that the request is for; None where there is none, or several attributes make it up."""
    table = plan.table(step.table)
    names: tuple[str, ...] = (table.partition,)
    if step.index is not None:
        names = next(index.partition for index in table.indexes if index.name == step.index)
    tests = [test for test in asked if test.attribute in names and test.operator == "="]
    return tests[0].bounds[0] if len(tests) == len(names) == 1 else None


def _leading(template: Template | None, *, certain: bool) -> dict[str, Any]:
    pattern = None if template is None else _pattern(template)
    if pattern is None:
        return {}
    condition: dict[str, Any] = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [pattern]}}
    return condition | ({"Null": {"dynamodb:LeadingKeys": "false"}} if certain else {})


def _pattern(template: Template) -> str | None:
    """The constant beginning of a key and a star, or the key itself where all of it is constant."""
    if template.native:
        return None
    texts = []
    for part in template.parts:
        if part.kind != "text":
            break
        texts.append(part.value)
    prefix = _literal("".join(texts))
    if not prefix:
        return None
    return prefix if len(texts) == len(template.parts) else f"{prefix}*"


def _literal(text: str) -> str:
    """What IAM would take for a wildcard or a variable stands for itself."""
    return re.sub(r"[*?$]", lambda found: f"${{{found[0]}}}", text)

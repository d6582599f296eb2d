"""IAM policies: for each pattern, exactly the actions it needs on the tables and indexes it uses.

A Query of an index is authorised on the ARN of the index alone. Reading items through an index
that holds only keys is a BatchGetItem of the table. There is no action for a transaction: each
write in it is authorised by its own action.

If a partition key starts with a constant, a condition on ``dynamodb:LeadingKeys`` restricts the
statement to keys such as ``USER#*``. The condition uses ``ForAllValues``, which is also true if
``LeadingKeys`` is absent from the request. ``LeadingKeys`` is always present in requests to a table
by key, so the statements for such requests also have a ``Null`` test. The ``Null`` test refuses
requests without ``LeadingKeys``. For transactions and queries of an index, the Developer Guide does
not say that ``LeadingKeys`` is present, so their statements have no ``Null`` test. A key that is a
number, or that consists of several attributes, gets no condition. A condition does not separate
entities that share a prefix: IAM sees partition keys, not sort keys.

A guard is an item that reserves a unique value. Guards are in the design's own table,
``<design>-stator``. A write that changes a unique field first reads the item, and then writes the
item and the guard in one transaction. A plan does not say which fields are unique, so statements
for guards need the design. Pattern objects, transaction tokens, workers and views also keep items
in that table. With ``with_patterns``, one statement allows every action on these items.

Loads with a condition and table sinks use PartiQL statements, called guarded writes, which belong
to no pattern. With ``with_guarded_writes``, one statement allows them on every table. It covers the
PartiQL statements, the strong reads after a refusal, and the single writes that replace a
statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from stator.design.declaration import Declaration
from stator.design.export.source import Exported, ExportSource, camel
from stator.design.plan.guard_text import guard_prefix
from stator.design.plan.own_table import GuardWrites, guard_writes, own_table
from stator.design.plan.plan import EntityPlan, KeyConditionPart, PatternPlan, Plan, Step
from stator.design.plan.templates import Template
from stator.errors import DesignError

_MANAGED_POLICY: Final = 6144
"""Maximum characters of a managed policy, not counting white space."""

Statement = dict[str, Any]
Guards = dict[int, GuardWrites]
"""Guard writes by the position of the write in its pattern."""


_PATTERN_OBJECTS: Final = (
    "GetItem",
    "BatchGetItem",
    "Query",
    "Scan",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "BatchWriteItem",
    "ConditionCheckItem",
)
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html
_GUARDED_WRITES: Final = (
    "PartiQLInsert",
    "PartiQLUpdate",
    "PartiQLDelete",
    "BatchGetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
)


def export(source: ExportSource) -> Exported:
    return policy(source.plan, design=source.design, with_patterns=source.with_patterns)


def policy(
    plan: Plan,
    patterns: Iterable[str] | None = None,
    *,
    design: Declaration | None = None,
    with_patterns: bool = False,
    with_guarded_writes: bool = False,
    region: str = "*",
    account: str = "*",
    partition: str = "aws",
) -> Exported:
    """Return one policy for the named patterns, by default for all patterns.

    ``design`` says which fields are unique, and so which guards the writes need. ``with_patterns``
    allows every action on items in the design's additional table. ``with_guarded_writes`` allows
    loads with a condition, and sinks that write to the design's tables. ``partition`` is AWS's name
    for a set of regions, such as ``aws`` or ``aws-cn``.
    """
    names = [each.name for each in plan.patterns] if patterns is None else list(patterns)
    unknown = [name for name in names if name not in {each.name for each in plan.patterns}]
    if unknown:
        known = ", ".join(each.name for each in plan.patterns)
        raise DesignError(
            f"design {plan.name} has no pattern {', '.join(unknown)}", hint=f"name one of {known}"
        )
    arns = f"arn:{partition}:dynamodb:{region}:{account}:table/"
    guards = {} if design is None else _guards(design, plan)
    statements = [
        each
        for name in names
        for each in _statements(plan.pattern(name), plan, arns, guards.get(name, {}))
    ]
    if with_patterns:
        actions = [f"dynamodb:{action}" for action in _PATTERN_OBJECTS]
        resource = f"{arns}{own_table(plan.name).name}"
        statements.append(
            {"Sid": "StatorPatterns", "Effect": "Allow", "Action": actions, "Resource": resource}
        )
    if with_guarded_writes:
        statements.append(
            {
                "Sid": "StatorGuardedWrites",
                "Effect": "Allow",
                "Action": [f"dynamodb:{action}" for action in _GUARDED_WRITES],
                "Resource": [f"{arns}{table.name}" for table in plan.tables],
            }
        )
    document = {"Version": "2012-10-17", "Statement": statements}
    text = json.dumps(document, indent=2) + "\n"
    size = len("".join(text.split()))
    note = (
        f"the policy has {size:,} characters and a managed policy may have {_MANAGED_POLICY:,}; "
        f"export fewer patterns at a time with --pattern"
    )
    return Exported(text, (note,) if size > _MANAGED_POLICY else ())


def _guards(design: Declaration, plan: Plan) -> dict[str, Guards]:
    return {
        pattern.name: {
            at: found
            for at, change in enumerate(pattern.trace())
            if (found := guard_writes(change.entity, plan, change.kind, change.fields)) is not None
        }
        for pattern in design.write_patterns
    }


def _statements(pattern: PatternPlan, plan: Plan, arns: str, guards: Guards) -> list[Statement]:
    """Return the IAM statements that a pattern needs.

    Statements that differ only in their action are merged. ``arns`` is the start of every table's
    ARN. ``guards`` has the guard writes of the steps, by step number.
    """
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
    """Yield an IAM action, a table or index, and a condition for each request of a step.

    ``transaction`` means that the step runs in a transaction. Its condition then has no ``Null``
    test, because the Developer Guide does not promise ``LeadingKeys`` for transactions.
    """
    table = step.table
    if step.operation in ("PutItem", "UpdateItem", "DeleteItem"):
        entity = plan.entity(step.entities[0])
        yield step.operation, table, _leading(_own_partition(entity, plan), certain=not transaction)
        if step.operation != "PutItem":
            for index in plan.table(table).indexes:
                if f"writes to {entity.name}" in index.patterns:  # its key is looked up there first
                    yield "Query", f"{table}/index/{index.name}", {}
        return
    if step.guard is not None:
        leading = [f"{_literal(step.guard.prefix)}*"]
        yield (
            "GetItem",
            step.guard.table,
            {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": leading}},
        )
    where = table if step.index is None else f"{table}/index/{step.index}"
    for tests in () if step.guard is not None else step.conditions:
        yield (
            step.operation,
            where,
            _leading(_requested_partition(step, tests, plan), certain=step.index is None),
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


def _requested_partition(
    step: Step, condition: tuple[KeyConditionPart, ...], plan: Plan
) -> Template | None:
    """Return the template of the requested partition key.

    Returns None if the request has no partition key, or if the key consists of several attributes.
    """
    table = plan.table(step.table)
    names: tuple[str, ...] = (table.partition,)
    if step.index is not None:
        names = next(index.partition for index in table.indexes if index.name == step.index)
    tests = [test for test in condition if test.attribute in names and test.operator == "="]
    return tests[0].bounds[0] if len(tests) == len(names) == 1 else None


def _leading(template: Template | None, *, certain: bool) -> dict[str, Any]:
    pattern = None if template is None else _pattern(template)
    if pattern is None:
        return {}
    condition: dict[str, Any] = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [pattern]}}
    return condition | ({"Null": {"dynamodb:LeadingKeys": "false"}} if certain else {})


def _pattern(template: Template) -> str | None:
    """Return the LeadingKeys pattern for a partition key, or None if no constant starts the key.

    The pattern is the constant start of the key and a star, or the whole key if it is constant.
    """
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
    """Escape IAM's wildcards and variable markers in a text."""
    return re.sub(r"[*?$]", lambda found: f"${{{found[0]}}}", text)

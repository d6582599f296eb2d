"""The ProjectionExpression of a read that returns only some fields of its items."""

from __future__ import annotations

from stator.design.entities.entity_versions import VERSION_ATTRIBUTE
from stator.design.plan.plan import IndexPlan, Plan, Request, Step, TablePlan


def projected(plan: Plan, step: Step, request: Request, fields: tuple[str, ...]) -> Request:
    """Return the request with a ProjectionExpression for these fields.

    The projection also has the attributes that readers always need: the keys (for cursors and
    merging), the attribute that orders the step, the discriminator, the expiry time and the
    entity version. If the step reads only keys from an index and then fetches whole items, the
    request is returned unchanged.
    """
    if step.fetch:
        return request
    table = plan.table(step.table)
    index = next((each for each in table.indexes if each.name == step.index), None)
    keys = (table.partition, table.sort, *_keys(index), step.order, *step.then, table.ttl)
    types = (plan.entity(name).discriminator for name in step.entities)
    wanted = dict.fromkeys(
        name for name in (*fields, *keys, *types, VERSION_ATTRIBUTE) if name is not None
    )
    names = {f"#o{at}": name for at, name in enumerate(wanted) if _holds(index, table, name)}
    return request | {
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": request.get("ExpressionAttributeNames", {}) | names,
    }


def _keys(index: IndexPlan | None) -> tuple[str, ...]:
    return () if index is None else (*index.partition, *index.sort)


def _holds(index: IndexPlan | None, table: TablePlan, name: str) -> bool:
    """Whether the index holds the attribute ``name``. True if there is no index.

    DynamoDB rejects a projection to attributes that an index lacks.
    """
    if index is None or index.projection == "ALL":
        return True
    return name in (*index.included, *_keys(index), table.partition, table.sort)

"""The ProjectionExpression of a read that returns only some fields of its items."""

from __future__ import annotations

from stator.design.plan.plan import IndexPlan, Plan, Request, Step, TablePlan


def projected(plan: Plan, step: Step, request: Request, fields: tuple[str, ...]) -> Request:
    """Return the request with a projection to these fields, and what readers need besides them.

    Readers need the keys, for cursors and for merging, the attribute that the step is ordered by,
    the discriminator, and the time of expiry. A request that reads an index to find whole items
    stays as it is, because the fields are not in the index.
    """
    if step.fetch:
        return request
    table = plan.table(step.table)
    index = next((each for each in table.indexes if each.name == step.index), None)
    keys = (table.partition, table.sort, *_keys(index), step.order, table.ttl)
    types = (plan.entity(name).discriminator for name in step.entities)
    wanted = dict.fromkeys(name for name in (*fields, *keys, *types) if name is not None)
    names = {f"#o{at}": name for at, name in enumerate(wanted) if _holds(index, table, name)}
    return request | {
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": request.get("ExpressionAttributeNames", {}) | names,
    }


def _keys(index: IndexPlan | None) -> tuple[str, ...]:
    return () if index is None else (*index.partition, *index.sort)


def _holds(index: IndexPlan | None, table: TablePlan, name: str) -> bool:
    """Whether the index has the attribute. DynamoDB refuses to project others."""
    if index is None or index.projection == "ALL":
        return True
    return name in (*index.included, *_keys(index), table.partition, table.sort)

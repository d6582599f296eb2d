"""Steps from deployed tables to a plan, each of which CloudFormation accepts as one update.

CloudFormation creates or deletes at most one global index of a table in an update (see
"GlobalSecondaryIndexes" in its reference of AWS::DynamoDB::Table). A plan that adds two indexes is
therefore deployed in two updates. New indexes come first, so that programs can move to them;
indexes that are no longer used are deleted afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from stator.design.plan.plan import IndexPlan, Plan, TablePlan


def plan_steps(before: Plan, after: Plan) -> list[Plan]:
    """Return the plans to deploy one after the other, to move from ``before`` to ``after``.

    The last plan is ``after`` itself. New tables are created whole by the first plan. If the key of
    a table changes, or an index changes under the same name, no sequence of updates can help. Such
    a table or index has its new form in every plan.
    """
    old = {table.name: table for table in before.tables}
    paths = [_table_steps(old.get(table.name), table) for table in after.tables]
    count = max(map(len, paths), default=1)
    plans = []
    for at in range(count):
        tables = tuple(path[min(at, len(path) - 1)] for path in paths)
        plans.append(replace(after, tables=tables))
    return plans


def _table_steps(before: TablePlan | None, after: TablePlan) -> list[TablePlan]:
    if before is None:
        return [after]
    known = dict((*before.attributes, *after.attributes))
    present = {index.name: index for index in before.indexes}
    wanted = {index.name: index for index in after.indexes}
    found: list[TablePlan] = []
    for name, index in wanted.items():
        if name not in present:
            present[name] = index
            found.append(_with(after, present, wanted, known))
    for name in [each for each in present if each not in wanted]:
        del present[name]
        found.append(_with(after, present, wanted, known))
    return [*found[:-1], after] if found else [after]


def _with(
    table: TablePlan,
    present: dict[str, IndexPlan],
    wanted: dict[str, IndexPlan],
    known: dict[str, str],
) -> TablePlan:
    """Return a table with the indexes in ``present`` and the attributes that their keys need.

    ``wanted`` has the indexes of the final plan. An index in both has its final form. ``known`` has
    the type of each key attribute.
    """
    indexes = tuple(wanted.get(name, index) for name, index in present.items())
    names = [table.partition, *([table.sort] if table.sort else [])]
    names += [name for index in indexes for name in (*index.partition, *index.sort)]
    attributes = tuple((name, known[name]) for name in dict.fromkeys(names))
    return replace(table, indexes=indexes, attributes=attributes)

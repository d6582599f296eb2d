"""SELECT: reads a page of items or, in a batch or transaction, finds the key of one item."""

from __future__ import annotations

from typing import Any, Final

from stator.engine.items import capacity
from stator.engine.items.key_ranges import check_scan_start, start_entry
from stator.engine.items.page_spread import PageSpread
from stator.engine.items.pages import find_index, make_view, read_records
from stator.engine.operation import RequestContext
from stator.engine.partiql.keys import split_key
from stator.engine.partiql.next_token import INVALID_TOKEN, decode_token, encode_token
from stator.engine.partiql.paths import output_name, selected_paths
from stator.engine.partiql.plan import SelectPlan, make_plan, place_of, walk
from stator.engine.partiql.statements import BoundSelect
from stator.engine.tables.item_keys import check_key_paths, check_statement_key
from stator.engine.tables.table import Index, Table
from stator.errors import ValidationFailed
from stator.expr.paths import lookup
from stator.expr.tree import Path, ProjectionExpression
from stator.model.values import Item

_SEVERAL_ATTRIBUTES: Final = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or "
    "multi-attribute RANGE keys."
)


def run_select(
    context: RequestContext, select: BoundSelect, options: dict[str, Any], identity: str
) -> dict[str, Any]:
    """Return the answer of ExecuteStatement to a SELECT.

    Its NextToken is bound to ``identity``, the fingerprint of the statement.
    """
    table = context.table(select.table_name)
    consistent = bool(options.get("ConsistentRead"))
    index = _index(table, select.index_name, consistent)
    paths = _projection(select, table)
    schema, prefix = (table.schema, table.prefix) if index is None else (index.schema, index.prefix)
    plan = make_plan(schema, prefix, select.where, select.order)
    view = make_view(
        table, index, plan.filter, top_level(paths), None, consistent, is_query=plan.keyed
    )
    token = options.get("NextToken")
    after = None if token is None else _start(table, index, plan, decode_token(token, identity))
    storage, meter = context.database.reader(consistent), context.database.meter
    if meter.charges_keys or table.traffic.keys is not None:
        spread = PageSpread(storage, meter, table, index)
        page = read_records(storage, view, walk(spread, plan, after), options.get("Limit"))
        spread.charge(page.consumed.total)
    else:
        page = read_records(storage, view, walk(storage, plan, after), options.get("Limit"))
        if meter.counts_units:
            meter.count_read(table, index, page.consumed.total)
    if meter.counts_units:
        returned = float(page.response["Count"])
        table.traffic.measure("ReturnedItemCount", ("Operation", "ExecuteStatement"), returned)
    response: dict[str, Any] = {"Items": _shaped(page.response["Items"], paths)}
    last: Item | None = page.response.get("LastEvaluatedKey")
    if last is not None and not _is_single_item(select, table):
        response["NextToken"] = encode_token(identity, last)
        response["LastEvaluatedKey"] = last
    mode = options.get("ReturnConsumedCapacity", "NONE")
    if mode != "NONE":
        response["ConsumedCapacity"] = capacity.report(table, table.name, page.consumed, mode)
    return response


def _index(table: Table, name: str | None, consistent: bool) -> Index | None:
    if name is None:
        return None
    index = table.index(name)
    if index is None:
        raise ValidationFailed("The table does not have the specified index")
    if len(index.schema.partition) > 1 or len(index.schema.sort) > 1:
        raise ValidationFailed(_SEVERAL_ATTRIBUTES)
    if index.is_global and consistent:
        raise ValidationFailed(
            "Strongly consistent read is not supported on Global Secondary Indexes"
        )
    return find_index(table, name, consistent)


def _start(table: Table, index: Index | None, plan: SelectPlan, key: Item) -> bytes:
    """Return the storage key of the last item read, given its key from the NextToken.

    Raises ValidationFailed if the key lies in none of the plan's ranges.
    """
    try:
        check_scan_start(table, index, key)
    except ValidationFailed:
        raise ValidationFailed(INVALID_TOKEN) from None
    entry = start_entry(table, index, key)
    if place_of(plan, entry) is None:
        raise ValidationFailed(INVALID_TOKEN)
    return entry


# -- projections


def _projection(select: BoundSelect, table: Table) -> tuple[Path, ...]:
    paths = selected_paths(select.projection)
    check_key_paths(table.schema, list(paths))
    return paths


def top_level(paths: tuple[Path, ...]) -> ProjectionExpression | None:
    """Return a projection of the top-level attributes in ``paths``, or None for all attributes.

    ``shape`` then extracts the selected paths.
    """
    if not paths:
        return None
    return ProjectionExpression(
        tuple(Path((name,)) for name in dict.fromkeys(path.parts[0] for path in paths))
    )


def shape(item: Item, paths: tuple[Path, ...]) -> Item:
    """Return the selected values as top-level attributes.

    ``m.a`` is returned as ``a``, unlike with a ProjectionExpression.
    """
    found = ((output_name(path), lookup(item, path)) for path in paths)
    return {name: value for name, value in found if value is not None}


def _shaped(items: Any, paths: tuple[Path, ...]) -> Any:
    if all(len(path.parts) == 1 for path in paths):
        return items
    return [shape(item, paths) for item in items]


# -- single items


def _is_single_item(select: BoundSelect, table: Table) -> bool:
    key, _ = split_key(select.where, table.schema) if select.index_name is None else (None, [])
    return key is not None


def check_index(select: BoundSelect, table: Table) -> None:
    """Check the index that a SELECT names, if any.

    AWS checks it even in a batch, where a SELECT cannot read an index.
    """
    _index(table, select.index_name, consistent=False)


def single_key(select: BoundSelect, table: Table, operation: str) -> tuple[Item, tuple[Path, ...]]:
    """Return the primary key and the selected paths of a SELECT in a batch or transaction.

    Raises ValidationFailed unless the condition fixes one whole primary key and nothing else.
    """
    key, rest = split_key(select.where, table.schema)
    if key is None or rest or select.index_name is not None:
        raise ValidationFailed(
            f"Select statements within {operation} must specify the primary key in the "
            "where clause."
        )
    check_statement_key(table.schema, key)
    return key, _projection(select, table)

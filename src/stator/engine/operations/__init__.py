"""One module per operation, each with ``parse`` and ``run``; this is their register."""

from __future__ import annotations

from stator.engine.operation import Operation
from stator.engine.operations import (
    batch_execute_statement,
    batch_get_item,
    batch_write_item,
    create_table,
    delete_item,
    delete_table,
    describe_endpoints,
    describe_limits,
    describe_table,
    describe_time_to_live,
    execute_statement,
    execute_transaction,
    get_item,
    list_tables,
    list_tags_of_resource,
    put_item,
    query,
    scan,
    tag_resource,
    transact_get_items,
    transact_write_items,
    untag_resource,
    update_item,
    update_table,
    update_time_to_live,
)

_MODULES = (
    create_table,
    delete_table,
    describe_endpoints,
    describe_limits,
    describe_table,
    describe_time_to_live,
    list_tables,
    list_tags_of_resource,
    tag_resource,
    untag_resource,
    update_table,
    update_time_to_live,
    delete_item,
    get_item,
    put_item,
    batch_get_item,
    batch_write_item,
    query,
    scan,
    transact_get_items,
    transact_write_items,
    update_item,
    batch_execute_statement,
    execute_statement,
    execute_transaction,
)

OPERATIONS: dict[str, Operation] = {module.OPERATION.name: module.OPERATION for module in _MODULES}

"""One module per operation, each with ``parse`` and ``run``; this is their register."""

from __future__ import annotations

from stator.engine.operation import Operation
from stator.engine.operations import (
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
)

_MODULES = (
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
)

OPERATIONS: dict[str, Operation] = {module.OPERATION.name: module.OPERATION for module in _MODULES}

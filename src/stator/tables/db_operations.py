"""Every operation of ``Db`` and ``AsyncDb``, defined and documented once.

A method here plans: it checks its arguments and returns ``Work``, or an object with work inside it
(pages to fetch, an update, a transaction). It does no I/O. ``db`` builds ``Db`` and ``AsyncDb``
from these methods, with their signatures, types and docstrings. ``db.operations`` is a
``DbOperations``, so work of your own can include an operation:
``user = yield from db.operations.get(User, ...)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.design.table_settings import TableSettings
from stator.errors import RequestRefused
from stator.tables.argument_rules import checks_arguments
from stator.tables.context import Context
from stator.tables.lifecycle import TableSetup
from stator.tables.read_operations import ReadOperations
from stator.tables.work import Call, Work
from stator.tables.write_operations import WriteOperations


@checks_arguments("db")
class DbOperations(ReadOperations, WriteOperations):
    """Plans the operations on one design's tables."""

    def __init__(self, context: Context) -> None:
        WriteOperations.__init__(self, context)

    def call(
        self, operation: str, request: Mapping[str, Any], *, idempotent: bool | None = None
    ) -> Work[dict[str, Any]]:
        """Send one DynamoDB operation by name, in DynamoDB JSON, and return its answer.

        ``idempotent`` says whether the call may be sent again when its answer is lost. The default
        is False for UpdateItem, for PartiQL statements and for writes that return the old item
        (``ReturnValues``), and True for all other operations. A transaction gets a
        ClientRequestToken if ``request`` has none, so that it can be sent again safely.
        """
        given: Any = request
        if not isinstance(operation, str) or not isinstance(given, Mapping):
            wrong = ("name", operation) if isinstance(given, Mapping) else ("request", given)
            raise RequestRefused(
                f"db.call(): the {wrong[0]} of the operation is a {type(wrong[1]).__name__}",
                hint='pass a name and a dict: db.call("DescribeTable", {"TableName": "shop"})',
            )
        sent = dict(request)
        if operation in _TAKE_A_TOKEN:
            sent.setdefault("ClientRequestToken", self.context.token())
        if idempotent is None:
            returns = str(sent.get("ReturnValues", ""))
            idempotent = operation not in _NOT_IDEMPOTENT and not returns.endswith("_OLD")
        reply: dict[str, Any] = yield Call(operation, sent, operation, idempotent)
        return reply

    def ensure(self, settings: TableSettings | None = None) -> Work[list[str]]:
        """Create the tables, or adjust them to the design.

        ``settings`` replaces the table settings of the design. Return one line for each change. A
        change that would lose data raises DestructiveChange before anything is changed.
        """
        declared = self.context.schema.design.settings
        return TableSetup(self.context, settings or declared or TableSettings()).run()


_NOT_IDEMPOTENT = frozenset({"UpdateItem", "ExecuteStatement", "BatchExecuteStatement"})
_TAKE_A_TOKEN = frozenset({"TransactWriteItems", "ExecuteTransaction"})

"""PartiQL for DynamoDB: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction.

A statement passes through four steps, each of which knows only the one before it:

    text --lexer, parser--> syntax     what was written, with positions (cached per text)
         --binding-->       bound      conditions and updates as trees of ``stator.expr``
         --planning-->      plan       which keys are read, or the item action that is written,
                                       once the table is known
         --running-->       answer     the same pages and write path as every other operation

Errors of the first two steps are raised before the table is looked up. This is AWS's order:
syntax, unsupported forms, parameters and operand types, and only then the table. Error texts come
from AWS captures in the public paritysuite conformance suite (October 2026), otherwise from
DynamoDB Local 3.3, which shares code with AWS.

The operations themselves are in ``engine.operations``; conditions are evaluated by ``stator.expr``.
"""

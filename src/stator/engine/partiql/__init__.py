"""PartiQL for DynamoDB: the statements of ExecuteStatement, BatchExecuteStatement and ExecuteTransaction.

A statement passes through four steps, each of which knows only the one before it:

    text --lexer, parser--> syntax        what was written, with positions (cached per text)
         --binding-->       statement     tables, conditions and updates as trees of ``stator.expr``
         --planning-->      plan          which keys are read or written, once the table is known
         --running-->       answer        through the same pages and the same write path as every other operation

Only the first two can fail without a table, which is the order in which AWS reports what is wrong: syntax, then
forms it does not support, parameters and operand types, and only then the table. Texts come from the AWS captures in
the public paritysuite conformance suite (October 2026), otherwise from DynamoDB Local 3.3, which shares the code.
"""

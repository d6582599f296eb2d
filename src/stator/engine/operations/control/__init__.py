"""Operations on whole tables, a module per family. Each module ends with its ``OPERATIONS``.

Rules about declarations (keys, indexes, throughput, tags) are in ``engine.tables``, and the work of
backups, exports and imports is in ``engine.recovery``. The operations here call the checks in AWS's
order, write the result, and build the answer. Operations on items are in ``engine.operations``.
"""

"""Operations on whole tables, a module per family; each ends with its tuple of ``OPERATIONS``.

Rules about declarations (keys, indexes, throughput, tags) are in ``engine.tables``, and the work of
backups, exports and imports is in ``engine.recovery``. Here is the order of checks, the write, and
the answer. Operations on items are in ``engine.operations``.
"""

"""Operations on whole tables, a module per family. Each module ends with its ``OPERATIONS``.

Rules about declarations (keys, indexes, throughput, tags) are in ``engine.tables``, and the work of
backups, exports and imports is in ``engine.recovery``. This package holds the order of checks, the
write, and the answer. Operations on items are in ``engine.operations``.
"""

"""Items in storage: the write path, stored records, key ranges, pages, capacity, transactions.

``actions`` turns a parsed write into the item's next state. ``write_path`` turns that into one
batch: record, index entries, counts. ``pages`` reads entries for Query, Scan and PartiQL. Whole
requests and answers are handled in ``engine.operations``, table definitions and key encoding in
``engine.tables``.
"""

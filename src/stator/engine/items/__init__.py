"""Items in storage: the write path, stored records, key ranges, pages, capacity, transactions.

``actions`` turns a parsed write into the item's next state. ``write_path`` turns that into one
batch: record, index entries, counts. ``pages`` reads entries for Query, Scan and PartiQL. Nothing
here knows requests or answers beyond their parts: operations parse and answer. What a table is and
how its keys are encoded is in ``engine.tables``.
"""

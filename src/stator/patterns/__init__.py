"""The classic DynamoDB patterns as objects: a counter, a series, a tree, links, a lock and others.

Each pattern stores its items in the design's own table (``<design>-stator``) or beside the
entities, and works on a ``Db`` and on an ``AsyncDb`` alike. It plans its requests as work
(``tables.work``) and never performs I/O itself. ``explain()`` of each returns its keys and its cost
in units.

A file holds a small pattern, a package a larger one. Four modules serve several patterns:
``item_pages`` and ``consistent_read`` (reads), ``identities`` and ``plain_values`` (encodings).

Not here: jobs that keep patterns up to date from a stream (``pipeline.maintenance``), and the
leases and retries that patterns share with workers (``coordination``).
"""

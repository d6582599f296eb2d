"""The classic DynamoDB patterns as objects: a counter, a series, a tree, links, a lock and others.

Each pattern stores its items in the design's own table (``<design>-stator``) or in the tables of
the entities, and works on a ``Db`` and on an ``AsyncDb`` alike. It plans its requests as work
(``tables.work``) and never performs I/O itself. Each pattern's ``explain()`` returns its keys and
its cost in units.

A small pattern is one file, a larger one is a package. Four modules serve several patterns:
``item_pages`` and ``consistent_read`` (reads), ``identities`` and ``plain_values`` (encodings).

Not here: jobs that keep patterns up to date from a stream (``pipeline.maintenance``), and the
leases and retries that patterns share with workers (``coordination``).
"""

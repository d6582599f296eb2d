"""Shards of a stream: their leases and lineage, which worker reads which, and how they are read.

``leases`` stores the leases as items. ``lineage`` decides which shards may be read, and ``balance``
decides which leases a worker takes; neither does I/O. ``lease_holder`` is the base class of
``consumer``, which reads a shard, and of ``snapshot``, which reads a table before its changes.
``iterators`` lists shards and gets shard iterators. ``workers.handlers`` handles the records.
"""

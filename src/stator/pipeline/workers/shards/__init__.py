"""Shards of a stream: their leases and lineage, who reads which, and reading itself.

``leases`` are the items, ``lineage`` and ``balance`` decide without I/O, ``lease_holder`` is the
base of ``consumer`` (a shard) and ``snapshot`` (a table before its changes), ``iterators`` asks
the stream. ``workers.handlers`` handles the records that were read.
"""

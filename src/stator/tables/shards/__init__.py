"""Adaptive shards: how hot keys are found, and just these spread over more partitions.

``adaptive_shards`` has the options that users pass and the arithmetic of how many shards a rate
needs. ``write_rate`` samples what this process writes to a key. ``hot_key`` tells a hot partition
from other throttling. ``shard_change`` is what happens: an event for callbacks and the log. Where
the number of a key's shards is stored, and why readers never miss a shard, is the business of each
pattern: ``patterns.series.directory`` and ``patterns.counter_shards``, and ``index_shards`` for the
keys of indexes.
docs/architecture/adaptive-shards.md has the invariants.
"""

"""Heat: what partitions admit, when they split, and which limit refuses a request.

A ``ThroughputResource`` is a table or a global index: ordered partitions, the buckets that limit
it, and the history that decides about splits. Everything is pure. The caller supplies keys as
ordered bytes and the time as a number, so the same input gives the same result. The engine charges
each request to it (``stator.engine.partitions``), and ``stator simulate`` charges a declared
workload. Error texts, storage and the requests themselves live with the callers.

The rules and their sources stand in ``docs/architecture/heat.md``.
"""

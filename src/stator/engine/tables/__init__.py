"""Tables: the catalogue, definitions, key schemas, descriptions, and the rules for declarations.

The rules are AWS's rules about keys, indexes, throughput, tags and quotas. They are pure functions
with AWS's texts. Reading and writing items is in ``engine.items``, and the operations on tables are
in ``engine.operations.control``. Changes over time (CREATING to ACTIVE, the backfill of an index)
are in ``engine.lifecycle``.
"""

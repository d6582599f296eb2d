"""Tables as declared and as used: the catalogue, definitions, key schemas, descriptions, and rules.

The rules are AWS's about declarations: keys, indexes, throughput, tags, quotas. They are pure
functions with AWS's texts. Reading and writing items is in ``engine.items``, the operations on
tables are in ``engine.operations.control``, and the passing of time (CREATING to ACTIVE, the
backfill of an index) is in ``engine.lifecycle``.
"""

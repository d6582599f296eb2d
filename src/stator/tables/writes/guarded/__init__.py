"""Guarded writes: many conditional writes in one request, each with an outcome of its own.

``guarded_write`` has the writes a caller describes, ``guard_condition`` their conditions,
``outcomes`` the possible results. ``statement_text`` writes PartiQL. ``writer`` sends the writes
and finds out what became of each. ``price`` says what they cost.

docs/architecture/guarded-writes.md explains the idea, the invariants, and what happens after a
failure. Writes without a condition are in ``tables.writes.batches``.
"""

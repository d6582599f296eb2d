"""Needs: patterns in one common form that says what each of them requires of a key.

``need`` has the data, ``traced_needs`` makes it from patterns, and ``write_rates`` holds what
declared writes do to an entity. How many items a need reads is in ``planner.selectivity``.
"""

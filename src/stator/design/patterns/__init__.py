"""Access patterns: declared reads and writes, queries, and the filters they need.

A pattern is a typed function; tracing it yields the question that the planner answers. Running a
query is the job of ``stator.tables``, planning it that of ``stator.design.planner``.
"""

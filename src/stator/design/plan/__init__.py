"""Plans: the frozen result of planning, its lock file, and the key text that both use.

A plan is data: it fills keys and builds requests without the design it came from. How a plan is
found is in ``stator.design.planner``; what it costs is in ``stator.design.cost``.
"""

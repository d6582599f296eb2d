"""Plans: the frozen result of planning, its lock file, and the key text that both are written in.

A plan is data: it fills keys and makes requests without the design it came from. How a plan is
found is in ``stator.design.planner``; what it costs in ``stator.design.cost``.
"""

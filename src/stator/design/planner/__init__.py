"""The planner: from a declaration to the cheapest keys and indexes that serve every pattern.

The stages: ``needs`` (what patterns require of keys), ``paths`` (the ways to key an entity),
``choices`` (paths in their places, with prices from ``cost_model``), ``search`` with
``assignment`` and ``slots`` (the cheapest layout), and ``blueprint`` (the layout written out as a
plan). ``locked_choices`` reads the choices of an earlier plan. The finished plan is data in
``stator.design.plan``; the bill for it is in ``stator.design.cost``.
"""

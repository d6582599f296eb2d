"""Lint: problems of a design, found before any table exists.

Rules live in small modules by subject (``partition_keys``, ``items``, ``indexes``, ``reads``,
``writes``). Each rule is a function of ``Facts``, which holds the design, its plan and the numbers
that several rules need. ``catalogue`` lists the codes and ``check`` runs them. ``refusals`` turns
errors of the planner into findings, and ``location`` finds the line in the user's file.

A finding has a code, a place, the number it rests on and a fix. The page of each code is
``docs/lint/<code>.md``. ``Design(..., ignore=["ST304:Post.likes"])`` silences one finding.
Planning itself lives in ``stator.design.planner``; the command is ``stator check``.
"""

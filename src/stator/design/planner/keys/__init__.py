"""The keys of a plan as text: labels, the parts of a key, and keys that a user wrote by hand.

The search chooses among paths and placements, which are in ``stator.design.planner``. Its package
``blueprint`` writes the finished key templates.
"""

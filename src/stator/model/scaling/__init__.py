"""Scaling of provisioned capacity: what Application Auto Scaling decides for DynamoDB, and when.

Everything here is pure: no I/O, and the time is an argument. Two users share it. The replay of
``stator advise`` asks what would have happened, and an embedded Application Auto Scaling acts on
the same answers.

- ``target_tracking``: the alarms of a target-tracking policy, and ``decide``, which says to which
  units a table or index should change.
- ``scheduled_action``: ``at``, ``rate`` and ``cron`` expressions with a time zone, and the bounds
  that an action sets.
- ``capacity_window``: the windows in which users write schedules.
- ``decrease_budget``: how often provisioned units may be decreased.
- ``billing_switches``: how often a table may be switched to on-demand capacity.

What lives elsewhere: buckets and partitions (``stator.model.heat``), prices
(``stator.design.cost``), the alarms' history and the calls that change a table (the callers).
"""

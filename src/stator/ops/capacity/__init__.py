"""Capacity: what tables use, what each way to pay for it would cost and refuse, and changes to it.

From the bottom up: ``use_series`` holds the use of a table by the minute. It comes from a file
(``history_file``) or from metrics (``metric_source``, ``cloudwatch``, ``history``). ``replay`` runs
it against ``policies``, ``bill`` prices the result, and ``options``, ``schedule`` and ``reserved``
search for good ones. ``advice`` chooses one and says why. ``live_table``, ``capacity_state`` and
``scaling_registry`` read what a table has; ``planned_state`` and ``scaling_request`` say what it
should have; ``staged_change`` leads from one to the other, and back.

The decisions of auto scaling are in ``stator.model.scaling``, buckets in ``stator.model.heat`` and
prices in ``stator.design.cost``. Nothing here prints.
"""

"""The typed data layer: reads and writes entities by declared pattern, at any address.

``read_operations`` and ``write_operations`` define every operation as work, a generator that does
no I/O (``work``); ``db_operations`` joins them. ``db`` makes ``Db`` and ``AsyncDb``
from it; ``runner`` and ``async_runner`` run work; ``connection`` opens connections. ``schema/``
binds entity classes to the plan. ``reads/`` and ``writes/`` plan the requests, ``codegen/`` writes
items and keys, ``blobs/`` holds large values, ``lifecycle`` creates tables, ``observers`` and
``telemetry`` report calls. ``operation`` lets pattern objects serve both kinds of Db.

Not here: how keys are chosen (``stator.design``), the transports (``stator.addresses``,
``stator.client``), and everything built on a Db (``stator.patterns``, ``stator.pipeline``).
"""

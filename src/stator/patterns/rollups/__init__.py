"""Roll-ups of a series: count, sum, minimum, maximum and last value per period.

``rollup`` has values and keys and does no I/O. A series keeps its roll-ups up to date in one of two
ways: ``writes`` updates them in the transaction of each reading, and ``stream_changes`` updates
them from the table's stream. ``reads`` returns summaries and rebuilds roll-ups from the readings.

The readings themselves are in ``patterns.series``; the worker that applies changes is
``pipeline.maintenance.rollups``.
"""

"""Bulk jobs: ``load`` (files to table), ``export`` (table to files), ``copy`` (table to table).

All three use only DynamoDB's API, so they run alike on the embedded engine, on any endpoint and on
AWS. ``job/`` holds the machinery that they share; ``load/`` and ``export/`` hold what only loads or
exports need. ``targets`` opens the table of a job, ``table_creation`` creates one that is missing,
``checksum`` compares sets of items, ``s3`` reads and writes objects.

What does not live here: the file formats (``stator.formats``), changes as they happen
(``pipeline.workers``), and DynamoDB's own exports and imports (``engine.recovery``).
"""

"""Metrics: their names, bounded labels, the busiest keys, and the page that Prometheus reads.

``catalogue`` has every metric that Stator exports, so that recorders, dashboards and alarms use the
same names. Nothing here counts calls: ``stator.tables.metrics``, ``stator.server`` and
``stator.pipeline`` do.
"""

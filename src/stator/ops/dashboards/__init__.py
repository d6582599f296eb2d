"""Dashboards and alarms as code, from a design.

``monitored_design`` holds what to watch. ``design_dashboard`` and ``design_alarms`` build one model
of panels (``panels``) and alarms (``planned_alarm``) from it. The other modules write that model
for one tool each: ``grafana``, ``cloudwatch_body``, ``prometheus_rules``,
``cloudwatch_alarms``, ``cloudformation_alarms``
and ``terraform_alarms``.

Prometheus has the metrics of the programs (``stator.metrics.catalogue``), which know patterns.
CloudWatch has those of the tables, which see every caller. Most panels and alarms have both.
"""

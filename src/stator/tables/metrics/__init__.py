"""Metrics of calls: one observer that feeds Prometheus and OpenTelemetry.

``call_facts`` turns a record into labels and numbers. ``prometheus_calls`` and
``opentelemetry_calls`` export them. ``metrics_observer`` puts the three together.
"""

"""Tests of the metrics of calls.

prometheus_calls: test_metrics_observer.py
opentelemetry_calls: test_metrics_observer.py
"""

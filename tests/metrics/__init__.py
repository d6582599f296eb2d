"""Tests of names, labels, busy keys and the page for Prometheus.

catalogue: test_endpoint.py
"""

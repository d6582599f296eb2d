"""Partitions as the engine enforces them; the model itself is tested in tests/model/heat.

capacity_meter: test_enforced.py
charges: test_enforced.py
throttle_errors: test_enforced.py
throughput_report: ../../cli/test_serve_throughput.py
"""

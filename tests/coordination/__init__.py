"""Tests of ``stator.coordination``.

named_changes: ../pipeline/test_lambda_schedules.py, with simulated_lambda.py
stored_format: test_lease.py
"""

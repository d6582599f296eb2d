"""Tests of ``stator.coordination``.

stored_format: test_lease.py
"""

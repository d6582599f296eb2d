"""Tests of ``stator.model``. Where the tests of each module are:

companion_service: ../server/companions/test_cloudwatch_over_http.py
limits: ../engine/facts/test_limits.py
numbers: test_numbers.py
periods: ../patterns/test_series.py
quantities: test_quantities.py
scope: ../server/test_authentication.py
service: ../client/test_signing.py
values: ../engine/facts/test_conditions.py, ../engine/test_items.py
wide_numbers: test_wide_numbers.py
"""

"""Tests of Stator. They mirror ``src/stator``: ``a/b.py`` is tested by ``tests/a/test_b.py``.

Where one test file covers several modules, or one of another name does, the docstring of the test
package lists them. ``tests/house`` checks that every module is found in one of these ways. The
modules at the top of the package:

addresses: tables/test_connection.py
bulk: test_public_names.py
buckets: engine/recovery/test_s3.py
clock: testing/test_plugin.py
costs: test_public_names.py
data: test_public_names.py
errors.base: test_errors.py
errors.client: test_errors.py
errors.companions: test_errors.py
errors.data: test_errors.py
errors.design: test_errors.py
errors.pipeline: test_errors.py
errors.service: test_errors.py
errors.storage: test_errors.py
lazy_names: test_public_names.py
plans: test_public_names.py
telemetry: test_public_names.py
transport: tables/test_faults.py
"""

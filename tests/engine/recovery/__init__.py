"""Tests of ``stator.engine.recovery``. Modules tested elsewhere than in a file of their own name:

arns: test_exports.py
capture: test_moments.py
export_filter: test_exports.py
log: test_data_formats.py
objects: test_s3.py
recovery: test_point_in_time.py
registry: test_backups.py
restores: test_backups.py
tasks: test_crash.py, test_failed_tasks.py
"""

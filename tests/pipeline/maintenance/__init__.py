"""Tests of ``stator.pipeline.maintenance``. Where a module is tested:

guards: test_maintenance.py
links: test_maintenance.py, test_outbox_and_link_schedules.py
outboxes: test_maintenance.py, test_outbox_and_link_schedules.py
pattern_factory: test_maintenance.py
rollups: test_maintenance.py, test_rollup_schedules.py, test_work_command.py
"""

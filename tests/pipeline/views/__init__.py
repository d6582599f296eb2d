"""Tests of ``stator.pipeline.views``. Where a module is tested, if not in a file of its own name:

batch_writes: test_views.py
generations: test_views.py, test_view_schedules.py
layout: test_views.py
metrics: test_views.py, test_sources.py
named_partials: test_views_on_lambda.py, ../test_lambda_schedules.py
partials: test_view_schedules.py, with simulated.py
projection: test_views.py
ranks: test_view_schedules.py
reader: test_views.py
rows: test_views.py
updater: test_views.py
view: test_views.py
rebuild.builder_process: test_rebuild_mark.py
rebuild.compaction: test_compacting.py
rebuild.rebuild: test_views.py, test_view_schedules.py, test_rebuild_mark.py
rebuild.retirement: test_views.py
rebuild.stream_tail: test_view_schedules.py
rebuild.tally: test_view_schedules.py
"""

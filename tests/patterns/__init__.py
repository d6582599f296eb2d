"""Tests of ``stator.patterns``. Where a module is tested, if not by a file of its name:

blob_audit: ../tables/test_blobs.py
consistent_read: test_counter.py
counter_shards: test_adaptive_counter.py
explanation: test_counter.py
identities: test_tree.py
item_pages: test_links.py
leaderboard.items: test_leaderboard.py
leaderboard.leaderboard: test_leaderboard.py
leaderboard.reads: test_leaderboard.py
links: test_links.py
outbox.delivery: test_outbox.py
outbox.items: test_outbox.py
outbox.outbox: test_outbox.py
plain_values: test_links.py
rollups.reads: test_rollups.py
rollups.rollup: test_rollups.py
rollups.stream_changes: test_rollups.py, ../pipeline/maintenance/test_rollup_schedules.py
rollups.writes: test_rollups.py
series.buckets: test_series.py
series.directory: test_series.py, test_adaptive_series.py, test_series_tables.py
series.entries: test_series.py, test_adaptive_series.py, test_series_tables.py
series.explanation: test_series.py
series.layout: test_series.py
series.own_tables: test_series.py, test_series_tables.py
series.placement: test_series.py
series.reads: test_series.py
series.series: test_series.py
series.spread: test_series_tables.py
series.transactions: test_rollups.py
series.writes: test_series.py
tree.items: test_tree.py
tree.jobs: test_tree.py
tree.tree: test_tree.py

Several patterns at once: test_random_faults.py (faults at random), test_repeated_requests.py
(requests carried out twice), test_processes.py (several processes), test_index_isolation.py
(indexes of the same table).
"""

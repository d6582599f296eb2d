"""Capacity: histories, the replay, options, advice, and changes.

bill: test_replay.py
capacity_state: test_staged_change.py
cloudwatch: test_history.py
live_table: test_staged_change.py
metric_source: test_history.py
planned_state: test_advice.py
policies: test_replay.py
reason: test_advice.py
replay_lane: test_replay.py
scaling_registry: test_staged_change.py
service_calls: test_history.py
use_series: test_history_file.py
"""

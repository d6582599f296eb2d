"""Rebuilds a view while it is in use, and merges partials so that their number stays small.

``rebuild`` builds a new generation, with ``tally`` to count, ``stream_tail`` to follow the stream
and ``retirement`` to delete the old one. ``compaction`` merges the partials of shards that have
ended.
"""

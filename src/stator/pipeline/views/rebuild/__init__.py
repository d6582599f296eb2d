"""Building a view again while it is in use, and keeping its items few.

``rebuild`` builds a new generation, with ``tally`` to count, ``stream_tail`` to follow the stream
and ``retirement`` to delete the old one. ``compaction`` merges the partials of shards that have
ended.
"""

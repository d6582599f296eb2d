"""The leaderboard: members ordered by score, with ranks.

``leaderboard`` has the public class and explains the layout. ``items`` has the keys, and the
statements that change items. ``reads`` has the queries over all shards.
"""

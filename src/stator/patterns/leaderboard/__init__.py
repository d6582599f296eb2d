"""The leaderboard: members ordered by score, with ranks.

``leaderboard`` has the public class and explains the layout, ``items`` the keys and the statements
that change them, ``reads`` the queries over all shards.
"""

"""Access paths: the ways an entity could be keyed, and which needs each path serves.

A need is what one pattern asks of one entity (see ``planner.needs``). A path has two tuples of
fields: the partition, whose values must be known, and the sort tuple. ``access_path`` has the data,
``candidate_paths`` the paths that are worth a price, and ``served_need`` says how a path serves a
need.
"""

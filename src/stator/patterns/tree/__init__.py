"""The tree pattern: entities with parents. Subtrees of any size can be moved and deleted safely.

``tree`` is the object users hold, ``items`` has the keys and statements, ``jobs`` does the part of
a move or deletion that one transaction cannot hold.
"""

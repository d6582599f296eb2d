"""The tree pattern: entities with a parent, in subtrees of any size that move and are deleted
safely.

``tree`` is the object users hold, ``items`` has the keys and statements, ``jobs`` does the part of
a move or deletion that one transaction cannot hold.
"""

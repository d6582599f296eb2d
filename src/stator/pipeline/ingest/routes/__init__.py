"""Routes: what becomes of the records of a topic.

``put_route`` replaces entities, ``fold_route`` adds to them, ``handler_route`` calls functions.
``guards`` has the conditions of their writes, ``folds`` combines changes, and ``route`` has what
all routes share. When and how the writes are sent is decided outside of this package.
"""

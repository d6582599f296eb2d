"""How the entities of a design are stored in its plan, and how items become objects again.

``entity_map`` holds one entity: its keys, its items, the version and times of its writes.
``schema`` holds all of them, with the tables and patterns of the plan. ``key_identity`` reads field
values back from keys, ``missing_attributes`` says what a condition means for items that lack an
attribute, and ``place`` names a table that holds no entities.
"""

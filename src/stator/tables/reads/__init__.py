"""Reads, planned as work (``tables.work``): by identity, by declared pattern, or by scan.

``items`` reads by identity, ``pattern_read`` by pattern. ``page_stream`` reads one request page by
page, ``cursors`` signs and checks cursors, and ``locator`` finds a key from an identity.
``stator.design.planner`` decides which index serves a pattern.
"""

"""Reads, planned as work: by identity (``items``), by declared pattern (``pattern_read``), by scan.

``page_stream`` reads one request page by page, ``cursors`` signs and checks cursors, and
``locator`` finds a key from an identity. ``stator.design.planner`` decides which index serves a
pattern.
"""

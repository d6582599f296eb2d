"""Reads, planned as work: by identity (``items``), by declared pattern (``pattern_read``), by scan.

``page_stream`` reads one request page by page, ``cursors`` signs and checks cursors, ``locator``
finds a key from an identity. Which index serves a pattern is decided in ``stator.design.planner``.
"""

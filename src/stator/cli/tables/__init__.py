"""Cells of the tables that commands print. The ``*_view`` modules build the tables."""

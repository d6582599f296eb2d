"""Lint: what will go wrong with a design, found before there is a table.

Rules stand in small modules by subject, the catalogue lists them, ``check`` runs them. Each finding has a code, a place, the number it
rests on and what to do about it; ``Design(..., ignore=["ST304:Post.likes"])`` silences one.
"""

"""Data in motion: what moves items in bulk, and what follows them as they change."""

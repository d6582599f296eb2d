"""Entities, access patterns, and everything a design tells about itself. No I/O and no engine."""

"""rollups."""

"""shards."""

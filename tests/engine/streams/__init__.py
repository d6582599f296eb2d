"""Streams and the expiry of items.

events: test_records.py
heat: test_shards.py
stream: test_shards.py
streams: test_shards.py
"""

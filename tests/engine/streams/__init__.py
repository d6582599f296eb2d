"""Streams and the expiry of items.

events: test_records.py
stream: test_shards.py
streams: test_shards.py
"""

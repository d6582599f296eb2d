"""Delivers batches of records to handlers, and retries the changes that failed.

``change`` is a record as handlers see it, ``subscribers`` are the functions and classes that get
changes, ``change_handlers`` are an app's functions for single changes. ``batch_delivery`` hands a
batch to all subscribers, ``parking`` stores the changes that failed, and ``set_aside_retry``
retries them. ``parked_retry`` retries or drops them for an operator. Records are read in
``workers.shards``.
"""

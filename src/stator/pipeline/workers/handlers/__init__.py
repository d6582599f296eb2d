"""From a batch of records to handlers that have seen every change.

``change`` is a record as handlers see it, ``subscribers`` are the functions and classes that get
changes, ``change_handlers`` are an app's functions for single changes. ``batch_delivery`` takes a
batch through all subscribers, ``parking`` stores what failed, ``set_aside_retry`` tries it again,
and ``parked_retry`` does so for an operator. Where records come from is in ``workers.shards``.
"""

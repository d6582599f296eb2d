"""From a batch of records to handlers that have seen every change.

``change`` is a record as handlers see it, ``subscribers`` are the functions and classes that get
changes, ``batch_delivery`` takes a batch through all of them, ``parking`` keeps what failed, and
``parked_retry`` handles it later. Where records come from is in ``workers.shards``.
"""

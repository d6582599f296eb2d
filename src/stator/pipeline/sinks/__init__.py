"""Sinks: where the changes of a table go on to. Each is a subscriber of a ``StreamApp``: ``app.add(KafkaSink("orders", "localhost:9092", "orders"))``.

The promise is that of the workers. Every change is delivered at least once; a change is delivered again only after a crash or a failure, with the same
event id, so that a receiver can tell. Where the receiver knows an order, the changes of one item arrive in theirs.

How it holds. A worker writes its checkpoint after ``handle`` has returned, and ``handle`` returns when the receiver has acknowledged everything: a sink
buffers nothing beyond that. What it needs that is away (no connection, throttling, a server that fails) is ``TryLater``: the shard waits, and so reads
no more than it can deliver. What the receiver refuses for good (too large, malformed) is the fault of one change: its item is parked, the rest goes on.

A sink of your own is a subclass of ``Sink`` with one method, ``send`` (see sink.py). One that speaks to DynamoDB is a ``ChangeSink``, and plans its
delivery as work.
"""

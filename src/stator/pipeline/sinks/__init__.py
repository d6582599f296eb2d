"""Sinks: the systems to which the changes of a table are sent.

Each sink is a subscriber of a ``StreamApp``: ``app.add(KafkaSink("orders", "localhost:9092",
"orders"))``.

The promise is that of the workers. Every change is delivered at least once. It is delivered again
only after a crash or a failure, with the same event id, so that a receiver can recognise it. If the
receiver keeps an order, the changes of one item arrive in the order they were made.

How it holds: a worker writes its checkpoint after ``handle`` has returned, and ``handle`` returns
when the receiver has acknowledged everything. A sink buffers nothing beyond that. An outage (no
connection, throttling, a failing server) is ``TryLater``: the shard waits, and so reads no more
than it can deliver. What the receiver will never accept (too large, malformed) is the fault of one
change: its item is parked, and the others continue.

A sink of your own is a subclass of ``Sink`` with one method, ``send`` (``sink``). A sink that
writes to DynamoDB is a ``ChangeSink`` and plans its delivery as work. The workers that run sinks,
and parking, are in ``pipeline.workers``.
"""

"""Sinks send the changes to a table's items on to other systems.

Each sink is a subscriber of a ``StreamApp``: ``app.add(KafkaSink("orders", "localhost:9092",
"orders"))``.

Sinks promise what workers promise. Every change is delivered at least once. A change is delivered
again only after a crash or a failure, with the same event id, so that the receiver can recognise
the repeat. If the receiver keeps an order, the changes to one item arrive in the order in which
they were made.

How the promise is kept: a worker writes its checkpoint after ``handle`` has returned. ``handle``
returns when the receiver has acknowledged every change, or the sink reports it as failed. The
worker stores failed changes before it writes the checkpoint. A sink buffers nothing beyond that. An
outage (no connection, throttling, a failing server) is reported as ``TryLater``, and the changes
are retried until it ends. If more than about a hundred items wait, the worker reads no more of the
shard. If the receiver will never accept a change (too large, malformed), only that change is at
fault: its item is parked, and the other items continue.

A sink of your own is a subclass of ``Sink`` with one method, ``send`` (``sink``). A sink that
writes to DynamoDB is a ``ChangeSink`` and plans its delivery as work. The workers that run sinks,
and parking, are in ``pipeline.workers``.
"""

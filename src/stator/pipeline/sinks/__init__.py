"""Sinks send the changes to a table's items on to other systems.

Each sink is a subscriber of a ``StreamApp``:

    app.add(KafkaSink("orders", "localhost:9092", "orders"))

Sinks promise what workers promise. Every change is delivered at least once. A change is delivered
again only after a crash or a failure, with the same event id, so that the receiver can recognise
the repeat. If the receiver keeps an order, the changes to one item arrive in the order in which
they were made.

How the promise is kept: a worker writes its checkpoint after ``handle`` has returned. ``handle``
returns when each change is either acknowledged by the receiver or reported as failed. The worker
stores failed changes before it writes the checkpoint. Once ``handle`` has returned, a sink keeps no
change in memory. An outage (no connection, throttling, a failing server) is reported as
``TryLater``, and the worker retries the changes until the outage ends. If more than about a hundred
items wait for a retry, the worker reads no more of the shard. If the receiver will never accept a
change (too large, malformed), only that change is at fault: its item is parked, and the other items
continue.

A sink of your own is a subclass of ``Sink`` with one method, ``send`` (``sink``). A sink that
writes to DynamoDB is a ``ChangeSink`` and plans its delivery as work. The workers that run sinks,
and parking, are in ``pipeline.workers``.
"""

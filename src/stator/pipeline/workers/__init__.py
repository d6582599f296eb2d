"""Stream workers: handlers that any number of processes run for every change of a table.

The promise. Every change is handled at least once. The changes of one item are handled in order:
when a change is handled for the first time, all earlier ones of its item have been. A change is
handled again only after a crash, from the last checkpoint on. A change that cannot be handled
holds up its own item and no other.

Who does what. The workers of a *group* share one set of leases, one for each shard of the streams,
in the design's own table:

    PK  WORK#billing   SK  STREAM#shop                     stream, start, at, opened, skipped
    PK  WORK#billing   SK  LEASE#shop#shardId-0001...      owner, fence, until, position, wanted
    PK  WORK#billing#PARKED               SK  shop#5c0a... keys whose changes cannot be handled
    PK  WORK#billing#PARKED#shop#5c0a...  SK  1000...42#0  their changes, in order

``coordinate`` (``worker``) lists the shards, creates leases for new ones, takes free leases, and
asks workers that have more than their share for one of theirs. ``consume`` (``shards.consumer``)
reads one shard under its lease. ``renew`` renews the leases. Each is work (``tables.work``): a
generator that does no I/O itself. Threads run them in production (``worker_threads``). In the
tests one loop runs all of several workers, in an order of its own choosing, and crashes, delays
and refuses what it likes.

A subscriber may ask for the design's own table, too (``handlers.subscribers.TableSubscriber``).
There workers see their own leases change. Changes nobody wants are passed over without a batch,
and the checkpoint follows only now and then, because writing it is itself a change of that table.

Invariants.
- A lease has one owner (``coordination.lease``). Taking it counts ``fence`` up; every later write
  of the owner names the fence, and fails once another worker has taken the lease. An owner that
  was stopped for longer than its lease sees by its own clock that it is over, and handles nothing
  more.
- A child shard is read once its parent has been read to its end, or is gone from the stream.
- ``position`` advances only when everything up to it has been handled or parked.

What fails, and how it recovers. A worker dies: its leases expire, other workers take them and read
on from the checkpoints. A shard is gone before it was read: its lease ends as lost, which is
logged and counted. An iterator expires: a new one is requested. Throttling, or a network that is
away: retried for as long as it takes.

What lives here: ``app`` declares handlers, ``worker`` and ``worker_threads`` run them, ``shards``
has leases and reading, ``handlers`` has delivery and parking, ``aws_lambda`` runs the same app on
Lambda. Views are in ``pipeline.views``, sinks in ``pipeline.sinks``.
"""

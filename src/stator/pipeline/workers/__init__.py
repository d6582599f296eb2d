"""Stream workers: handlers that are called for every change of a table, by any number of processes that share the stream's shards.

The promise. Every change is handled at least once. The changes of one item are handled in their order: when a change is handled for the first
time, all earlier ones of its item have been. A change is handled again only after a crash, from the last checkpoint on. One change that cannot
be handled holds up its own item and no other.

Who does what. The workers of a *group* share one set of leases, one for each shard of the streams, in the design's own table:

    PK  WORK#billing   SK  STREAM#shop                       stream, from, at, open, skipped      where the group began to read
    PK  WORK#billing   SK  LEASE#shop#shardId-0001…-0a3f     owner, fence, until, position, parent, wanted, lag
    PK  WORK#billing#PARKED           SK  shop#5c0a…         the keys whose changes cannot be handled (see parking.py)
    PK  WORK#billing#PARKED#shop#5c0a…  SK  1000…42#0        their changes, in order

``coordinate`` (worker.py) lists the shards, makes leases for new ones, takes those that are free, and asks workers that have more than their share for
one of theirs. ``consume`` (consumer.py) reads one shard under its lease. ``renew`` puts the leases off. Each is work (tables/work.py): a generator that does
no I/O itself. Threads carry them out in real life (running.py); in the tests one loop carries all of several workers out, in an order of its own choosing,
and crashes, delays and refuses what it likes.

Where a subscriber asks for it (subscribers.py: ``OfTables``), the design's own table is followed, too. There workers see their own leases: what nobody wants is passed
without a batch, and the position follows now and then, for to write it down is a change of that table.

Invariants.
- A lease has one owner. Taking it counts ``fence`` up; every later write of the owner's names the fence, and fails once another has taken it. An owner that
  was stopped for longer than its lease sees by its own clock that it is over, and handles nothing more.
- A child is read when its parent has been read to its end, or is gone from the stream.
- ``position`` moves on only when everything up to it has been handled, or parked.

What fails: a worker dies, and its leases run out and are taken by others, which read from the positions on. A shard is gone before it was read: its lease
ends as lost, which is logged and counted. The iterator expired: another is asked for. Throttling, a network that is away: tried again for as
long as it takes.
"""

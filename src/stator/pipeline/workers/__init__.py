"""Stream workers: any number of processes that run handlers for every change to a table.

The promise. Every change is handled at least once. The changes to one item are handled in order:
before a change is handled for the first time, all earlier changes to its item have been handled. A
change is handled again only after a crash, from the last checkpoint on. A change that cannot be
handled holds up its own item, for the subscriber that cannot handle it, and nothing else.

Subscribers. All functions that an app registers for single changes form one subscriber
(``handlers.change_handlers``): each change of an item passes all of them before the next. Each
batch handler, sink, view and maintenance job is a subscriber of its own.

Who does what. The workers of a *group* share one set of leases, one for each shard of the streams.
The leases are stored in the design's own table:

    PK  WORK#billing   SK  STREAM#shop                     stream, start, at, opened, skipped
    PK  WORK#billing   SK  LEASE#shop#shardId-0001...      owner, fence, until, position, wanted
    PK  WORK#billing#PARKED      SK  shop#5c0a...#handlers   items that wait for a subscriber
    PK  WORK#billing#PARKED#shop#5c0a...#handlers  SK  1000...42#000    their changes, in order

``coordinate`` (``worker``) lists the shards, creates leases for new ones, takes free leases, and
asks workers that have more than their share for one of theirs. ``Consumer.run``
(``shards.consumer``) reads one shard under its lease. ``SetAsideRetry.run``
(``handlers.set_aside_retry``) retries items that are set aside. ``renew`` (``worker``) renews the
leases. Each is work (``tables.work``): a generator that does no I/O itself. Threads run them in
production (``worker_threads``). In the tests, a single loop runs several workers. It chooses the
order of their steps, and injects crashes, delays and refused requests.

A subscriber may also ask for the design's own table (``handlers.subscribers.TableSubscriber``). In
the stream of that table, workers see their own leases change. Changes that no subscriber wants are
skipped without a batch. After skipped changes, the checkpoint is written only now and then. The
checkpoint is itself in the design's own table, so each write of it adds a change to the same
stream.

Invariants.
- A lease has one owner (``coordination.lease``). Taking it increments ``fence``; every later write
  of the owner names the fence, and fails once another worker has taken the lease. An owner that
  was suspended for longer than its lease sees by its own clock that the lease is over, and handles
  nothing more.
- A child shard is read once its parent has been read to its end, or is gone from the stream.
- ``position`` advances only when everything up to it has been handled, or stored as set aside or
  parked.

What fails, and how it recovers.
- A worker dies: its leases expire, and other workers take them and read on from the checkpoints.
- A shard is gone before it was read: its lease ends as lost, which is logged and counted.
- An iterator expires: a new one is requested.
- DynamoDB throttles a request, or the network is down: the client's own retries come first. If
  GetRecords is still throttled, ``shards.consumer`` waits and asks again. Any other request that
  still fails ends the consumer, which ``worker`` starts again from its checkpoint. The waits grow,
  and this continues for as long as it takes.
- DynamoDB refuses the credentials, or there is no table or no stream: the worker ends.
- A handler fails: its item is set aside for its subscriber and retried, from
  ``WorkerOptions.retry_seconds`` to ``longest_retry_seconds`` apart, while the shard goes on. After
  ``max_attempts`` it is parked. An outage that the handler reports does not count as an attempt.

What lives here: ``app`` declares handlers, ``worker`` and ``worker_threads`` run them, ``shards``
has leases and reading, ``handlers`` has delivery and parking, ``aws_lambda`` runs the same app on
Lambda. Views are in ``pipeline.views``, sinks in ``pipeline.sinks``.
"""

"""Views: aggregates and copies of entities, updated from the stream, each change counted once.

    hours = View("isp_hours", of=Test, by=[Test.isp], bucket=(Test.at, "hour"), tests=count())

A view is a subscriber of a stream app. Workers hand it every change at least once, in the order of
its shard: after a crash again, perhaps in other batches, and for a moment from two workers at
once. What makes each change count once is in the view's items, in the design's own table:

    PK  VIEW#isp_hours                       SK  HEAD                  app, generation, building
    PK  VIEW#isp_hours                       SK  START#2#shardId-01... position
    PK  VIEW#isp_hours#1#G                   SK  acme                  the groups there are
    PK  VIEW#isp_hours#1#P#acme              SK  2026-11-16T07#shardId-01...  applied, n, ...
    PK  VIEW#isp_hours#1#R#acme#2026-11-16T07  SK  latency#pa1215#5c0a...     a row: one source
    PK  VIEW#isp_hours#1#S#5c0a...           SK  STATE                 order, rows

The HEAD names the *generation* that is read, and one that is being built. A START says from which
position of a shard on a new generation has the changes.

*Partials* hold what can be added up: counts, sums, the buckets of a percentile sketch. There is
one for each group and shard, so that no two shards ever write the same item, and ``applied`` is
the last sequence number of that shard that is in it (``coordination.position``). The difference
that a batch makes, f(after) - f(before) summed over its changes, goes in with one UpdateItem: ADD
the numbers, SET applied, on condition that applied is below the first of the batch. A change that
comes again is not above applied and is left out. Of two writers of one batch, the second finds its
condition failed, reads applied from the refusal, and has nothing left to add. Readers add the
partials up. A sum of more than 38 digits, which no Number holds, is stored in pieces
(``model.wide_numbers``), as exactly.

*Rows* are for what subtraction cannot undo: minimum, maximum, top, latest. Every source has a row
in its group, in the order of the field, and a *state* that says which change it was last written
for. State and rows change in one transaction, on condition that the state is as it was read. An
older change finds a newer state and does nothing. States of sources without rows stay for two
days, longer than a stream remembers.

Invariants.
- Only the holder of a shard's lease writes its partials. A retry of parked changes writes one
  under a name of its own (``~`` and the source's mark).
- What a change adds depends on its two images alone. So changes commute, and a parked one holds up
  nothing else.
- A view belongs to one app, whose name is in its head.

Shards end, and their partials would pile up. One hour after a shard's end nobody can believe to
hold it any more, and its partials are merged into one (``rebuild.compaction``). How a view is
built again while it is in use is in ``rebuild.rebuild``.

What lives here: ``view`` and ``projection`` declare, ``metrics`` and ``sources`` say what an item
counts for, ``updater`` takes changes, ``partials`` and ``ranks`` write, ``reader`` reads. Workers
and their leases are in ``pipeline.workers``.
"""

"""Views: aggregates and copies of entities, updated from the stream, each change counted once.

    hours = View("isp_hours", of=Test, by=[Test.isp], bucket=(Test.at, "hour"), tests=count())

A view is a subscriber of a stream app. Workers hand it every change at least once, in the order of
its shard. It may get a change again after a crash, in different batches, or for a moment from two
workers at once. The view's items, in the table ``<design>-stator``, make each change count once:

    PK  VIEW#isp_hours                       SK  HEAD                  app, generation, building
    PK  VIEW#isp_hours                       SK  START#2#shardId-01... position
    PK  VIEW#isp_hours#1#G                   SK  acme                  a group that exists
    PK  VIEW#isp_hours#1#P#acme              SK  2026-11-16T07#shardId-01...  applied, n, ...
    PK  VIEW#isp_hours#1#R#acme#2026-11-16T07  SK  latency#pa1215#5c0a...     a rank row
    PK  VIEW#isp_hours#1#S#5c0a...           SK  STATE                 order, rows

The HEAD names the *generation* that is read, and the generation that is being built, if any. A
START is a position in a shard: a new generation includes the changes after it.

*Partials* hold values that can be added: counts, sums, the buckets of a percentile sketch. There is
one partial for each group and shard, so that no two shards ever write the same item. ``applied`` is
the last sequence number of that shard that the partial includes (``coordination.position``). Let
f(item) be the amounts that an item adds to the sums. The effect of a batch is f(after) - f(before),
summed over its changes. One UpdateItem writes the effect: it ADDs the numbers and SETs ``applied``,
on condition that ``applied`` is below the first change of the batch. A repeated change is left out,
because its sequence number is not above ``applied``. When two writers write the same batch, the
second writer's condition fails. It reads ``applied`` from the refusal and has nothing left to add.
Readers add up the partials. A sum of more than 38 digits, which no Number holds, is stored exactly
in several pieces (``model.wide_numbers``).

*Rank rows* serve the metrics that depend on an order: minimum, maximum, top, latest. When a source
changes, these metrics cannot be corrected by subtraction. Every *source*, an item of the view's
entity, has a rank row in its group, in the order of the field. Its *state* says for which change
the rank row was last written. State and rank rows change in one transaction, on condition that the
state is as it was read. An older change finds a newer state and does nothing. States of sources
without rank rows stay for two days, longer than a stream keeps changes.

Invariants.
- Only the holder of a shard's lease writes its partials. A parked change (one that failed too often
  and waits for an operator) is counted in a partial of its own. In place of the shard, the sort key
  of that partial has ``~`` and the item: its table and a hash of its key.
- The effect of a change depends on its two images alone. So the changes in different partials can
  be applied in any order, and a parked change does not delay the others.
- A view belongs to one app, whose name is in its head.

Shards end, and their partials would pile up. One hour after a shard's end, no worker can still
believe that it holds the shard, and its partials are merged into one (``rebuild.compaction``).
``rebuild.rebuild`` explains how a view is built again while it is in use.

What lives here: ``view`` and ``projection`` have the classes by which users declare a view.
``metrics`` and ``sources`` say what an item counts for. ``updater`` receives changes, ``partials``
and ``ranks`` write the view's items, and ``reader`` reads them. Workers and their leases are in
``pipeline.workers``.
"""

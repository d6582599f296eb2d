"""Views: aggregates and copies of entities that are kept up to date from the stream, exactly once in effect.

    hours = View("isp_hours", of=Test, by=[Test.isp], bucket=(Test.at, "hour"), tests=count(), slowest=top(10, by=Test.latency))

A view is a subscriber of a stream app. Workers give it every change at least once, in the order of its shard: after a crash again, in other batches perhaps, and
for a moment from two workers at once. What makes each count once is in the items the view is kept in, in the design's own table:

    PK  VIEW#isp_hours                      SK  HEAD                        app, generation (the one that is read), building
    PK  VIEW#isp_hours                      SK  START#2#shardId-0001…       position: from where on generation 2 has the changes of that shard
    PK  VIEW#isp_hours#1#G                  SK  acme                        the groups there are
    PK  VIEW#isp_hours#1#P#acme             SK  2026-11-16T07#shardId-0001…  a partial: applied, n, s:total, b:spread:p81, …
    PK  VIEW#isp_hours#1#R#acme#2026-11-16T07  SK  latency#pa1215#5c0a…     a row: one source, in the order of a field
    PK  VIEW#isp_hours#1#S#5c0a…            SK  STATE                       order (the last change of that source), rows (where it stands)

*Partials* hold what can be added up: counts, sums, the buckets of a percentile sketch. There is one for each group and shard, so that no two shards ever write the
same item, and ``applied`` is the last sequence number of that shard that is in it. A batch's difference, f(after) - f(before) of each change, goes in with one
UpdateItem: ADD the numbers, SET applied, on condition that applied is below the first of the batch. A change that comes again is not above applied, and left out; of two
writers of one batch the second finds its condition failed, reads applied from the refusal, and has nothing left to add. Whoever reads adds the partials up.
A sum of more than 38 digits, which no Number has, is in pieces (patterns/wide_numbers.py), and as exact.

*Rows* are for what cannot be taken back by subtraction: least, greatest, top, latest. Every source has a row in its group, in the order of the field, and a *state* that says which
change it was last written for. State and rows change in one transaction, on condition that the state is as it was read; an older change finds a newer state and
does nothing. States of sources without rows stay for two days, longer than a stream remembers.

Invariants.
- A partial is written by holders of its shard's lease only, and by a retry of parked changes under a name of its own (``~`` and the source's mark).
- What a change adds depends on its two images alone. So changes commute, and one that is parked holds up nothing else.
- A view belongs to one app, whose name stands in its head.

Shards end, and their partials would pile up. One hour after a shard's end nobody can believe to hold it any more: its partials are merged into one
(compacting.py). How a view is built anew while it is in use is in rebuilding.py.
"""

"""A table's stream: every change of its items, in order, for a day.

The idea. A change leaves its record in the same atomic batch as the item (``Streams.follow`` is a follower of the write path), so after a
crash a record is there exactly if its change is. Records lie in *shards*. A shard takes the changes of a range of the partition keys' hashes,
as the partition of a table does, and is open for about four hours; then it is closed and a child takes its range over. A split closes a shard
and gives it two children with half of its range each. All changes of one item are therefore in one line of shards, and whoever reads parents
before their children reads them in order.

    t <stream>                        the stream: its table, view type, status, and the list of its shards, as JSON
    r <stream> <shard> <sequence>     a record: the time in milliseconds (8 bytes), SizeBytes (4), and the record's JSON as GetRecords gives it

``stream`` and ``shard`` are four bytes, ``sequence`` eight: one counter per stream, shown as 21 digits by adding 10^20.

Invariants.
- Sequence numbers rise with the order of commits, over all shards of a stream. A shard's range begins with a number taken when it opens and
  ends with one taken when it closes, so ranges of parent and child never overlap.
- The open shards' hash ranges cover all hashes, once.
- Time in a stream never goes back, even if the clock does: trimming finds its place by bisection.

Trimming. A record is gone 24 hours after its change, a shard 24 hours after it closed, a stream 24 hours after it was switched off or its
table deleted. Shards roll when somebody writes or looks, for the time that has passed since, so the same happens under a virtual clock.

Iterators say where to read on: they are stateless, expire 15 minutes after they were given, and end, null, with a closed shard.

Not kept: the limit of two readers per shard, and of 5 and 10 calls a second to ListStreams and DescribeStream.
"""

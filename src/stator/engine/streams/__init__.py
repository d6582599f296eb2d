"""A table's stream: every change to its items, in order, for a day.

The idea. A change adds its record to the same atomic batch as the item (``Streams`` is an observer
of the write path). So after a crash a record exists exactly if its change does. Records are stored
in *shards*. Like a partition of a table, a shard takes the changes to items in a range of partition
key hashes. It is open for about four hours; then it is closed and a child takes over its range. A
split closes a shard and assigns half of its range to each of two children. All changes to one item
are therefore in one line of descent: a reader that reads parents before children reads the changes
in order.

    t <stream>                      the stream: its table, view type, status and shards, as JSON
    r <stream> <shard> <sequence>   a record: the time in milliseconds (8 bytes), SizeBytes (4), and
                                    the record's JSON as GetRecords returns it

``stream`` and ``shard`` are four bytes. ``sequence`` is eight bytes: one counter per stream, shown
as 21 digits by adding 10^20.

Example. Shard 1 covers all hashes, and an item changes twice. Shard 1 splits into 2 (lower half)
and 3 (upper half), and the item changes again:

    r S 1 5    INSERT        r S 1 6    MODIFY        r S 3 10   MODIFY (if its hash is high)

Invariants.

- Sequence numbers rise in the order of commits, over all shards of a stream. A shard's range begins
  with a number taken when it opens and ends with one taken when it closes. Ranges of parent and
  child never overlap.
- Together the open shards cover every hash exactly once.
- Time in a stream never goes back, even if the clock does. So a record can be found by its time
  with a binary search, as trimming does.

Trimming. A record is deleted 24 hours after its change, and a shard 24 hours after it closed. A
stream is deleted 24 hours after it was disabled or its table was deleted.

Rolling. A shard rolls when its time is over: it closes, and its child opens. A write or read first
rolls all shards that are due, as often as the time that has passed requires. So streams behave the
same with a virtual clock.

Shard iterators say where to read next. They are stateless and expire 15 minutes after they were
issued. At the end of a closed shard the next iterator is null.

Failure and recovery. The sequence counter is not stored with every record, so the stored value may
be too low after a crash. On opening, the counter continues after the newest record in the shards.

These limits are not enforced: two readers per shard, 5 calls a second to ListStreams, and 10 calls
a second to DescribeStream. The operations on streams are in ``engine.operations``.
"""

"""Ingest: records of a log, such as a Kafka topic, into the tables of a design.

The idea. A log numbers the records of a partition: their *offsets*. A consumer reads on from the
offset that its group committed, so after a crash some records arrive again, and a consumer that was
suspended may write records that its successor has already written. Every write therefore carries
the offset it stands for, and a condition on the offset in the item: its *mark*.

    PK  ROUTER#r1    ...the item...    _in:readings:3  1841

Writes with conditions are batched (``tables.writes.guarded``), so this costs no more than
BatchWriteItem. Records with the same key are folded into one write.

Invariants.
- A mark of n in an item says that all records of its key up to offset n of that partition are in
  the item, each once.
- An offset is committed only when each earlier record is written, was in the item already, or is
  stored as a dead letter.
- The records of a key in one partition are written in their order, one write at a time.

What fails, and how it recovers. After a crash the batches begin and end elsewhere, so a write may
hold records that are in the item and records that are not. Its condition fails. The stored mark
then says which of them to leave out, and the rest is folded again. A suspended consumer that wakes
up finds higher marks in the items, and changes nothing.

``app`` is what users write. ``values`` decodes, and ``routes`` turns records into guarded writes.
``event_window`` holds what is read and not yet written; ``commit_marks`` says what may be
committed. ``event_writer`` writes. ``intake`` conducts these, ``running_ingest`` gives them
threads, and ``kafka_source`` reads from Kafka. What goes the other way, from tables to Kafka, is in
``pipeline.sinks``.
"""

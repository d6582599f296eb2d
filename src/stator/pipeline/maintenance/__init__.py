"""Maintenance: subscribers that keep pattern objects up to date as items change.

They are registered with ``app.roll_up(series)``, ``app.refresh(links)``,
``app.relay(outbox, to=...)`` and ``app.release_guards()``. If the items of a pattern are in the
design's own table, ``<design>-stator``, workers also follow the stream of that table. The result is
correct even if changes arrive again:

- Roll-ups of a series are *exact* subscribers, like views: each roll-up item also stores the last
  sequence number that it includes, for each shard (``patterns.rollups.stream_changes``).
- Links, messages and guards are brought in line with what is stored at the time. The change only
  says where to look.

The patterns themselves are in ``patterns``, the workers in ``pipeline.workers``.
"""

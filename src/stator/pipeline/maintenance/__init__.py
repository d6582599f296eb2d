"""Maintenance: subscribers that keep pattern objects up to date as items change.

They are registered with ``app.roll_up(series)``, ``app.refresh(links)``,
``app.relay(outbox, to=...)`` and ``app.release_guards()``. If the items of a pattern are in the
design's own table, ``<design>-stator``, workers also follow the stream of that table. The result is
correct even if changes arrive again:

- Roll-ups of a series are *exact* subscribers, like views: each roll-up item also stores the last
  sequence number that it includes, for each shard (``patterns.rollups.stream_changes``).
- For links, messages and guards, the change only says where to look. The subscriber then reads what
  is stored at that time, and corrects the link or guard, or delivers the message.

The patterns themselves are in ``patterns``, the workers in ``pipeline.workers``.
"""

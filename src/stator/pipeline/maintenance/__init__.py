"""Upkeep: subscribers that look after patterns. An app is told of them by ``app.roll_up(series)``, ``app.refresh(links)``, ``app.relay(outbox, to=...)`` and
``app.release_guards()``.

Items of patterns lie in the design's own table, ``<design>-stator``; where they are looked after, workers follow its stream, too. What makes each of them right
when changes come again:

- roll-ups of a series are *exact* subscribers, as views are: the sequence number of the shard stands in the item that it changes (patterns/rollup_changes.py);
- links, messages and guards are brought to what is stored at the time, whatever the change was: the change says only where to look.
"""

"""Backups, point-in-time recovery, exports and imports.

The idea. All of them are made of three things. The **log** (log.py) has every change of a table with continuous backups,
with the record before and after. An **area** is a copy of a table's items under a prefix of its own. A **task**
(tasks.py) is work that takes long, done in stages of small steps; what it has done is written in the same batch as the step
itself, so after a crash it goes on where it was.

    a backup            copies the table into an area, which stays
    a restore           fills a new table from an area
    a restore to T      copies the table, undoes in the copy what the log has after T, fills a new table, drops the copy
    a full export       copies, undoes, writes the copy out as files, drops it
    an incremental one  gathers the window of the log, per item its first and last record, in an area; writes that out
    an import           reads files into a new table

One moment, without stopping writers. A copy is of the moment it was asked for, though it takes a while (capture.py).
While it goes on, the table is followed: the first write to an item that was not copied yet puts the item's old record into the area,
in the same batch; what the copying finds in the area already, it leaves. So the area holds every item as it was at that
moment, whoever wrote meanwhile, and a crash in between costs nothing: unlike a snapshot of the storage, it is all on disk.
"""

from stator.engine.recovery.recovery import Recovery

__all__ = ["Recovery"]

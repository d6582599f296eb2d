"""Backups, point-in-time recovery, exports and imports.

The idea. Each of them is built from three things. The **log** (``log.py``) holds every change to a
table with continuous backups, with the record before and after it. An **area** is a copy of a
table's items under a separate prefix. A **task** (``tasks.py``) is long work done in stages of
small steps. A step writes its progress in the same batch as its result, so a crash loses nothing.

    backup              copies the table into an area, which stays
    restore             fills a new table from an area
    restore to T        copies the table, undoes in the copy what the log has after T, fills a new
                        table, drops the copy
    full export         copies, undoes, writes the copy out as files, drops it
    incremental export  gathers a window of the log in an area, the first and last record of each
                        item, and writes that out
    import              reads files into a new table

One moment, without stopping writers. A copy shows the table at the moment of the request, even
though copying takes some time (``capture.py``). During that time every write is observed. The first
write to an item that is not copied yet puts the item's old record into the area, in the same batch.
The copy skips items that the area already has. So the area holds every item as it was at that
moment. A crash during the copy loses nothing, because everything is on disk; a snapshot of the
storage would be lost.

What is stored: the log under ``l``, areas under ``b``, tasks and registries (backups, exports,
imports) as JSON under ``m``. The data folder's FORMAT version (``storage/rocks.py``) covers all of
these layouts; a change to one of them needs a new FORMAT version.

What does not live here: the file formats (``stator.formats``), S3 itself (``stator.buckets``), and
the checks of each request (``engine/operations/control``).
"""

from stator.engine.recovery.recovery import Recovery

__all__ = ["Recovery"]

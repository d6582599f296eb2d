"""What earlier versions stored on disk, kept so that later ones prove they open and continue it.

``v1`` was written by version 0.1.0, at the last commit before its modules were moved. Each archive
is a folder as that version left it, and the ``.json.gz`` beside it has what it answered then:

| archive | what is in it |
|---|---|
| ``engine-closed`` | an engine folder closed in good order: tables, streams, backups, exports |
| ``engine-killed`` | one whose process was killed after acknowledged writes |
| ``engine-unfinished`` | one killed amid a backup, restores, exports, an import and backfills |
| ``application`` | every pattern object, stream workers, views and sinks, killed at work |
| ``bulk`` | a load, two exports and a copy, killed half-way, with journals and dead letters |
| ``locks`` | lock files of designs that the tests import |
| ``projects`` | designs with their locks: the examples, and what ``stator new`` makes |

``make_v1`` and the modules named after it made them, and are kept for the record. ``ledger``,
``academy``, ``shipment`` and ``designs`` declare the tables, the application, the jobs and the
designs, for those scripts and for the tests. A test unpacks a copy and goes on with it, on a clock
set to the recorded moment: leases, retention and expiry do not depend on today's date.

The archives of a version never change. A version that stores something in another way gets a
folder and tests of its own, and still passes these.
"""

"""``load`` writes files into a table.

``inputs`` finds the files, ``readers`` reads them in blocks of rows, and the encoders turn rows
into items: ``columns`` and ``lines`` by the table's keys, ``entity_rows`` and ``entity_columns`` by
a design. ``flat_rows`` turns nested objects into dotted names. ``load`` joins them into a job;
``estimate`` checks rows and counts what the job would write. The writers are in ``bulk.job``; the
file formats are in ``stator.formats``.
"""

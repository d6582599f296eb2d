"""``export`` writes a table, or an export that AWS made of a table, to files.

``paged_source`` and ``snapshots`` provide items in pages, ``parts`` writes them as part files,
``destinations`` puts the parts where they belong, and ``export`` runs the job. ``sources`` builds a
job from a table or a snapshot. The file formats are in ``stator.formats``.
"""

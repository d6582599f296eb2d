"""Agreement between processes that share nothing but a table.

``lease`` is the right to work on something for a limited time, ``position`` applies every change
once, and ``retry`` repeats work until it succeeds. ``stored_format`` versions the items that they
store. Everything is work (``tables.work``): generators that do no I/O themselves, so that the same
code runs blocking, awaited, and in the simulations of the tests.

The items themselves belong to their owners: locks and trees to ``patterns``, shard leases, parked
changes and views to ``pipeline``. The arithmetic of waiting is in ``stator.backoff``, below the
client.
"""

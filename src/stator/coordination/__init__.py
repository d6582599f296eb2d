"""Agreement between processes that share nothing but a table.

``lease`` is the right to work on something for a limited time, ``position`` applies every change
once, and ``retry`` repeats work until it succeeds. ``stored_format`` gives the stored items a
version. Everything is work (``tables.work``): generators that do no I/O themselves, so that the
same code runs blocking, awaited, and in the simulations of the tests.

Other packages define the items: ``patterns`` defines the items of locks and trees, ``pipeline`` the
items of shard leases, parked changes and views. The lengths of waits are computed in
``stator.backoff``, which the client also uses.
"""

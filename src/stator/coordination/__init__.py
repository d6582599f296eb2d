"""Agreement between processes that share nothing but a table.

``retry`` repeats work until it succeeds. Everything here is work (``tables.work``): generators that
do no I/O themselves, so that the same code runs blocking, awaited, and in the simulations of the
tests. The arithmetic of waiting is in ``stator.backoff``, where the client can use it, too.
"""

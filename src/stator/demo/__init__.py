"""``stator demo``: a fleet of home routers, from a month of history to live summaries.

Routers test their connections. A *test* is one measurement: latency, download rate and loss.

``fleet`` is the design, ``app`` reacts to changes, ``history`` and ``live`` produce the data,
``processes`` runs the server and the workers, ``acts`` runs the demo step by step, ``recount``
proves that nothing is missing, ``story`` holds the results, and ``terminal``, ``page`` and
``charts`` show them.
"""

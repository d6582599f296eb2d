"""``stator demo``: a fleet of home routers and their diagnostic tests, from a month of history to live summaries.

``fleet`` is the design, ``app`` what reacts to changes, ``history`` and ``live`` make the data, ``processes`` runs the server and the workers, ``acts`` is what happens and in
which order, ``recount`` proves that nothing is missing, ``story`` keeps what was seen, and ``page`` and ``charts`` show it.
"""

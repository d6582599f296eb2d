"""Data in motion: jobs that move items in bulk, and subscribers that follow changes.

``bulk`` loads, exports and copies tables. ``workers`` reads the streams of a design's tables and
hands changes to subscribers: handlers, ``views`` (aggregates), ``sinks`` (other systems) and
``maintenance`` (roll-ups, links, outboxes, guards).

What does not live here: single reads and writes (``tables``), pattern objects (``patterns``), and
the leases, positions and retries that workers share with patterns (``coordination``).
"""

"""The machinery of jobs that write: it knows rows and requests, but neither files nor designs.

A reader hands rows to a ``window``; ``writers`` take them out and put them into the table at the
rate of a ``governor``. ``pending_rows`` tracks the outcome of each row, ``journal`` records how far
the job has got, and ``dead_letters`` keeps the rows that failed. ``row_condition`` is a condition
for every row; ``daily_hours`` restricts a job to certain hours. ``write_job`` runs all of it.
"""

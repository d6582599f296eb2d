"""The ``stator`` command line.

``main`` finds the called command in ``register`` and imports only its module from ``commands``.
Several commands share the other modules here: finding a design or an app in a user's file,
explaining what is wrong with it, common options, progress bars, live tables, signals. The packages
below do the actual work; every command has an equivalent in Python there.

Data goes to stdout; notes, progress and errors go to stderr. Exit codes: 0 success, 1 an error with
a hint or a failed check, 2 wrong usage (for ``check``: no design to check), 3 a load that is
done except for rows that failed, 130 interrupted.
"""

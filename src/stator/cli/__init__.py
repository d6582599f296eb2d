"""The ``stator`` command line.

``main`` finds the called command in ``register`` and imports only its module from ``commands``.
The other modules here are what several commands share: finding a design or an app in a user's
file, explaining what is wrong with it, common options, progress bars, live tables, signals.
The work itself is done by the packages below; every command has a Python twin there.

Data goes to stdout; notes, progress and errors go to stderr. Exit codes: 0 success, 1 an error
with a hint or a failed check, 2 wrong usage (for ``check``: no design to check), 130 interrupted.
"""
